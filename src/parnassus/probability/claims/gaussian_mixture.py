"""Claims about Gaussian mixtures and expectation-maximisation (Diehl sec. 6; book sec. 6.1)."""

from itertools import islice

import torch
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises, runs
from parnassus.data.built_in.toy import eight_gaussians
from parnassus.probability.distributions.seeded_samples import float64_tensor
from parnassus.probability.divergences.kl_divergence import kl_divergence
from parnassus.probability.inference.gaussian_mixture import (
    GaussianMixture,
    em_iterates,
    em_step,
    kmeans_plus_plus_start,
    m_step,
    mixture_elbo,
)
from parnassus.probability.inference.mixture_gradient_descent import fit_by_gradient_descent


def three_gaussians() -> GaussianMixture:
    """Weights 0.2, 0.3, 0.5; an isotropic, a correlated and an elongated component in the plane."""
    covariances = torch.tensor(
        [[[0.3, 0.0], [0.0, 0.3]], [[1.0, 0.8], [0.8, 1.0]], [[0.1, 0.0], [0.0, 2.0]]], dtype=torch.float64
    )
    means = torch.tensor([[-3.0, 0.0], [0.0, 2.0], [3.0, -1.0]], dtype=torch.float64)
    return GaussianMixture(float64_tensor(0.2, 0.3, 0.5), means, covariances)


def eight_gaussian_rows(count: int = 400) -> Tensor:
    return eight_gaussians(count, noise=0.3).x.double()


@claim("D6.0.7")
def a_mixture_density_is_multimodal() -> Evidence:
    """Σ φ_i N(x|μ_i, Σ_i) has mass 1, a mode near each mean, and mean Σ φ_i μ_i (Diehl ex. 6.3)."""
    mixture = three_gaussians()
    x_axis, y_axis = torch.linspace(-8, 8, 321, dtype=torch.float64), torch.linspace(-9, 9, 361, dtype=torch.float64)
    points = torch.cartesian_prod(x_axis, y_axis)
    mass = mixture.log_prob(points).exp().view(321, 361) * 0.05**2
    between = (mixture.means[:-1] + mixture.means[1:]) / 2
    library = MixtureSameFamily(
        Categorical(probs=mixture.weights), MultivariateNormal(mixture.means, mixture.covariances)
    )
    mean = (mass.flatten()[:, None] * points).sum(0)
    return all_of(
        mass=close(mass.sum(), 1.0, atol=1e-6),
        mean=close(mean, mixture.weights @ mixture.means, atol=1e-5),
        library=close(mixture.log_prob(points), library.log_prob(points), rtol=1e-12),
        modes=greater_equal(mixture.log_prob(mixture.means), mixture.log_prob(between).max() + 1.0),
        far_away=greater_equal(mixture.log_prob(float64_tensor(1e3, 0.0)[None]), -1e7),  # where the density underflows
    )


@claim("D6.0.7")
def samples_and_responsibilities_follow_the_model() -> Evidence:
    """Samples have the moments of the mixture; the mean of P(Z = i | x) over them is φ_i (Diehl ex. 6.3)."""
    torch.manual_seed(0)
    mixture = three_gaussians()
    x = mixture.sample(40_000)
    mean = mixture.weights @ mixture.means
    offset = mixture.means - mean
    covariance = torch.einsum("i,ijk->jk", mixture.weights, mixture.covariances + offset[:, :, None] * offset[:, None])
    r = mixture.responsibilities(x)
    return all_of(
        mean=close(x.mean(0), mean, atol=0.05),
        covariance=close(x.T.cov(), covariance, atol=0.1),
        rows=close(r.sum(-1), 1.0, atol=1e-14),
        mean_responsibilities=close(r.mean(0), mixture.weights, atol=0.01),
        bayes=close(r * mixture.log_prob(x).exp()[:, None], mixture.log_joint(x).exp(), atol=1e-15),
    )


@claim("B6.1-14", "D6.0.7")
def em_never_decreases_the_likelihood() -> Evidence:
    """The likelihood never decreases over 60 steps from each of eight starts (book sec. 6.1)."""
    x = eight_gaussian_rows()
    paths = []
    for seed in range(8):
        mixtures = islice(em_iterates(x, kmeans_plus_plus_start(x, 8, seed=seed), floor=0.0), 61)
        paths.append(torch.stack([mixture.log_prob(x).mean() for mixture in mixtures]))
    log_likelihoods = torch.stack(paths)
    return all_of(
        never_decreases=greater_equal(log_likelihoods.diff(), -1e-13),
        increases_at_first=greater_equal(log_likelihoods[:, 1] - log_likelihoods[:, 0], 0.01),
        starts_reach_different_optima=greater_equal(log_likelihoods[:, -1].max() - log_likelihoods[:, -1].min(), 0.01),
    )


