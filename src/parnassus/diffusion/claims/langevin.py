"""Claims about Langevin dynamics: stationary distribution, failures and annealing (book sec. 13.2.7)."""

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
    claim,
    close,
    erratum,
    greater_equal,
    less_equal,
    rate,
    rejects,
)
from parnassus.diffusion.claims.exact_expectations import SIGNS, mixture_nodes
from parnassus.diffusion.claims.score_matching import best_coefficient
from parnassus.diffusion.samplers.annealed_langevin import annealed_langevin
from parnassus.diffusion.samplers.langevin import adjusted_langevin, langevin, langevin_path, stationary_variance
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture, upper_mode_fraction
from parnassus.diffusion.scores.noise_levels import geometric_levels
from parnassus.diffusion.scores.score_matching import (
    LevelWeight,
    denoising_score_matching,
    explicit_score_matching,
    multiscale_score_matching,
)

VARIANCE = 0.5
UNEVEN = IsotropicMixture.from_components(
    torch.tensor([[-5.0, -5.0], [5.0, 5.0]]), torch.ones(2), torch.tensor([0.2, 0.8])
)
"""Two distant modes with weights 0.2 and 0.8."""


def normal_score(x: Tensor) -> Tensor:
    """The score of N(0, s²)."""
    return -x / VARIANCE


@claim("B13.2.7-1")
def unadjusted_langevin_has_a_known_bias_of_the_variance() -> Evidence:
    """On N(0, s²) the stationary variance for steps of size c is s²/(1 − c/(2s²)), here s² = ½ (book eq. 13.87)."""
    torch.manual_seed(0)
    start = torch.zeros(30_000, 1, dtype=torch.float64)
    ends = {c: langevin(normal_score, start, step=c, steps=round(4 / c)) for c in (0.05, 0.2, 0.6)}
    variances = torch.stack([end.var() for end in ends.values()])
    return close(variances, torch.tensor([stationary_variance(VARIANCE, c) for c in ends]), rtol=0.02)


@claim("B13.2.7-1")
def unadjusted_langevin_diverges_for_steps_above_twice_the_variance() -> Evidence:
    """The chain converges for steps c just below 2s² and diverges just above."""
    torch.manual_seed(0)
    start = torch.ones(1_000, 1, dtype=torch.float64)
    below, above = (langevin(normal_score, start, step=factor * 2 * VARIANCE, steps=400) for factor in (0.9, 1.1))
    return all_of(
        below=close(below.var(), stationary_variance(VARIANCE, 0.9 * 2 * VARIANCE), rtol=0.15),
        above=greater_equal(above.abs().median(), 1e10),
        formula_above=greater_equal(stationary_variance(VARIANCE, 1.1 * 2 * VARIANCE), 1e300),
    )


@claim("B13.2.7-1")
def metropolis_adjustment_makes_langevin_exact() -> Evidence:
    """With c = 0.4 a Kolmogorov-Smirnov test for N(0, ½) rejects unadjusted, but not adjusted samples."""
    torch.manual_seed(0)
    start = torch.randn(20_000, 1, dtype=torch.float64)
    exact = adjusted_langevin(lambda x: -x[:, 0].square() / (2 * VARIANCE), normal_score, start, step=0.4, steps=40)
    plain = langevin(normal_score, start, step=0.4, steps=40)
    tests = [stats.kstest(x[:, 0].numpy(), "norm", args=(0, sqrt(VARIANCE))).pvalue for x in (exact, plain)]
    return all_of(
        adjusted=accepts(tests[0]), unadjusted=rejects(tests[1]), variance=close(exact.var(), VARIANCE, rtol=0.03)
    )


@claim("B13.2.7-1")
def without_noise_langevin_converges_to_a_local_maximum() -> Evidence:
    """At temperature 0 the dynamics is deterministic and ends at the nearest mode (book sec. 13.2.7)."""
    torch.manual_seed(0)
    mixture = IsotropicMixture.from_components(
        torch.tensor([[-2.0, 0.0], [2.0, 0.0]]).double(), torch.tensor([0.5, 0.5]).double()
    )
    start = 3 * torch.randn(200, 2, dtype=torch.float64)
    path, again = (
        torch.stack(list(langevin_path(mixture.score, start, step=0.05, steps=400, temperature=0.0))) for _ in range(2)
    )
    nearest = torch.cdist(start, mixture.means).argmin(1)
    return all_of(
        score=close(mixture.score(path[-1]), 0.0, atol=1e-6),
        distance_to_mode=less_equal(torch.cdist(path[-1], mixture.means).amin(1), 1e-3),
        nearest=close(torch.cdist(path[-1], mixture.means).argmin(1), nearest.double()),
        density_increase=greater_equal(mixture.log_prob(path[-1]) - mixture.log_prob(path[0]), 0.0),
        same_path=close(path, again),
    )


