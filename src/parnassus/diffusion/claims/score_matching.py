"""Claims about scores and score matching (book secs. 13.2.6-13.2.8)."""

from collections.abc import Callable
from math import pi

import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.func import jacrev, vmap

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.predictions import score_from_noise
from parnassus.diffusion.chain.schedules import linear_schedule
from parnassus.diffusion.claims.exact_expectations import SIGNS, mixture_nodes
from parnassus.diffusion.networks.score_networks import mlp_energy, mlp_score
from parnassus.diffusion.scores.energy_based_score import EnergyBasedScore
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture
from parnassus.diffusion.scores.score_matching import (
    ScoreFunction,
    denoising_score_matching,
    explicit_score_matching,
    implicit_score_matching,
    sliced_score_matching,
)
from parnassus.diffusion.scores.tweedie import tweedie_covariance, tweedie_mean
from parnassus.diffusion.scores.vector_fields import (
    divergence,
    hutchinson_divergence,
    jacobian_asymmetry,
    value_and_jacobian,
)

CENTRES = torch.tensor([[-1.0], [2.0]], dtype=torch.float64)
STDS = torch.tensor([0.5, 0.8], dtype=torch.float64)
MIXTURE = IsotropicMixture.from_components(CENTRES, STDS)
VARIANCE, NOISE = 0.5, 0.3  # of the data and of the noise added, s² and σ²


def vector_fields() -> list[ScoreFunction]:
    """One-dimensional vector fields s for identities that hold for every s."""
    return [torch.sin, torch.tanh, lambda x: -x, lambda x: 0.3 * x.square() - 1, torch.zeros_like]


@claim("B13.2.6-1")
def the_score_is_independent_of_the_normalising_constant() -> Evidence:
    """−∇f does not change if a constant is added to f; for f = (x − m)²/(2s²) it is the score of N(m, s²)."""
    torch.manual_seed(0)
    x = torch.randn(50, 2, dtype=torch.float64)
    score = EnergyBasedScore(mlp_energy(2, 16).double())
    before = score(x)
    last = score.energy[-1]  # type: ignore[index]  # a Sequential
    with torch.no_grad():
        last.bias += 7.0
    shift = score.unnormalised_log_prob(x)
    with torch.no_grad():
        last.bias -= 7.0
    quadratic = EnergyBasedScore(QuadraticEnergy())
    return all_of(
        shifted=close(shift - score.unnormalised_log_prob(x), -7.0, atol=1e-12),
        same_score=close(score(x), before, atol=1e-12),
        normal_distribution=close(quadratic(x), -(x - 0.5) / 0.7, atol=1e-12),
    )


