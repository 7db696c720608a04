"""Claims about Langevin dynamics: where it settles, where it fails, what many levels mend (book sec. 13.2.7)."""

from math import sqrt

import numpy as np
import torch
from scipy import special, stats
from torch import Tensor

from parnassus.atlas import (
    Correction,
    Evidence,
    accepts,
    all_of,
    at_least,
    at_most,
    claim,
    close,
    erratum,
    rate,
    rejects,
)
from parnassus.diffusion.annealed_langevin import annealed_langevin
from parnassus.diffusion.claims.scores import slope
from parnassus.diffusion.claims.truths import SIGNS, mixture_nodes
from parnassus.diffusion.langevin import adjusted_langevin, langevin, langevin_path, stationary_variance
from parnassus.diffusion.mixture import RoundMixture
from parnassus.diffusion.noise_levels import geometric_levels
from parnassus.diffusion.score_matching import (
    LevelledScore,
    LevelWeight,
    denoising_matching,
    explicit_matching,
    matching_at_levels,
)

VARIANCE = 0.5
UNEVEN = RoundMixture.of(torch.tensor([[-5.0, -5.0], [5.0, 5.0]]), torch.ones(2), torch.tensor([0.2, 0.8]))
"""Two modes far apart, with a fifth and four fifths of the mass."""


def narrow(x: Tensor) -> Tensor:
    """The score of N(0, s²)."""
    return -x / VARIANCE


@claim("B13.2.7-1")
def unadjusted_steps_settle_too_wide_by_a_known_factor() -> Evidence:
    """On N(0, s²) steps of size c reach the variance s²/(1 − c/(2s²)), here s² = ½ (book eq. 13.87)."""
    torch.manual_seed(0)
    start = torch.zeros(30_000, 1, dtype=torch.float64)
    ends = {c: langevin(narrow, start, step=c, steps=round(4 / c)) for c in (0.05, 0.2, 0.6)}
    reached = torch.stack([end.var() for end in ends.values()])
    return close(reached, torch.tensor([stationary_variance(VARIANCE, c) for c in ends]), rtol=0.02)


@claim("B13.2.7-1")
def steps_of_twice_the_variance_are_too_long() -> Evidence:
    """Just below c = 2s² the walk stays near its stationary law, just above it leaves for good."""
    torch.manual_seed(0)
    start = torch.ones(1_000, 1, dtype=torch.float64)
    below, above = (langevin(narrow, start, step=share * 2 * VARIANCE, steps=400) for share in (0.9, 1.1))
    return all_of(
        below=close(below.var(), stationary_variance(VARIANCE, 0.9 * 2 * VARIANCE), rtol=0.15),
        above=at_least(above.abs().median(), 1e10),
        formula_above=at_least(stationary_variance(VARIANCE, 1.1 * 2 * VARIANCE), 1e300),
    )


@claim("B13.2.7-1")
def metropolis_makes_langevin_exact() -> Evidence:
    """With c = 0.4 the adjusted walk ends in N(0, ½), for all that a Kolmogorov-Smirnov test tells; the plain not."""
    torch.manual_seed(0)
    start = torch.randn(20_000, 1, dtype=torch.float64)
    exact = adjusted_langevin(lambda x: -x[:, 0].square() / (2 * VARIANCE), narrow, start, step=0.4, steps=40)
    plain = langevin(narrow, start, step=0.4, steps=40)
    tests = [stats.kstest(x[:, 0].numpy(), "norm", args=(0, sqrt(VARIANCE))).pvalue for x in (exact, plain)]
    return all_of(adjusted=accepts(tests[0]), plain=rejects(tests[1]), variance=close(exact.var(), VARIANCE, rtol=0.03))


@claim("B13.2.7-1")
def without_noise_it_climbs_to_the_nearest_maximum() -> Evidence:
    """At temperature 0 every start ends where the score vanishes, by the same path each time (book sec. 13.2.7)."""
    torch.manual_seed(0)
    mixture = RoundMixture.of(torch.tensor([[-2.0, 0.0], [2.0, 0.0]]).double(), torch.tensor([0.5, 0.5]).double())
    start = 3 * torch.randn(200, 2, dtype=torch.float64)
    path, again = (
        torch.stack(list(langevin_path(mixture.score, start, step=0.05, steps=400, temperature=0.0))) for _ in range(2)
    )
    nearest = torch.cdist(start, mixture.means).argmin(1)
    return all_of(
        at_rest=close(mixture.score(path[-1]), 0.0, atol=1e-6),
        spread=at_most(torch.cdist(path[-1], mixture.means).amin(1), 1e-3),
        nearest=close(torch.cdist(path[-1], mixture.means).argmin(1), nearest.double()),
        uphill=at_least(mixture.log_prob(path[-1]) - mixture.log_prob(path[0]), 0.0),
        same_path=close(path, again),
    )


