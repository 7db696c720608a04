"""Claims about scores and the ways to match them (book secs. 13.2.6-13.2.8)."""

from math import pi

import torch
from torch import Tensor, nn
from torch.distributions import Normal

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.diffusion.claims.truths import SIGNS, mixture_nodes
from parnassus.diffusion.energy_score import EnergyScore
from parnassus.diffusion.fields import asymmetry, divergence, probed_divergence
from parnassus.diffusion.mixture import RoundMixture
from parnassus.diffusion.process import diffuse, score_from_noise
from parnassus.diffusion.schedules import linear_schedule
from parnassus.diffusion.score_matching import (
    Score,
    denoising_matching,
    explicit_matching,
    implicit_matching,
    sliced_matching,
)
from parnassus.diffusion.score_networks import plain_energy, plain_score
from parnassus.diffusion.tweedie import tweedie_covariance, tweedie_mean

CENTRES = torch.tensor([[-1.0], [2.0]], dtype=torch.float64)
STDS = torch.tensor([0.5, 0.8], dtype=torch.float64)
MIXTURE = RoundMixture.of(CENTRES, STDS)
VARIANCE, NOISE = 0.5, 0.3  # of the data and of the noise added, s² and σ²


def fields() -> list[Score]:
    """Vector fields on the line of different shapes: an identity in s must hold for each of them."""
    return [torch.sin, torch.tanh, lambda x: -x, lambda x: 0.3 * x.square() - 1, torch.zeros_like]


@claim("B13.2.6-1")
def the_score_does_not_know_the_normaliser() -> Evidence:
    """−∇f is unchanged by a constant added to f; of the energy (x − m)²/(2s²) it is the score of N(m, s²)."""
    torch.manual_seed(0)
    x = torch.randn(50, 2, dtype=torch.float64)
    score = EnergyScore(plain_energy(2, 16).double())
    before = score(x)
    last = score.energy[-1]  # type: ignore[index]  # a Sequential
    with torch.no_grad():
        last.bias += 7.0
    shift = score.unnormalised_log_prob(x)
    with torch.no_grad():
        last.bias -= 7.0
    bowl = EnergyScore(Bowl())
    return all_of(
        shifted=close(shift - score.unnormalised_log_prob(x), -7.0, atol=1e-12),
        same_score=close(score(x), before, atol=1e-12),
        of_a_normal=close(bowl(x), -(x - 0.5) / 0.7, atol=1e-12),
    )