class QuadraticEnergy(nn.Module):
    """f(x) = ‖x − m‖²/(2s²) with m = 0.5, s² = 0.7."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - 0.5).square().sum(1) / 1.4


@claim("B13.2.6-1")
def the_gradient_of_an_energy_has_a_symmetric_jacobian() -> Evidence:
    """The Jacobian of −∇f is symmetric up to rounding; that of an unconstrained network is not."""
    torch.manual_seed(0)
    x = torch.randn(100, 3, dtype=torch.float64)
    return all_of(
        energy=less_equal(jacobian_asymmetry(EnergyBasedScore(mlp_energy(3, 32).double()), x), 1e-12),
        unconstrained=greater_equal(jacobian_asymmetry(mlp_score(3, 32).double(), x).median(), 0.1),
    )


@claim("B13.2.6-2")
def explicit_score_matching_is_the_squared_distance_of_scores() -> Evidence:
    """The loss is 0 at the true score, and s² (1/s² − 1/r²)² for the score of N(0, r²) on N(0, s²) (book eq. 13.84)."""
    x = VARIANCE**0.5 * SIGNS[:, :1]  # exact for quadratic functions of x
    truth = explicit_score_matching(lambda y: -y / VARIANCE, lambda y: -y / VARIANCE, x)
    other = explicit_score_matching(lambda y: -y / 0.9, lambda y: -y / VARIANCE, x).mean()
    return all_of(
        true_score=close(truth, 0.0, atol=1e-15),
        other_score=close(other, VARIANCE * (1 / VARIANCE - 1 / 0.9) ** 2, rtol=1e-12),
    )


@claim("B13.2.6-3")
def denoising_equals_explicit_score_matching_of_the_noisy_density() -> Evidence:
    """E[denoising] − E_{p_σ}[explicit] is the same constant for every field (book eqs. 13.84-13.85; Vincent 2011)."""
    x, noise, mass = mixture_nodes(CENTRES, STDS)
    std = NOISE**0.5
    noisy = x + std * noise

    def truth(y: Tensor) -> Tensor:
        return MIXTURE.score(y, 1.0, std)

    losses = [mass @ denoising_score_matching(field, x, noise, std=std) for field in (*vector_fields(), truth)]
    gaps = [
        loss - mass @ explicit_score_matching(field, truth, noisy)
        for loss, field in zip(losses, (*vector_fields(), truth), strict=True)
    ]
    constant = 1 / NOISE - mass @ truth(noisy)[:, 0].square()
    return all_of(
        constant=close(torch.stack(gaps), constant, rtol=1e-4),
        different_fields=greater_equal(torch.stack(losses).std(), 0.1),
    )


def best_coefficient(field: Callable[[Tensor], Tensor], std: float = NOISE**0.5) -> Tensor:
    """The a that minimises denoising score matching of a · field(x̃), exactly, for x ~ N(0, s²).

    The loss is a parabola in a, known from three points.
    """
    x, noise = VARIANCE**0.5 * SIGNS[:, :1], SIGNS[:, 1:]

    def loss(a: float) -> Tensor:
        return denoising_score_matching(lambda noisy: a * field(noisy), x, noise, std=std).mean()

    below, centre, above = loss(-1.0), loss(0.0), loss(1.0)
    return (below - above) / (2 * (below + above - 2 * centre))


@erratum("B13.2.6-3", printed="s_θ(x) with the clean x", right="s_θ(x̃) with the noisy x̃")
def denoising_score_matching_needs_the_noisy_input() -> Correction:
    """A linear fit at the clean x is 0, since the target has mean 0 given x; at x̃ it is −x/(s² + σ²)."""
    clean = VARIANCE**0.5 * SIGNS[:, :1]
    return Correction(
        printed=close(best_coefficient(lambda _: clean), -1 / (VARIANCE + NOISE), rtol=0.05),
        corrected=close(best_coefficient(lambda noisy: noisy), -1 / (VARIANCE + NOISE), rtol=1e-12),
    )


@erratum("B13.2.6-3", printed="p_σ(x̃|x) = (x − x̃)²/σ²", right="∇ log p_σ(x̃|x) = (x − x̃)/σ²")
def the_target_is_a_gradient() -> Correction:
    """The loss vanishes at the gradient of the normal log-density, by autograd, and not at (x − x̃)²/σ²."""
    x, noise = torch.tensor([[0.3], [-1.0], [2.0]]).double(), torch.tensor([[0.4], [-1.5], [-1.8]]).double()

    def gradient(noisy: Tensor) -> Tensor:
        leaf = noisy.detach().requires_grad_()
        return torch.autograd.grad(Normal(x, NOISE**0.5).log_prob(leaf).sum(), leaf)[0]

    printed = denoising_score_matching(lambda noisy: (x - noisy).square() / NOISE, x, noise, std=NOISE**0.5)
    return Correction(
        printed=close(printed, 0.0, atol=0.05),
        corrected=close(denoising_score_matching(gradient, x, noise, std=NOISE**0.5), 0.0, atol=1e-12),
    )


@erratum("B13.2.6-3", printed="equivalent to (13.84), the score of p", right="equivalent to it for p_σ, the noisy data")
def denoising_finds_the_score_of_the_noisy_data() -> Correction:
    """With s² = ½ and σ² = 0.3 the coefficient is −1.25, that of N(0, s² + σ²), and not −2, that of the clean data."""
    coefficient = best_coefficient(lambda noisy: noisy)
    return Correction(printed=close(coefficient, -2.0, rtol=0.05), corrected=close(coefficient, -1.25, rtol=1e-12))


@claim("B13.2.6-4")
def the_score_of_the_kernel_is_the_scaled_noise() -> Evidence:
    """∇ log q(x_t | x_0) = −ε/√(1 − ᾱ_t), by autograd, at every step (book sec. 13.3)."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.arange(1_000)
    x0, noise = torch.randn(2, 1_000, 2, dtype=torch.float64)
    x = diffuse(schedule, x0, t, noise).requires_grad_()
    alpha_bar = schedule.alpha_bar[:, None]
    kernel = Normal(alpha_bar.sqrt() * x0, (1 - alpha_bar).sqrt())
    (gradient,) = torch.autograd.grad(kernel.log_prob(x).sum(), x)
    return close(score_from_noise(schedule, t, noise), gradient, rtol=1e-7)


