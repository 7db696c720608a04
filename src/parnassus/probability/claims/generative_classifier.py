"""Claims about generative classifiers and fitted distributions (Diehl sec. 5.2)."""

from functools import partial
from itertools import product

import torch
from scipy import stats
from torch import Tensor
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.probability.distributions.seeded_samples import random_distributions
from parnassus.probability.divergences.energy_distance import energy_distance
from parnassus.probability.inference.generative_classifier import (
    GenerativeClassifier,
    fit_linear_discriminant,
    fit_quadratic_discriminant,
)


def two_gaussian_classes() -> GenerativeClassifier:
    """Two classes on the line, N(−1, 1) and N(1, ¼), with priors 0.3 and 0.7."""
    gaussians = Independent(Normal(torch.tensor([[-1.0], [1.0]]).double(), torch.tensor([[1.0], [0.5]]).double()), 1)
    return GenerativeClassifier(torch.tensor([0.3, 0.7], dtype=torch.float64), gaussians)


@claim("D5.2.1")
def the_bayes_classifier_has_minimal_risk() -> Evidence:
    """Among all 3⁵ decision rules (3 classes, 5 observations) argmax P(C | x) has minimum risk (Diehl sec. 5.2)."""
    joint = random_distributions(1, 15)[0].reshape(3, 5)
    rules = torch.tensor(list(product(range(3), repeat=5)))
    risk = 1 - joint[rules, torch.arange(5)].sum(1)
    posterior = joint / joint.sum(0)
    best = posterior.argmax(0)
    return all_of(
        rules=close(len(rules), 243),
        minimum=close(risk.min(), 1 - joint[best, torch.arange(5)].sum(), atol=1e-15),
        formula=close(risk.min(), 1 - joint.amax(0).sum(), atol=1e-15),
        same_rule=close(rules[risk.argmin()], best),
    )


@claim("D5.2.1")
def the_bayes_risk_is_the_integral_of_the_smaller_density() -> Evidence:
    """For two normal classes argmax P(C | x) has risk ∫ min_C p(x, C) dx, less than any threshold (Diehl sec. 5.2)."""
    model = two_gaussian_classes()
    x = torch.linspace(-12, 12, 20_001, dtype=torch.float64)
    joint = model.log_joint(x[:, None]).exp()
    predicted = model.predict(x[:, None])
    risk = torch.trapezoid(joint.gather(1, (1 - predicted)[:, None])[:, 0], x)
    thresholds = [torch.trapezoid(torch.where(x > t, joint[:, 0], joint[:, 1]), x) for t in torch.linspace(-3, 3, 121)]
    torch.manual_seed(0)
    samples, labels = model.sample(100_000)
    return all_of(
        minimum=close(risk, torch.trapezoid(joint.amin(1), x), atol=1e-12),
        no_threshold_is_better=greater_equal(torch.stack(thresholds), risk),
        on_samples=close((model.predict(samples) != labels).double().mean(), risk, atol=0.003),
        evidence_integrates_to_one=close(torch.trapezoid(model.log_prob(x[:, None]).exp(), x), 1.0, atol=1e-9),
    )


@claim("D5.2.1")
def a_shared_covariance_gives_a_linear_posterior() -> Evidence:
    """With a shared Σ, log P(C | x) is linear in x up to the evidence: W = Σ⁻¹ μ_C (Diehl sec. 5.2)."""
    x, labels = torch.randn(300, 4, generator=torch.Generator().manual_seed(0)).double(), torch.arange(300) % 3
    x = x + labels[:, None]
    model = GenerativeClassifier.fit(x, labels, classes=3, model=fit_linear_discriminant)
    gaussians = model.class_conditional
    assert isinstance(gaussians, MultivariateNormal)
    weight = torch.linalg.solve(gaussians.covariance_matrix, gaussians.mean[..., None])[..., 0]
    bias = model.prior.log() - (gaussians.mean * weight).sum(1) / 2
    quadratic = GenerativeClassifier.fit(x, labels, classes=3, model=fit_quadratic_discriminant).log_posterior(x)
    linear = (x @ weight.T + bias).log_softmax(1)
    return all_of(
        softmax_of_linear_scores=close(model.log_posterior(x), linear, atol=1e-10),
        own_covariances_are_not_linear=greater_equal((quadratic - linear).abs().max(), 0.01),
    )