class Bowl(nn.Module):
    """f(x) = ‖x − m‖²/(2s²) with m = 0.5, s² = 0.7."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - 0.5).square().sum(1) / 1.4


@claim("B13.2.6-1")
def only_an_energy_is_sure_to_have_no_curl() -> Evidence:
    """The Jacobian of −∇f is symmetric to rounding; that of a free network is not, not even nearly."""
    torch.manual_seed(0)
    x = torch.randn(100, 3, dtype=torch.float64)
    return all_of(
        energy=at_most(asymmetry(EnergyScore(plain_energy(3, 32).double()), x), 1e-12),
        free=at_least(asymmetry(plain_score(3, 32).double(), x).median(), 0.1),
    )


@claim("B13.2.6-2")
def explicit_matching_measures_the_distance_of_scores() -> Evidence:
    """It is 0 at the true score, and for N(0, s²) against N(0, r²) it is s² (1/s² − 1/r²)² (book eq. 13.84)."""
    x = VARIANCE**0.5 * SIGNS[:, :1]  # exact for what is quadratic in x
    truth = explicit_matching(lambda y: -y / VARIANCE, lambda y: -y / VARIANCE, x)
    beside = explicit_matching(lambda y: -y / 0.9, lambda y: -y / VARIANCE, x).mean()
    return all_of(
        truth=close(truth, 0.0, atol=1e-15),
        beside=close(beside, VARIANCE * (1 / VARIANCE - 1 / 0.9) ** 2, rtol=1e-12),
    )


@claim("B13.2.6-3")
def denoising_matches_the_noisy_density_up_to_a_constant() -> Evidence:
    """E[denoising] − E_{p_σ}[explicit] is the same number for every field (book eqs. 13.84-13.85; Vincent 2011)."""
    x, noise, mass = mixture_nodes(CENTRES, STDS)
    std = NOISE**0.5
    noisy = x + std * noise

    def truth(y: Tensor) -> Tensor:
        return MIXTURE.score(y, 1.0, std)

    gaps = [
        mass @ denoising_matching(field, x, noise, std=std) - mass @ explicit_matching(field, truth, noisy)
        for field in (*fields(), truth)
    ]
    constant = 1 / NOISE - mass @ truth(noisy)[:, 0].square()
    return all_of(
        same=close(torch.stack(gaps), gaps[0], rtol=1e-4),
        known=close(gaps[-1], constant, rtol=1e-4),
    )


def slope(inputs: Tensor, targets: Tensor) -> Tensor:
    """The a of the field a x that is nearest to the targets, in squares."""
    return (inputs * targets).mean() / inputs.square().mean()


def noisy_pairs() -> tuple[Tensor, Tensor]:
    """Clean x and noisy x̃ of N(0, s²) data, whose second moments are exact."""
    x = VARIANCE**0.5 * SIGNS[:, :1]
    return x, x + NOISE**0.5 * SIGNS[:, 1:]


@erratum("B13.2.6-3", printed="s_θ(x) with the clean x", right="s_θ(x̃) with the noisy x̃")
def the_network_must_see_the_noisy_point() -> Correction:
    """Fitted at the clean x the field is 0, for its target has mean 0 given x; at x̃ it is −x/(s² + σ²)."""
    x, noisy = noisy_pairs()
    target = (x - noisy) / NOISE
    return Correction(
        printed=close(slope(x, target), -1 / (VARIANCE + NOISE), rtol=0.05),
        corrected=close(slope(noisy, target), -1 / (VARIANCE + NOISE), rtol=1e-12),
    )


@erratum("B13.2.6-3", printed="p_σ(x̃|x) = (x − x̃)²/σ²", right="∇ log p_σ(x̃|x) = (x − x̃)/σ²")
def the_target_is_a_gradient() -> Correction:
    """The slope of the normal log-density in x̃, by autograd, is the way back to x over σ² (book eq. 13.86)."""
    x = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)
    noisy = torch.tensor([0.5, -1.8, 1.0], dtype=torch.float64, requires_grad=True)
    log_density = Normal(x, NOISE**0.5).log_prob(noisy).sum()
    (gradient,) = torch.autograd.grad(log_density, noisy)
    away = x - noisy.detach()
    return Correction(
        printed=close(away.square() / NOISE, gradient, rtol=0.05), corrected=close(away / NOISE, gradient, rtol=1e-12)
    )


@erratum("B13.2.6-3", printed="equivalent to (13.84), the score of p", right="equivalent to it for p_σ, the noisy data")
def denoising_finds_the_score_of_the_noisy_data() -> Correction:
    """With s² = ½ and σ² = 0.3 the slope found is −1.25, that of N(0, s² + σ²), and not the −2 of the clean data."""
    x, noisy = noisy_pairs()
    found = slope(noisy, (x - noisy) / NOISE)
    return Correction(printed=close(found, -2.0, rtol=0.05), corrected=close(found, -1.25, rtol=1e-12))


@claim("B13.2.6-4")
def the_noise_is_the_score_of_the_kernel() -> Evidence:
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
def the_score_knows_the_clean_point() -> Evidence:
    """Mean and covariance of x_0 given x = a x_0 + b ε, from the score alone, are those of Bayes' rule (Tweedie)."""
    torch.manual_seed(0)
    means, stds = torch.tensor([[-1.0, 0.0], [1.0, 1.0]], dtype=torch.float64), torch.tensor([0.4, 0.7]).double()
    mixture, scale, noise = RoundMixture.of(means, stds), 0.8, 0.6
    x = torch.randn(40, 2, dtype=torch.float64)
    share = mixture.log_posterior(x, scale, noise).exp()
    variance = (scale * stds).square() + noise**2
    each = means + (scale * stds.square() / variance)[:, None] * (x[:, None] - scale * means)
    left = stds.square() * noise**2 / variance  # variance of x_0 given x and its component
    mean = (share[..., None] * each).sum(1)
    away = each - mean[:, None]
    outer = (share[..., None, None] * away[..., :, None] * away[..., None, :]).sum(1)
    covariance = outer + (share @ left)[:, None, None] * torch.eye(2, dtype=torch.float64)

    def score(y: Tensor) -> Tensor:
        return mixture.score(y, scale, noise)

    return all_of(
        mean=close(tweedie_mean(score, x, noise=noise, scale=scale), mean, atol=1e-10),
        covariance=close(tweedie_covariance(score, x, noise=noise, scale=scale), covariance, atol=1e-10),
    )


@claim("B13.2.8-1")
def implicit_matching_is_half_the_explicit_one_up_to_a_constant() -> Evidence:
    """E[tr ∇s + ½‖s‖²] = ½ E‖s − ∇log p‖² − ½ E‖∇log p‖² for every field, by parts (book sec. 13.2.8)."""
    x = torch.linspace(-8, 10, 2_001, dtype=torch.float64)[:, None]
    mass = MIXTURE.log_prob(x).exp() * (x[1] - x[0])  # equal steps: exact to rounding for what vanishes at both ends
    constant = mass @ MIXTURE.score(x)[:, 0].square()
    sides = [
        (mass @ implicit_matching(field, x), mass @ explicit_matching(field, MIXTURE.score, x) / 2 - constant / 2)
        for field in (*fields(), MIXTURE.score)
    ]
    left, right = (torch.stack(side) for side in zip(*sides, strict=True))
    return close(left, right, atol=1e-10)