@claim("B13.2.6-4")
def the_score_gives_mean_and_covariance_of_the_clean_data() -> Evidence:
    """Mean and covariance of x_0 given x = a x_0 + b ε, from the score only, agree with Bayes' rule (Tweedie)."""
    torch.manual_seed(0)
    means, stds = torch.tensor([[-1.0, 0.0], [1.0, 1.0]], dtype=torch.float64), torch.tensor([0.4, 0.7]).double()
    mixture, scale, noise = IsotropicMixture.from_components(means, stds), 0.8, 0.6
    x = torch.randn(40, 2, dtype=torch.float64)
    posterior = mixture.log_posterior(x, scale, noise).exp()
    variance = (scale * stds).square() + noise**2
    component_means = means + (scale * stds.square() / variance)[:, None] * (x[:, None] - scale * means)
    within = stds.square() * noise**2 / variance  # variance of x_0 given x and its component
    mean = (posterior[..., None] * component_means).sum(1)
    deviation = component_means - mean[:, None]
    outer = (posterior[..., None, None] * deviation[..., :, None] * deviation[..., None, :]).sum(1)
    covariance = outer + (posterior @ within)[:, None, None] * torch.eye(2, dtype=torch.float64)

    def score(y: Tensor) -> Tensor:
        return mixture.score(y, scale, noise)

    return all_of(
        mean=close(tweedie_mean(score, x, noise_std=noise, scale=scale), mean, atol=1e-10),
        covariance=close(tweedie_covariance(score, x, noise_std=noise, scale=scale), covariance, atol=1e-10),
    )


@claim("B13.2.8-1")
def implicit_score_matching_is_half_of_explicit_up_to_a_constant() -> Evidence:
    """E[tr ∇s + ½‖s‖²] = ½ E‖s − ∇log p‖² − ½ E‖∇log p‖² for every field (book sec. 13.2.8)."""
    x = torch.linspace(-8, 10, 2_001, dtype=torch.float64)[:, None]
    mass = MIXTURE.log_prob(x).exp() * (x[1] - x[0])  # exact up to rounding for functions that vanish at both ends
    constant = mass @ MIXTURE.score(x)[:, 0].square()
    sides = [
        (
            mass @ implicit_score_matching(field, x),
            mass @ explicit_score_matching(field, MIXTURE.score, x) / 2 - constant / 2,
        )
        for field in (*vector_fields(), MIXTURE.score)
    ]
    left, right = (torch.stack(side) for side in zip(*sides, strict=True))
    return close(left, right, atol=1e-10)


@claim("B13.2.8-1")
def implicit_score_matching_finds_a_linear_score_from_data() -> Evidence:
    """Among the fields a x on data of variance s², a = −1/s² minimises tr ∇s + ½‖s‖²."""
    x = VARIANCE**0.5 * SIGNS[:, :1]

    def loss(a: float) -> Tensor:
        return implicit_score_matching(lambda y: a * y, x).mean()

    best = -1 / VARIANCE
    return all_of(
        derivative=close((loss(best + 1e-3) - loss(best - 1e-3)) / 2e-3, 0.0, atol=1e-9),
        value=close(loss(best), -1 / (2 * VARIANCE), rtol=1e-12),
        increase_elsewhere=greater_equal(torch.stack([loss(best - 0.1), loss(best + 0.1)]) - loss(best), 1e-3),
    )


