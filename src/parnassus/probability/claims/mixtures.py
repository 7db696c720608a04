"""Claims about Gaussian mixtures and expectation-maximisation (Diehl sec. 6; book sec. 6.1)."""

from itertools import islice

import torch
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, raises, runs
from parnassus.data.toy import eight_gaussians
from parnassus.probability.claims.divergences import row
from parnassus.probability.divergences import kl_divergence
from parnassus.probability.mixture_descent import fit_by_descent
from parnassus.probability.mixtures import (
    GaussianMixture,
    em_path,
    em_step,
    evidence_bound,
    spread_start,
    weighted_moments,
)


def three_bells() -> GaussianMixture:
    """Weights 0.2, 0.3, 0.5; one round, one tilted and one flat bell in the plane."""
    covariances = torch.tensor(
        [[[0.3, 0.0], [0.0, 0.3]], [[1.0, 0.8], [0.8, 1.0]], [[0.1, 0.0], [0.0, 2.0]]], dtype=torch.float64
    )
    means = torch.tensor([[-3.0, 0.0], [0.0, 2.0], [3.0, -1.0]], dtype=torch.float64)
    return GaussianMixture(row(0.2, 0.3, 0.5), means, covariances)


def some_rows(count: int = 400) -> Tensor:
    return eight_gaussians(count, noise=0.3).x.double()


@claim("D6.0.7")
def a_mixture_is_a_density_with_several_peaks() -> Evidence:
    """Σ φ_i N(x|μ_i, Σ_i) has mass 1, a peak near each mean, and mean Σ φ_i μ_i (Diehl ex. 6.3)."""
    mixture = three_bells()
    across, up = torch.linspace(-8, 8, 321, dtype=torch.float64), torch.linspace(-9, 9, 361, dtype=torch.float64)
    places = torch.cartesian_prod(across, up)
    mass = mixture.log_prob(places).exp().view(321, 361) * 0.05**2
    between = (mixture.means[:-1] + mixture.means[1:]) / 2
    library = MixtureSameFamily(
        Categorical(probs=mixture.weights), MultivariateNormal(mixture.means, mixture.covariances)
    )
    mean = (mass.flatten()[:, None] * places).sum(0)
    return all_of(
        mass=close(mass.sum(), 1.0, atol=1e-6),
        mean=close(mean, mixture.weights @ mixture.means, atol=1e-5),
        library=close(mixture.log_prob(places), library.log_prob(places), rtol=1e-12),
        peaks=at_least(mixture.log_prob(mixture.means), mixture.log_prob(between).max() + 1.0),
        far_away=at_least(mixture.log_prob(row(1e3, 0.0)[None]), -1e7),  # where the density itself is 0 in floats
    )


@claim("D6.0.7")
def draws_and_responsibilities_follow_the_model() -> Evidence:
    """Draws have the mixture's moments; averaged over them, P(Z = i | x) is φ_i again (Diehl ex. 6.3)."""
    torch.manual_seed(0)
    mixture = three_bells()
    x = mixture.sample(40_000)
    mean = mixture.weights @ mixture.means
    apart = mixture.means - mean
    covariance = torch.einsum("i,ijk->jk", mixture.weights, mixture.covariances + apart[:, :, None] * apart[:, None])
    r = mixture.responsibilities(x)
    return all_of(
        mean=close(x.mean(0), mean, atol=0.05),
        covariance=close(x.T.cov(), covariance, atol=0.1),
        rows=close(r.sum(-1), 1.0, atol=1e-14),
        weights_again=close(r.mean(0), mixture.weights, atol=0.01),
        bayes=close(r * mixture.log_prob(x).exp()[:, None], mixture.log_joint(x).exp(), atol=1e-15),
    )


@claim("B6.1-14", "D6.0.7")
def no_step_of_em_lowers_the_likelihood() -> Evidence:
    """Over 60 steps from each of eight starts the likelihood never falls, and settles (book sec. 6.1)."""
    x = some_rows()
    paths = []
    for seed in range(8):
        mixtures = islice(em_path(x, spread_start(x, 8, seed=seed), floor=0.0), 61)
        paths.append(torch.stack([mixture.log_prob(x).mean() for mixture in mixtures]))
    heights = torch.stack(paths)
    return all_of(
        never_falls=at_least(heights.diff(), -1e-13),
        rises_at_first=at_least(heights[:, 1] - heights[:, 0], 0.01),
        starts_end_apart=at_least(heights[:, -1].max() - heights[:, -1].min(), 0.01),
    )