@claim("B13.2.7-1")
def noise_parts_what_starts_on_the_ridge() -> Evidence:
    """Between two like modes the score is 0: without noise nothing moves, with it half of the walks go either way."""
    torch.manual_seed(0)
    mixture = RoundMixture.of(torch.tensor([[-2.0], [2.0]]).double(), torch.tensor([0.5, 0.5]).double())
    start = torch.zeros(4_000, 1, dtype=torch.float64)
    still, moved = (langevin(mixture.score, start, step=0.02, steps=200, temperature=heat) for heat in (0.0, 1.0))
    return all_of(
        still=close(still, 0.0),
        away=at_least((moved.abs() > 1).double().mean(), 0.95),
        right=close((moved > 0).double().mean(), 0.5, atol=0.04),
    )


@claim("B13.2.7-1")
def temperature_widens_the_law() -> Evidence:
    """At temperature τ the walk on N(0, s²) settles in N(0, τ s²), up to its known bias: p to the power 1/τ."""
    torch.manual_seed(0)
    start = torch.zeros(20_000, 1, dtype=torch.float64)
    ends = [langevin(narrow, start, step=0.1, steps=60, temperature=heat).var() for heat in (0.25, 4.0)]
    target = stationary_variance(VARIANCE, 0.1)
    return close(torch.stack(ends), torch.tensor([0.25 * target, 4 * target]), rtol=0.03)


@claim("B13.2.7-2")
def data_on_a_circle_have_no_score() -> Evidence:
    """On a circle the least denoising loss and the score beside it grow as 1/σ²; the weight λ = σ² mends the loss."""
    sigmas = torch.tensor([0.2, 0.1, 0.05, 0.025], dtype=torch.float64)
    least = torch.stack([_least_loss_on_a_circle(float(sigma)) for sigma in sigmas])
    beside = torch.tensor([[1.2, 0.0]], dtype=torch.float64)
    length = torch.stack([circle_score(beside, float(sigma)).norm() for sigma in sigmas])
    return all_of(
        loss=rate(sigmas, least, -2.0, atol=0.1),
        score_beside=rate(sigmas, length, -2.0, atol=0.1),
        weighted=close(sigmas.square() * least, 1.0, atol=0.1),
    )


def circle_score(x: Tensor, sigma: float) -> Tensor:
    """∇ log p_σ of the unit circle blurred by σ: radial, (I₁/I₀(r/σ²) − r)/σ²."""
    radius: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    argument = (radius / sigma**2).numpy()
    ratio = torch.from_numpy(special.i1e(argument) / special.i0e(argument))
    return (ratio - radius) / sigma**2 * x / radius


def _least_loss_on_a_circle(sigma: float) -> Tensor:
    """E‖∇ log p_σ(x̃) − (x − x̃)/σ²‖², over x̃ around x = (1, 0): all points of the circle are alike."""
    nodes, masses = (torch.from_numpy(part) for part in np.polynomial.hermite_e.hermegauss(40))
    masses = masses / masses.sum()
    noise = torch.cartesian_prod(nodes, nodes)
    x = torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand_as(noise)
    losses = denoising_matching(lambda y: circle_score(y, sigma), x, noise, std=sigma)
    return torch.outer(masses, masses).flatten() @ losses


@claim("B13.2.7-2")
def nobody_learns_where_nothing_is() -> Evidence:
    """A score wrong by 10 between two modes costs 0.002 of explicit loss; blurred to σ = 3 the same error costs 11."""
    centres, stds = torch.tensor([[-4.0], [4.0]]).double(), torch.ones(2, dtype=torch.float64) * 0.7
    mixture = RoundMixture.of(centres, stds)
    x, noise, mass = mixture_nodes(centres, stds)

    def cost(sigma: float) -> Tensor:
        """Explicit loss of a field wrong by 10 where |x| < 1, on the data blurred by σ."""

        def truth(y: Tensor) -> Tensor:
            return mixture.score(y, 1.0, sigma)

        return mass @ explicit_matching(lambda y: truth(y) + 10 * (y.abs() < 1), truth, x + sigma * noise)

    return all_of(clean=at_most(cost(0.0), 1e-2), blurred=at_least(cost(3.0), 10.0))


@claim("B13.2.7-2")
def plain_langevin_forgets_the_weights() -> Evidence:
    """From a uniform start half of the walks end in the mode of mass 0.8, within 3 %: it draws those who start near."""
    torch.manual_seed(0)
    end = langevin(UNEVEN.score, uniform_start(4_000), step=0.2, steps=100)
    return all_of(share=close(share_of_heavy(end), 0.5, atol=0.03), at_a_mode=at_most(_far(end), 0.02))


def uniform_start(count: int) -> Tensor:
    return 16 * torch.rand(count, 2) - 8


def share_of_heavy(x: Tensor) -> Tensor:
    return (x.sum(1) > 0).double().mean()


def _far(x: Tensor) -> Tensor:
    """The share of points more than 4 deviations from either mode."""
    return (torch.cdist(x, UNEVEN.means).amin(1) > 4).double().mean()