@claim("B13.2.8-1")
def implicit_matching_finds_a_linear_score_from_examples_alone() -> Evidence:
    """Of all a x on data of variance s², a = −1/s² makes tr ∇s + ½‖s‖² least; its slope in a vanishes there."""
    x = VARIANCE**0.5 * SIGNS[:, :1]

    def loss(a: float) -> Tensor:
        return implicit_matching(lambda y: a * y, x).mean()

    best = -1 / VARIANCE
    return all_of(
        slope=close((loss(best + 1e-3) - loss(best - 1e-3)) / 2e-3, 0.0, atol=1e-9),
        value=close(loss(best), -1 / (2 * VARIANCE), rtol=1e-12),
        beside=at_least(torch.stack([loss(best - 0.1), loss(best + 0.1)]) - loss(best), 1e-3),
    )


@claim("B13.2.8-1")
def implicit_matching_needs_a_density_that_vanishes_at_its_edge() -> Evidence:
    """For e^(−x) on x > 0, which ends in a cliff, the best constant field comes out as 0 instead of the true −1."""
    constants = torch.linspace(-2, 1, 31, dtype=torch.float64)
    x = -torch.linspace(0.0005, 0.9995, 1_000, dtype=torch.float64).log()[:, None]  # quantiles

    def constant(value: Tensor) -> Score:
        return lambda y: value + 0 * y

    implicit = torch.stack([implicit_matching(constant(value), x).mean() for value in constants])
    explicit = torch.stack([explicit_matching(constant(value), lambda y: -(y**0), x).mean() for value in constants])
    return all_of(
        explicit=close(constants[explicit.argmin()], -1.0, atol=1e-9),
        implicit=close(constants[implicit.argmin()], 0.0, atol=1e-9),
    )


@claim("B13.2.8-1")
def random_probes_estimate_the_divergence() -> Evidence:
    """The mean of vᵀ∇s v over all sign vectors v is tr ∇s, and of sliced matching the implicit one (Hutchinson)."""
    torch.manual_seed(0)
    network = plain_score(3, 16).double()
    x = torch.randn(20, 3, dtype=torch.float64)
    every = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 3)
    probes = [corner.expand_as(x) for corner in every]
    traces = torch.stack([probed_divergence(network, x, probe)[1] for probe in probes])
    losses = torch.stack([sliced_matching(network, x, probe) for probe in probes])
    return all_of(
        trace=close(traces.mean(0), divergence(network, x)[1], atol=1e-12),
        loss=close(losses.mean(0), implicit_matching(network, x), atol=1e-12),
    )


@claim("B13.2.8-1")
def signs_probe_with_less_variance_than_normals() -> Evidence:
    """Var vᵀHv is 2(‖H‖² − Σ H_ii²) for signs and 2‖H‖² for normals, H the symmetric part of ∇s."""
    torch.manual_seed(0)
    matrix = torch.randn(6, 6, dtype=torch.float64)
    symmetric = (matrix + matrix.mT) / 2
    x = torch.zeros(200_000, 6, dtype=torch.float64)
    signs, normals = torch.randint(0, 2, x.shape).double() * 2 - 1, torch.randn_like(x)
    spreads = [probed_divergence(lambda y: y @ matrix.mT, x, probe)[1].var() for probe in (signs, normals)]
    whole = 2 * symmetric.square().sum()
    return all_of(
        signs=close(spreads[0], whole - 2 * symmetric.diagonal().square().sum(), rtol=0.03),
        normals=close(spreads[1], whole, rtol=0.03),
    )


@claim("B13.2.8-1")
def an_energy_can_be_matched_without_its_normaliser() -> Evidence:
    """Over energies x²/(2v) the implicit loss is least at the variance of the data, and Z = √(2πv) never occurs."""
    x = VARIANCE**0.5 * SIGNS[:, :1]
    variances = torch.linspace(0.2, 1.0, 81, dtype=torch.float64)
    losses = torch.stack([implicit_matching(EnergyScore(Parabola(float(v))), x).mean() for v in variances])
    likelihood = x.square().mean() / (2 * variances) + (2 * pi * variances).log() / 2
    return all_of(
        score_matching=close(variances[losses.argmin()], VARIANCE, atol=1e-9),
        maximum_likelihood=close(variances[likelihood.argmin()], VARIANCE, atol=1e-9),
    )


class Parabola(nn.Module):
    """f(x) = x²/(2v)."""

    def __init__(self, variance: float) -> None:
        super().__init__()
        self.variance = variance

    def forward(self, x: Tensor) -> Tensor:
        return x.square().sum(1) / (2 * self.variance)