@claim("B13.2.8-1")
def implicit_score_matching_needs_a_density_that_vanishes_at_the_boundary() -> Evidence:
    """For e^(−x) on x > 0, which is discontinuous at 0, the optimal constant field is 0 instead of the true −1."""
    constants = torch.linspace(-2, 1, 31, dtype=torch.float64)
    x = -torch.linspace(0.0005, 0.9995, 1_000, dtype=torch.float64).log()[:, None]  # quantiles

    def constant(value: Tensor) -> ScoreFunction:
        return lambda y: value + 0 * y

    implicit = torch.stack([implicit_score_matching(constant(value), x).mean() for value in constants])
    explicit = torch.stack(
        [explicit_score_matching(constant(value), lambda y: -(y**0), x).mean() for value in constants]
    )
    return all_of(
        explicit=close(constants[explicit.argmin()], -1.0, atol=1e-9),
        implicit=close(constants[implicit.argmin()], 0.0, atol=1e-9),
    )


@claim("B13.2.8-1")
def random_projections_estimate_the_divergence() -> Evidence:
    """Over all sign vectors v the mean of vᵀ∇s v is tr ∇s, that of the sliced loss the implicit loss (Hutchinson)."""
    torch.manual_seed(0)
    network = mlp_score(3, 16).double()
    x = torch.randn(20, 3, dtype=torch.float64)
    sign_vectors = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 3)
    probes = [signs.expand_as(x) for signs in sign_vectors]
    traces = torch.stack([hutchinson_divergence(network, x, probe)[1] for probe in probes])
    losses = torch.stack([sliced_score_matching(network, x, probe) for probe in probes])
    jacobian = vmap(jacrev(network))(x)
    return all_of(
        trace=close(traces.mean(0), divergence(network, x)[1], atol=1e-12),
        jacobian=close(value_and_jacobian(network, x)[1], jacobian, atol=1e-12),
        trace_of_the_jacobian=close(jacobian.diagonal(dim1=1, dim2=2).sum(1), divergence(network, x)[1], atol=1e-12),
        loss=close(losses.mean(0), implicit_score_matching(network, x), atol=1e-12),
    )


@claim("B13.2.8-1")
def rademacher_projections_have_a_smaller_variance_than_gaussian_ones() -> Evidence:
    """Var vᵀHv is 2(‖H‖² − Σ H_ii²) for signs and 2‖H‖² for normals, H the symmetric part of ∇s."""
    torch.manual_seed(0)
    matrix = torch.randn(6, 6, dtype=torch.float64)
    symmetric = (matrix + matrix.mT) / 2
    x = torch.zeros(200_000, 6, dtype=torch.float64)
    signs, normals = torch.randint(0, 2, x.shape).double() * 2 - 1, torch.randn_like(x)
    variances = [hutchinson_divergence(lambda y: y @ matrix.mT, x, probe)[1].var() for probe in (signs, normals)]
    total = 2 * symmetric.square().sum()
    return all_of(
        signs=close(variances[0], total - 2 * symmetric.diagonal().square().sum(), rtol=0.03),
        normals=close(variances[1], total, rtol=0.03),
    )


@claim("B13.2.8-1")
def an_energy_is_learned_without_its_normalising_constant() -> Evidence:
    """Among energies x²/(2v) the implicit loss is minimal at the variance of the data, without using Z = √(2πv)."""
    x = VARIANCE**0.5 * SIGNS[:, :1]
    variances = torch.linspace(0.2, 1.0, 81, dtype=torch.float64)
    losses = torch.stack(
        [implicit_score_matching(EnergyBasedScore(ScaledEnergy(float(v))), x).mean() for v in variances]
    )
    likelihood = x.square().mean() / (2 * variances) + (2 * pi * variances).log() / 2
    return all_of(
        score_matching=close(variances[losses.argmin()], VARIANCE, atol=1e-9),
        maximum_likelihood=close(variances[likelihood.argmin()], VARIANCE, atol=1e-9),
    )


class ScaledEnergy(nn.Module):
    """f(x) = x²/(2v)."""

    def __init__(self, variance: float) -> None:
        super().__init__()
        self.variance = variance

    def forward(self, x: Tensor) -> Tensor:
        return x.square().sum(1) / (2 * self.variance)