@claim("B13.2.7-1")
def noise_breaks_the_symmetry_between_modes() -> Evidence:
    """Points between two equal modes, where the score is 0, stay without noise; with noise half reach each mode."""
    torch.manual_seed(0)
    mixture = IsotropicMixture.from_components(
        torch.tensor([[-2.0], [2.0]]).double(), torch.tensor([0.5, 0.5]).double()
    )
    start = torch.zeros(4_000, 1, dtype=torch.float64)
    without_noise, with_noise = (
        langevin(mixture.score, start, step=0.02, steps=200, temperature=temperature) for temperature in (0.0, 1.0)
    )
    return all_of(
        without_noise=close(without_noise, 0.0),
        fraction_at_modes=greater_equal((with_noise.abs() > 1).double().mean(), 0.95),
        positive_fraction=close((with_noise > 0).double().mean(), 0.5, atol=0.04),
    )


@claim("B13.2.7-1")
def temperature_scales_the_variance() -> Evidence:
    """At temperature τ the stationary distribution is p^(1/τ), here N(0, τ s²), up to the known bias."""
    torch.manual_seed(0)
    start = torch.zeros(20_000, 1, dtype=torch.float64)
    ends = [
        langevin(normal_score, start, step=0.1, steps=60, temperature=temperature).var() for temperature in (0.25, 4.0)
    ]
    target = stationary_variance(VARIANCE, 0.1)
    return close(torch.stack(ends), torch.tensor([0.25 * target, 4 * target]), rtol=0.03)


@claim("B13.2.7-2")
def the_score_of_data_on_a_circle_diverges() -> Evidence:
    """For data on a circle minimum denoising loss and score grow as 1/σ²; the weight λ = σ² keeps the loss bounded."""
    sigmas = torch.tensor([0.2, 0.1, 0.05, 0.025], dtype=torch.float64)
    losses = torch.stack([_min_loss_on_circle(float(sigma)) for sigma in sigmas])
    point = torch.tensor([[1.2, 0.0]], dtype=torch.float64)
    norms = torch.stack([circle_score(point, float(sigma)).norm() for sigma in sigmas])
    return all_of(
        loss=rate(sigmas, losses, -2.0, atol=0.1),
        score_off_the_circle=rate(sigmas, norms, -2.0, atol=0.1),
        weighted_loss=close(sigmas.square() * losses, 1.0, atol=0.1),
    )


def circle_score(x: Tensor, sigma: float) -> Tensor:
    """∇ log p_σ of the unit circle with noise σ, which is radial: (I₁/I₀(r/σ²) − r)/σ²."""
    radius: Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    argument = (radius / sigma**2).numpy()
    ratio = torch.from_numpy(special.i1e(argument) / special.i0e(argument))
    return (ratio - radius) / sigma**2 * x / radius


def _min_loss_on_circle(sigma: float) -> Tensor:
    """E‖∇ log p_σ(x̃) − (x − x̃)/σ²‖² over x̃ around x = (1, 0), which suffices by symmetry."""
    nodes, masses = (torch.from_numpy(part) for part in np.polynomial.hermite_e.hermegauss(40))
    masses = masses / masses.sum()
    noise = torch.cartesian_prod(nodes, nodes)
    x = torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand_as(noise)
    losses = denoising_score_matching(lambda y: circle_score(y, sigma), x, noise, std=sigma)
    return torch.outer(masses, masses).flatten() @ losses


@claim("B13.2.7-2")
def errors_in_low_density_regions_hardly_affect_the_loss() -> Evidence:
    """A score error of 10 between two modes adds 0.002 to the explicit loss, and 11 for noisy data with σ = 3."""
    centres, stds = torch.tensor([[-4.0], [4.0]]).double(), torch.ones(2, dtype=torch.float64) * 0.7
    mixture = IsotropicMixture.from_components(centres, stds)
    x, noise, mass = mixture_nodes(centres, stds)

    def loss(sigma: float) -> Tensor:
        """Explicit loss of a field with an error of 10 for |x| < 1, on data with noise σ."""

        def truth(y: Tensor) -> Tensor:
            return mixture.score(y, 1.0, sigma)

        return mass @ explicit_score_matching(lambda y: truth(y) + 10 * (y.abs() < 1), truth, x + sigma * noise)

    return all_of(clean=less_equal(loss(0.0), 1e-2), noisy=greater_equal(loss(3.0), 10.0))


@claim("B13.2.7-2")
def plain_langevin_ignores_the_mode_weights() -> Evidence:
    """From a uniform initial distribution half of the samples end in the mode of weight 0.8, within 3 %."""
    torch.manual_seed(0)
    end = langevin(UNEVEN.score, uniform_start(4_000), step=0.2, steps=100)
    return all_of(
        mode_fraction=close(upper_mode_fraction(end), 0.5, atol=0.03), outliers=less_equal(_outlier_fraction(end), 0.02)
    )


def uniform_start(count: int) -> Tensor:
    return 16 * torch.rand(count, 2) - 8


def _outlier_fraction(x: Tensor) -> Tensor:
    """The fraction of points more than 4 standard deviations from both modes."""
    return (torch.cdist(x, UNEVEN.means).amin(1) > 4).double().mean()