@claim("B6.1-14", "D6.0.7")
def em_is_coordinate_ascent_on_the_elbo() -> Evidence:
    """The E-step raises the ELBO to the log-likelihood, the M-step maximises it over mixtures (book sec. 6.1)."""
    x = eight_gaussian_rows()
    mixture = kmeans_plus_plus_start(x, 8)
    r = torch.full((len(x), 8), 1 / 8, dtype=torch.float64)
    elbos, gaps = [mixture_elbo(x, r, mixture).mean()], []
    for _ in range(10):
        r = mixture.responsibilities(x)
        elbos.append(mixture_elbo(x, r, mixture).mean())
        gaps.append(elbos[-1] - mixture.log_prob(x).mean())
        mixture = m_step(x, r, floor=0.0)
        elbos.append(mixture_elbo(x, r, mixture).mean())
    generator = torch.Generator().manual_seed(0)
    other_posterior = (mixture.log_joint(x) + torch.randn(len(x), 8, generator=generator, dtype=torch.float64)).softmax(
        -1
    )
    perturbed = [
        GaussianMixture(
            mixture.weights, mixture.means + 0.05 * torch.randn(8, 2, generator=generator).double(), covariance
        )
        for covariance in (mixture.covariances, 1.1 * mixture.covariances, 0.9 * mixture.covariances)
    ]
    gap = mixture.log_prob(x) - mixture_elbo(x, other_posterior, mixture)
    return all_of(
        both_steps_increase=greater_equal(torch.stack(elbos).diff(), -1e-13),
        tight_after_e_step=close(torch.stack(gaps), 0.0, atol=1e-13),
        gap_is_divergence_from_the_posterior=close(
            gap, kl_divergence(other_posterior, mixture.responsibilities(x)), atol=1e-12
        ),
        no_other_mixture_is_higher=less_equal(
            torch.stack([mixture_elbo(x, r, each).mean() for each in perturbed]), elbos[-1]
        ),
        step_is_both=close(
            em_step(x, mixture, floor=0.0).means, m_step(x, mixture.responsibilities(x), floor=0.0).means
        ),
    )


@claim("D6.0.7")
def gradient_descent_reaches_the_likelihood_of_em() -> Evidence:
    """Adam on softmax weights and Cholesky factors reaches the likelihood of EM from the same start (Diehl ex. 6.3)."""
    torch.manual_seed(0)
    x, truth = three_gaussians().sample(300), three_gaussians()
    start = kmeans_plus_plus_start(x, 3, seed=1)
    by_em = next(islice(em_iterates(x, start, floor=0.0), 100, None))
    by_adam, log_likelihoods = fit_by_gradient_descent(x, start, steps=150, learning_rate=0.1)
    return all_of(
        same_likelihood=close(by_adam.log_prob(x).mean(), by_em.log_prob(x).mean(), atol=2e-4),
        above_the_truth=greater_equal(by_em.log_prob(x).mean(), truth.log_prob(x).mean()),
        same_density=close(by_adam.log_prob(x), by_em.log_prob(x), atol=0.1),
        not_monotone=less_equal(log_likelihoods.diff().min(), 0.0),
    )


@claim("D6.0.7")
def the_likelihood_is_unbounded() -> Evidence:
    """A component at a single row with variance v → 0 gives likelihood +∞, hence the variance floor (Diehl sec. 6)."""
    x = eight_gaussian_rows(100)

    def log_likelihood(variance: float) -> Tensor:
        identity = torch.eye(2, dtype=torch.float64)
        mixture = GaussianMixture(
            float64_tensor(0.5, 0.5), torch.stack([x.mean(0), x[0]]), torch.stack([2 * identity, variance * identity])
        )
        return mixture.log_prob(x).sum()

    log_likelihoods = torch.stack([log_likelihood(10.0**-k) for k in range(4, 200, 40)])
    one_row = torch.eye(2, dtype=torch.float64)[torch.zeros(100, dtype=torch.long)]
    one_row[0] = float64_tensor(0.0, 1.0)  # component 1 is responsible for a single row
    return all_of(
        grows=greater_equal(log_likelihoods.diff(), 50.0),
        rejected_without_a_floor=raises(ValueError, lambda: m_step(x, one_row, floor=0.0)),
        accepted_with_a_floor=runs(lambda: m_step(x, one_row, floor=1e-6), unless=ValueError),
    )


@erratum("D6.0.7", printed="φ ∈ ℝⁿ", right="φ in the simplex: φ_i ≥ 0, Σ φ_i = 1")
def weights_lie_in_the_simplex() -> Correction:
    """With arbitrary weights in ℝⁿ, Σ φ_i N(x|μ_i, Σ_i) is not a density (Diehl ex. 6.3)."""
    valid, arbitrary = three_gaussians(), float64_tensor(1.0, -0.5, 1.2)
    points = torch.cartesian_prod(*[torch.linspace(-10, 10, 201, dtype=torch.float64)] * 2)
    components = valid.log_joint(points).exp() / valid.weights

    def is_a_density(weights: Tensor) -> Evidence:
        density = components @ weights
        return all_of(mass=close(density.sum() * 0.1**2, 1.0, atol=1e-4), not_negative=greater_equal(density, 0.0))

    return Correction(
        printed=is_a_density(arbitrary),
        corrected=all_of(
            simplex=is_a_density(valid.weights),
            others_are_rejected=raises(ValueError, lambda: GaussianMixture(arbitrary, valid.means, valid.covariances)),
            indefinite_covariances_are_rejected=raises(
                ValueError, lambda: GaussianMixture(valid.weights, valid.means, -valid.covariances)
            ),
        ),
    )