@claim("B6.1-14", "D6.0.7")
def em_climbs_the_bound_one_coordinate_at_a_time() -> Evidence:
    """The E-step lifts the bound to the likelihood, the M-step further; no other mixture more (book sec. 6.1)."""
    x = some_rows()
    mixture = spread_start(x, 8)
    r = torch.full((len(x), 8), 1 / 8, dtype=torch.float64)
    bounds, touching = [evidence_bound(x, r, mixture).mean()], []
    for _ in range(10):
        r = mixture.responsibilities(x)
        bounds.append(evidence_bound(x, r, mixture).mean())
        touching.append(bounds[-1] - mixture.log_prob(x).mean())
        mixture = weighted_moments(x, r, floor=0.0)
        bounds.append(evidence_bound(x, r, mixture).mean())
    source = torch.Generator().manual_seed(0)
    other = (mixture.log_joint(x) + torch.randn(len(x), 8, generator=source, dtype=torch.float64)).softmax(-1)
    moved = [
        GaussianMixture(
            mixture.weights, mixture.means + 0.05 * torch.randn(8, 2, generator=source).double(), covariance
        )
        for covariance in (mixture.covariances, 1.1 * mixture.covariances, 0.9 * mixture.covariances)
    ]
    gap = mixture.log_prob(x) - evidence_bound(x, other, mixture)
    return all_of(
        both_halves_raise=at_least(torch.stack(bounds).diff(), -1e-13),
        touches_after_e=close(torch.stack(touching), 0.0, atol=1e-13),
        gap_is_divergence_from_the_posterior=close(gap, kl_divergence(other, mixture.responsibilities(x)), atol=1e-12),
        no_other_mixture_is_higher=at_most(
            torch.stack([evidence_bound(x, r, each).mean() for each in moved]), bounds[-1]
        ),
        step_is_both=close(
            em_step(x, mixture, floor=0.0).means, weighted_moments(x, mixture.responsibilities(x), floor=0.0).means
        ),
    )


@claim("D6.0.7")
def descent_finds_what_em_finds() -> Evidence:
    """Adam on softmax weights and Cholesky roots ends at the likelihood of EM from the same start (Diehl ex. 6.3)."""
    torch.manual_seed(0)
    x, truth = three_bells().sample(300), three_bells()
    start = spread_start(x, 3, seed=1)
    climbed = next(islice(em_path(x, start, floor=0.0), 100, None))
    descended, heights = fit_by_descent(x, start, steps=150, rate=0.1)
    return all_of(
        same_height=close(descended.log_prob(x).mean(), climbed.log_prob(x).mean(), atol=2e-4),
        above_the_truth=at_least(climbed.log_prob(x).mean(), truth.log_prob(x).mean()),
        same_density=close(descended.log_prob(x), climbed.log_prob(x), atol=0.1),
        not_every_step_rises=at_most(heights.diff().min(), 0.0),
    )


@claim("D6.0.7")
def the_likelihood_has_no_largest_value() -> Evidence:
    """A component on a single row with variance v → 0 sends the likelihood to +∞: hence the floor (Diehl sec. 6)."""
    x = some_rows(100)

    def height(variance: float) -> Tensor:
        wide = torch.eye(2, dtype=torch.float64)
        needle = GaussianMixture(
            row(0.5, 0.5), torch.stack([x.mean(0), x[0]]), torch.stack([2 * wide, variance * wide])
        )
        return needle.log_prob(x).sum()

    heights = torch.stack([height(10.0**-k) for k in range(4, 200, 40)])
    one_row = torch.eye(2, dtype=torch.float64)[torch.zeros(100, dtype=torch.long)]
    one_row[0] = row(0.0, 1.0)  # component 1 answers for a single row
    return all_of(
        grows=at_least(heights.diff(), 50.0),
        refused_without_a_floor=raises(ValueError, lambda: weighted_moments(x, one_row, floor=0.0)),
        floor_helps=runs(lambda: weighted_moments(x, one_row, floor=1e-6), unless=ValueError),
    )


@erratum("D6.0.7", printed="φ ∈ ℝⁿ", right="φ in the simplex: φ_i ≥ 0, Σ φ_i = 1")
def weights_lie_in_the_simplex() -> Correction:
    """With weights anywhere in ℝⁿ, Σ φ_i N(x|μ_i, Σ_i) is no density (Diehl ex. 6.3)."""
    good, anywhere = three_bells(), row(1.0, -0.5, 1.2)
    places = torch.cartesian_prod(*[torch.linspace(-10, 10, 201, dtype=torch.float64)] * 2)
    bells = good.log_joint(places).exp() / good.weights

    def is_a_density(weights: Tensor) -> Evidence:
        density = bells @ weights
        return all_of(mass=close(density.sum() * 0.1**2, 1.0, atol=1e-4), not_negative=at_least(density, 0.0))

    return Correction(
        printed=is_a_density(anywhere),
        corrected=all_of(
            simplex=is_a_density(good.weights),
            others_are_refused=raises(ValueError, lambda: GaussianMixture(anywhere, good.means, good.covariances)),
            not_definite_is_refused=raises(
                ValueError, lambda: GaussianMixture(good.weights, good.means, -good.covariances)
            ),
        ),
    )