@erratum(
    "B13.2.7-2",
    printed="the gradient of the log zeroes the mixing coefficients",
    right="only where one component is alone; the mixture's score contains the weights",
)
def the_score_of_a_mixture_contains_its_weights() -> Correction:
    """Scores with weights 0.2/0.8 and 0.5/0.5 agree at the modes and differ between them (book sec. 13.2.7)."""
    even = RoundMixture.of(UNEVEN.means, UNEVEN.stds)
    between = torch.tensor([[0.0, 0.0], [0.05, 0.05]])
    return Correction(
        printed=close(UNEVEN.score(between), even.score(between), atol=0.1),
        corrected=close(UNEVEN.score(UNEVEN.means), even.score(UNEVEN.means), atol=1e-9),
    )


@claim("B13.2.7-3")
def a_blurred_mixture_is_a_wider_one() -> Evidence:
    """∫ p(x) N(x_t; x, σ²) dx by quadrature is the mixture with variances s_k² + σ² (book eq. 13.88)."""
    centres, stds = torch.tensor([[-1.0], [2.0]]).double(), torch.tensor([0.3, 0.6]).double()
    mixture, sigma = RoundMixture.of(centres, stds), 0.7
    x = torch.linspace(-6, 7, 2_001, dtype=torch.float64)
    mass = mixture.log_prob(x[:, None]).exp() * (x[1] - x[0])
    places = torch.linspace(-4, 5, 50, dtype=torch.float64)
    kernel = torch.distributions.Normal(x, sigma).log_prob(places[:, None]).exp()
    return close(kernel @ mass, mixture.log_prob(places[:, None], 1.0, sigma).exp(), atol=1e-12)


@claim("B13.2.7-3")
def every_positive_weight_leads_to_the_same_scores() -> Evidence:
    """At ∇ log p_{σ_t} the weighted loss has slope 0 along any change of any level, for λ = σ², 1 and σ⁴."""
    centres, stds = torch.tensor([[-1.0], [2.0]]).double(), torch.tensor([0.5, 0.8]).double()
    mixture, levels = RoundMixture.of(centres, stds), geometric_levels(3, 0.3, 2.0)
    x, noise, mass = mixture_nodes(centres, stds)

    def slope_at(level: int, weight: LevelWeight) -> Tensor:
        """Of the loss at this level, along sin(x) added to the true score."""
        s = torch.zeros((), dtype=torch.float64, requires_grad=True)

        def score(y: Tensor, t: Tensor) -> Tensor:
            return mixture.score(y, 1.0, levels[t][:, None]) + s * torch.sin(y)

        losses = matching_at_levels(score, levels, x, torch.full((len(x),), level), noise, weight=weight)
        return torch.autograd.grad(mass @ losses, s)[0]

    weights: list[LevelWeight] = [torch.square, torch.ones_like, lambda sigma: sigma**4]
    slopes = [slope_at(level, weight) for weight in weights for level in range(3)]
    return close(torch.stack(slopes), 0.0, atol=1e-4)


@erratum("B13.2.7-3", printed="s_θ(x, t) with the clean x", right="s_θ(x_t, t) with the point blurred to level t")
def each_level_must_see_its_own_blur() -> Correction:
    """On N(0, ½) data the field fitted at x_t is −x/(½ + σ_t²) at every level; at the clean x it is 0."""
    levels = geometric_levels(4, 0.1, 3.0)
    x, noise = VARIANCE**0.5 * SIGNS[:, :1], SIGNS[:, 1:]
    printed = torch.stack([slope(x, -noise / sigma) for sigma in levels])
    right = torch.stack([slope(x + sigma * noise, -noise / sigma) for sigma in levels])
    truth = -1 / (VARIANCE + levels.square())
    return Correction(printed=close(printed, truth, rtol=0.05), corrected=close(right, truth, rtol=1e-10))


@claim("B13.2.7-4", "B13.2.7-2")
def annealing_brings_the_weights_back() -> Evidence:
    """Ten levels from σ = 20 to 0.01, 100 steps each: three quarters end in the mode of mass 0.8 (plain: half)."""
    torch.manual_seed(0)
    levels = geometric_levels(10, 0.01, 20.0)
    end = annealed_langevin(_blurred(levels), levels, uniform_start(2_000))
    return all_of(share=close(share_of_heavy(end), 0.76, atol=0.04), at_a_mode=at_most(_far(end), 0.02))


@claim("B13.2.7-4")
def each_stage_ends_in_its_own_blur() -> Evidence:
    """On a single point annealing leaves, after each level, the variance σ_t²/(1 − f/2) of steps f σ_t²."""
    torch.manual_seed(0)
    levels = geometric_levels(5, 0.1, 2.0)
    point = RoundMixture.of(torch.zeros(1, 1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64))
    start = 2.0 * torch.randn(8_000, 1, dtype=torch.float64)
    shares = []
    for last in (2, 0):
        end = annealed_langevin(_blurred(levels[last:], point), levels[last:], start, steps=40, factor=0.2)
        shares.append(end.var() / levels[last].square())
    return close(torch.stack(shares), 1 / (1 - 0.2 / 2), rtol=0.04)


def _blurred(levels: Tensor, mixture: RoundMixture = UNEVEN) -> LevelledScore:
    """The exact score of the mixture under each blur."""
    return lambda x, t: mixture.score(x, 1.0, levels.to(x)[t][:, None])