@erratum("D5.2.1", printed="P(x | C) P(C) / P(x), probabilities of an image x", right="p(x | C) P(C) / p(x), densities")
def a_single_image_has_probability_zero() -> Correction:
    """For continuous x, P(x | C) and P(x) are 0; small boxes around x give the densities (Diehl sec. 5.2)."""
    model = two_gaussian_classes()
    conditional = model.class_conditional
    assert isinstance(conditional, Independent)
    base = conditional.base_dist
    x = torch.tensor(0.3, dtype=torch.float64)

    def by_boxes(width: float) -> Tensor:
        masses: Tensor = (base.cdf(x + width / 2) - base.cdf(x - width / 2))[:, 0] * model.prior
        return masses / masses.sum()

    posterior = model.log_posterior(x.reshape(1, 1)).exp()[0]
    return Correction(
        printed=close(by_boxes(0.0), posterior, atol=1e-6),
        corrected=close(by_boxes(1e-4), posterior, atol=1e-6),
    )


@claim("D5.2.1")
def the_posterior_does_not_determine_the_joint_distribution() -> Evidence:
    """Distributions with different p(x) can share P(C | x), so a discriminative model omits p(x) (Diehl sec. 5.2)."""
    posterior = random_distributions(6, 3)  # P(C | x) for six observations
    p, q = random_distributions(2, 6, seed=1)  # two marginals of x
    first, second = p[:, None] * posterior, q[:, None] * posterior
    return all_of(
        same_posterior=close(first / first.sum(1, keepdim=True), second / second.sum(1, keepdim=True), atol=1e-15),
        different_joint=greater_equal((first - second).abs().sum() / 2, 0.1),
    )


@claim("D5.2.2")
def the_divergence_of_a_fitted_gaussian_decays_as_one_over_n() -> Evidence:
    """For a Gaussian fitted to N samples, KL(Q ‖ Q̂) ≈ (number of parameters) / 2N (Diehl sec. 5.2)."""
    torch.manual_seed(0)
    root = torch.randn(3, 3, dtype=torch.float64)
    distribution = MultivariateNormal(torch.ones(3, dtype=torch.float64), root @ root.T + torch.eye(3))
    fit = partial(fit_quadratic_discriminant, shrinkage=1e-9)
    counts = (200, 800, 3_200)
    divergences = []
    for count in counts:
        labels = torch.zeros(count, dtype=torch.int64)
        fits = [
            GenerativeClassifier.fit(distribution.sample((count,)), labels, classes=1, model=fit) for _ in range(40)
        ]
        divergences.append(
            torch.stack([kl_divergence(distribution, each.class_conditional)[0] for each in fits]).mean()
        )
    numbers = torch.tensor(counts, dtype=torch.float64)
    parameters = 3 + 6
    return all_of(
        falls=rate(numbers, torch.stack(divergences), -1.0, atol=0.15),
        half_the_parameters_over_n=close(torch.stack(divergences) * numbers, parameters / 2, rtol=0.2),
        non_negative=less_equal(0.0, torch.stack(divergences)),
    )


@claim("D5.2.2")
def the_energy_distance_separates_distributions_with_equal_moments() -> Evidence:
    """2 E‖X − Y‖ − E‖X − X′‖ − E‖Y − Y′‖ is 2 ∫ (F − G)², zero only for equal distributions (Diehl sec. 5.2)."""
    torch.manual_seed(0)
    x = torch.randn(400, 1, dtype=torch.float64)
    signs = torch.where(torch.arange(300) % 2 == 0, 1.0, -1.0).double()[:, None]  # mean 0 and variance 1, as x
    by_scipy = stats.energy_distance(x[:, 0].numpy(), signs[:, 0].numpy()) ** 2
    points = torch.randn(5, 3, dtype=torch.float64)
    return all_of(
        scipy=close(energy_distance(x, signs), by_scipy, rtol=1e-10),
        equal_moments=greater_equal(energy_distance(x, signs), 0.05),
        same_distribution=close(energy_distance(points, points.repeat(4, 1)), 0.0, atol=1e-14),
        two_points=close(energy_distance(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]])), 10.0, atol=1e-6),
    )
