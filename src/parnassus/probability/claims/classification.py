"""Claims about classes as a law over pairs, and about laws that are learned (Diehl sec. 5.2)."""

from functools import partial
from itertools import product

import torch
from torch import Tensor
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.probability.claims.distances import random_distributions
from parnassus.probability.generative_classifier import (
    GenerativeClassifier,
    own_covariances,
    shared_covariance,
)


def two_bells() -> GenerativeClassifier:
    """Two classes on the line, N(−1, 1) and N(1, ¼), with priors 0.3 and 0.7."""
    bells = Independent(Normal(torch.tensor([[-1.0], [1.0]]).double(), torch.tensor([[1.0], [0.5]]).double()), 1)
    return GenerativeClassifier(torch.tensor([0.3, 0.7], dtype=torch.float64), bells)


@claim("D5.2.1")
def no_rule_errs_less_than_the_most_probable_class() -> Evidence:
    """Of all 3⁵ ways to name one of 3 classes for 5 observations, argmax P(C | x) errs least (Diehl sec. 5.2)."""
    joint = random_distributions(1, 15)[0].reshape(3, 5)
    rules = torch.tensor(list(product(range(3), repeat=5)))
    risk = 1 - joint[rules, torch.arange(5)].sum(1)
    posterior = joint / joint.sum(0)
    best = posterior.argmax(0)
    return all_of(
        rules=close(len(rules), 243),
        least=close(risk.min(), 1 - joint[best, torch.arange(5)].sum(), atol=1e-15),
        formula=close(risk.min(), 1 - joint.amax(0).sum(), atol=1e-15),
        same_rule=close(rules[risk.argmin()], best),
    )


@claim("D5.2.1")
def bayes_rule_is_best_for_a_known_law_on_the_line() -> Evidence:
    """For two bells argmax P(C | x) has the risk ∫ min_C p(x, C) dx; no threshold has less (Diehl sec. 5.2)."""
    law = two_bells()
    x = torch.linspace(-12, 12, 20_001, dtype=torch.float64)
    joint = law.log_joint(x[:, None]).exp()
    named = law.predict(x[:, None])
    risk = torch.trapezoid(joint.gather(1, (1 - named)[:, None])[:, 0], x)
    thresholds = [torch.trapezoid(torch.where(x > t, joint[:, 0], joint[:, 1]), x) for t in torch.linspace(-3, 3, 121)]
    torch.manual_seed(0)
    drawn, labels = law.sample(100_000)
    return all_of(
        least=close(risk, torch.trapezoid(joint.amin(1), x), atol=1e-12),
        no_threshold_is_better=at_least(torch.stack(thresholds), risk),
        on_draws=close((law.predict(drawn) != labels).double().mean(), risk, atol=0.003),
        evidence_integrates_to_one=close(torch.trapezoid(law.log_prob(x[:, None]).exp(), x), 1.0, atol=1e-9),
    )


@claim("D5.2.1")
def one_covariance_makes_the_posterior_linear() -> Evidence:
    """With a shared Σ, log P(C | x) is linear in x up to the evidence: W = Σ⁻¹ μ_C (Diehl sec. 5.2)."""
    x, labels = torch.randn(300, 4, generator=torch.Generator().manual_seed(0)).double(), torch.arange(300) % 3
    x = x + labels[:, None]
    model = GenerativeClassifier.fit(x, labels, classes=3, model=shared_covariance)
    bells = model.given_class
    assert isinstance(bells, MultivariateNormal)
    weight = torch.linalg.solve(bells.covariance_matrix, bells.mean[..., None])[..., 0]
    bias = model.prior.log() - (bells.mean * weight).sum(1) / 2
    bent = GenerativeClassifier.fit(x, labels, classes=3, model=own_covariances).log_posterior(x)
    linear = (x @ weight.T + bias).log_softmax(1)
    return all_of(
        softmax_of_linear_scores=close(model.log_posterior(x), linear, atol=1e-10),
        own_covariances_bend_it=at_least((bent - linear).abs().max(), 0.01),
    )


@erratum("D5.2.1", printed="P(x | C) P(C) / P(x), probabilities of an image x", right="p(x | C) P(C) / p(x), densities")
def a_single_image_has_no_probability() -> Correction:
    """Of a continuous x, P(x | C) and P(x) are 0; small boxes around x tend to the densities (Diehl sec. 5.2)."""
    law = two_bells()
    bells = law.given_class
    assert isinstance(bells, Independent)
    base = bells.base_dist
    x = torch.tensor(0.3, dtype=torch.float64)

    def by_boxes(width: float) -> Tensor:
        masses: Tensor = (base.cdf(x + width / 2) - base.cdf(x - width / 2))[:, 0] * law.prior
        return masses / masses.sum()

    posterior = law.log_posterior(x.reshape(1, 1)).exp()[0]
    return Correction(
        printed=close(by_boxes(0.0), posterior, atol=1e-6),
        corrected=close(by_boxes(1e-4), posterior, atol=1e-6),
    )


@claim("D5.2.1")
def the_posterior_alone_does_not_know_how_images_look() -> Evidence:
    """Laws that differ in p(x) alone share P(C | x): a discriminative model cannot tell them apart (Diehl sec. 5.2)."""
    posterior = random_distributions(6, 3)  # P(C | x) for six observations
    here, there = random_distributions(2, 6, seed=1)  # two laws of x
    first, second = here[:, None] * posterior, there[:, None] * posterior
    return all_of(
        same_posterior=close(first / first.sum(1, keepdim=True), second / second.sum(1, keepdim=True), atol=1e-15),
        other_joint=at_least((first - second).abs().sum() / 2, 0.1),
    )


@claim("D5.2.2")
def a_learned_law_comes_near_as_data_grow() -> Evidence:
    """Fitted to N draws of a Gaussian law Q, KL(Q ‖ Q̂) falls like 1/N, by half a parameter a draw (Diehl sec. 5.2)."""
    torch.manual_seed(0)
    root = torch.randn(3, 3, dtype=torch.float64)
    law = MultivariateNormal(torch.ones(3, dtype=torch.float64), root @ root.T + torch.eye(3))
    fit = partial(own_covariances, shrinkage=1e-9)
    counts = (200, 800, 3_200)
    far = []
    for count in counts:
        labels = torch.zeros(count, dtype=torch.int64)
        learned = [GenerativeClassifier.fit(law.sample((count,)), labels, classes=1, model=fit) for _ in range(40)]
        far.append(torch.stack([kl_divergence(law, each.given_class)[0] for each in learned]).mean())
    numbers = torch.tensor(counts, dtype=torch.float64)
    parameters = 3 + 6
    return all_of(
        falls=rate(numbers, torch.stack(far), -1.0, atol=0.15),
        half_a_parameter_a_draw=close(torch.stack(far) * numbers, parameters / 2, rtol=0.2),
        nothing_is_nearer=at_most(0.0, torch.stack(far)),
    )