@erratum(
    "B13.2.7-2",
    printed="the gradient of the log zeroes the mixing coefficients",
    right="only where one component dominates; the score of the mixture contains the weights",
)
def the_score_of_a_mixture_contains_its_weights() -> Correction:
    """The scores for weights 0.2/0.8 and 0.5/0.5 agree at the modes and differ between them (book sec. 13.2.7)."""
    equal_weights = IsotropicMixture.from_components(UNEVEN.means, UNEVEN.stds)
    between = torch.tensor([[0.0, 0.0], [0.05, 0.05]])
    return Correction(
        printed=close(UNEVEN.score(between), equal_weights.score(between), atol=0.1),
        corrected=close(UNEVEN.score(UNEVEN.means), equal_weights.score(UNEVEN.means), atol=1e-9),
    )


@claim("B13.2.7-3")
def gaussian_noise_widens_the_components_of_a_mixture() -> Evidence:
    """∫ p(x) N(x_t; x, σ²) dx by quadrature is the mixture with variances s_k² + σ² (book eq. 13.88)."""
    centres, stds = torch.tensor([[-1.0], [2.0]]).double(), torch.tensor([0.3, 0.6]).double()
    mixture, sigma = IsotropicMixture.from_components(centres, stds), 0.7
    x = torch.linspace(-6, 7, 2_001, dtype=torch.float64)
    mass = mixture.log_prob(x[:, None]).exp() * (x[1] - x[0])
    points = torch.linspace(-4, 5, 50, dtype=torch.float64)
    kernel = torch.distributions.Normal(x, sigma).log_prob(points[:, None]).exp()
    return close(kernel @ mass, mixture.log_prob(points[:, None], 1.0, sigma).exp(), atol=1e-12)


@claim("B13.2.7-3")
def every_positive_weight_has_the_same_optimal_scores() -> Evidence:
    """At ∇ log p_{σ_t} the derivative of the weighted loss vanishes at every level, for λ = σ², 1 and σ⁴."""
    centres, stds = torch.tensor([[-1.0], [2.0]]).double(), torch.tensor([0.5, 0.8]).double()
    mixture, levels = IsotropicMixture.from_components(centres, stds), geometric_levels(3, 0.3, 2.0)
    x, noise, mass = mixture_nodes(centres, stds)

    def derivative(level: int, weight: LevelWeight) -> Tensor:
        """Of the loss at this level, in the direction sin(x) at the true score."""
        s = torch.zeros((), dtype=torch.float64, requires_grad=True)

        def score(y: Tensor, t: Tensor) -> Tensor:
            return mixture.score(y, 1.0, levels[t][:, None]) + s * torch.sin(y)

        losses = multiscale_score_matching(score, levels, x, torch.full((len(x),), level), noise, weight=weight)
        return torch.autograd.grad(mass @ losses, s)[0]

    weights: list[LevelWeight] = [torch.square, torch.ones_like, lambda sigma: sigma**4]
    derivatives = [derivative(level, weight) for weight in weights for level in range(3)]
    return close(torch.stack(derivatives), 0.0, atol=1e-4)


@erratum("B13.2.7-3", printed="s_θ(x, t) with the clean x", right="s_θ(x_t, t) with the noisy x_t of level t")
def the_score_network_needs_the_noisy_input() -> Correction:
    """For N(0, ½) data the linear fit at x_t is −x/(½ + σ_t²) at every level; at the clean x it is 0."""
    levels = geometric_levels(4, 0.1, 3.0)
    clean = VARIANCE**0.5 * SIGNS[:, :1]
    printed = torch.stack([best_coefficient(lambda _: clean, float(sigma)) for sigma in levels])
    corrected = torch.stack([best_coefficient(lambda noisy: noisy, float(sigma)) for sigma in levels])
    truth = -1 / (VARIANCE + levels.square())
    return Correction(printed=close(printed, truth, rtol=0.05), corrected=close(corrected, truth, rtol=1e-10))


@claim("B13.2.7-4", "B13.2.7-2")
def annealed_langevin_recovers_the_mode_weights() -> Evidence:
    """With ten noise levels of 100 steps, 76 % of the samples reach the mode of weight 0.8 (plain Langevin: half)."""
    torch.manual_seed(0)
    levels = geometric_levels(10, 0.01, 20.0)
    end = annealed_langevin(UNEVEN.noise_conditional_score(levels), levels, uniform_start(2_000))
    return all_of(
        mode_fraction=close(upper_mode_fraction(end), 0.76, atol=0.04),
        outliers=less_equal(_outlier_fraction(end), 0.02),
    )


@claim("B13.2.7-4")
def each_noise_level_ends_in_its_stationary_variance() -> Evidence:
    """For a point mass the variance after each level is σ_t²/(1 − f/2), with steps f σ_t²."""
    torch.manual_seed(0)
    levels = geometric_levels(5, 0.1, 2.0)
    point = IsotropicMixture.from_components(
        torch.zeros(1, 1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    )
    start = 2.0 * torch.randn(8_000, 1, dtype=torch.float64)
    ratios = []
    for last in (2, 0):
        score = point.noise_conditional_score(levels[last:])
        end = annealed_langevin(score, levels[last:], start, steps=40, factor=0.2)
        ratios.append(end.var() / levels[last].square())
    return close(torch.stack(ratios), 1 / (1 - 0.2 / 2), rtol=0.04)
