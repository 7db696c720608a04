"""Claims about the common objective of score matching, DDPM and DDIM (book sec. 13.2.8), and its continuous form."""

from collections.abc import Callable
from math import e, log, pi

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.diffusion.chain.elbo import elbo_terms
from parnassus.diffusion.chain.objectives import bound_weight, noise_weight, simple_objective
from parnassus.diffusion.chain.predictions import score_from_noise
from parnassus.diffusion.chain.schedules import Schedule, linear_schedule
from parnassus.diffusion.chain.surrogate_loss import matching_weight, score_surrogate_loss, surrogate_loss
from parnassus.diffusion.claims.exact_expectations import SIGNS
from parnassus.diffusion.models.variational_diffusion import Curve, MonotoneCurve, VariationalDiffusion, linear_curve
from parnassus.diffusion.scores.noise_levels import alpha_bar_from_levels, geometric_levels
from parnassus.diffusion.scores.score_matching import multiscale_score_matching

VARIANCE = 0.5
SCHEDULE = linear_schedule(30, low=0.005, high=0.5)


def arbitrary_denoiser(x: Tensor, t: Tensor) -> Tensor:
    """An arbitrary denoiser, for identities that hold for every denoiser."""
    return 0.7 * torch.sin(x + 0.1 * t[:, None])


def _sample_data() -> tuple[Tensor, Tensor]:
    """Data, and noise for each step and example."""
    torch.manual_seed(0)
    return torch.randn(20, 2, dtype=torch.float64), torch.randn(len(SCHEDULE), 20, 2, dtype=torch.float64)


@claim("B13.2.8-2")
def equal_weights_give_the_simple_loss() -> Evidence:
    """With γ_t = 1/T, L_γ is the mean of ‖ε_θ − ε‖² over the steps, the loss of book eq. 13.77."""
    x0, noise = _sample_data()
    steps = [
        simple_objective(arbitrary_denoiser, SCHEDULE, x0, torch.full((20,), step), noise[step])
        for step in range(len(SCHEDULE))
    ]
    gamma = torch.full((len(SCHEDULE),), 1 / len(SCHEDULE), dtype=torch.float64)
    return close(surrogate_loss(arbitrary_denoiser, SCHEDULE, gamma, x0, noise), torch.stack(steps).mean(0), rtol=1e-12)


@claim("B13.2.8-2")
def the_weights_of_the_bound_give_its_matching_terms() -> Evidence:
    """With the weights of book eq. 13.76 from the second step on, L_γ is the sum of the matching terms of the bound."""
    x0, noise = _sample_data()
    gamma = torch.cat([torch.zeros(1), noise_weight(SCHEDULE)[1:]])
    noises = iter(noise)
    terms = elbo_terms(arbitrary_denoiser, SCHEDULE, x0, noise=lambda _: next(noises))
    return close(
        surrogate_loss(arbitrary_denoiser, SCHEDULE, gamma.double(), x0, noise), terms.matching.sum(1), rtol=1e-9
    )


@claim("B13.2.8-2")
def the_noise_loss_is_a_weighted_score_matching_loss() -> Evidence:
    """‖ε_θ − ε‖² = (1 − ᾱ_t) ‖s_θ − ∇log q(x_t|x_0)‖²: L_γ is score matching with λ(t) = γ_t (1 − ᾱ_t)."""
    x0, noise = _sample_data()
    gamma = bound_weight(SCHEDULE)

    def score(x: Tensor, t: Tensor) -> Tensor:
        return score_from_noise(SCHEDULE, t, arbitrary_denoiser(x, t))

    left = surrogate_loss(arbitrary_denoiser, SCHEDULE, gamma, x0, noise)
    return close(score_surrogate_loss(score, SCHEDULE, matching_weight(SCHEDULE, gamma), x0, noise), left, rtol=1e-10)


@erratum(
    "B13.2.7-3",
    printed="score matching at many levels exactly matches the variational objective",
    right="only with λ(t) = γ_t σ_t² and noisy data scaled by √ᾱ_t = 1/√(1 + σ_t²)",
)
def noise_levels_and_diffusion_steps_are_equivalent_after_scaling() -> Correction:
    """The sum over noise levels equals that of the bound with λ(t) = γ_t σ_t², not with λ(t) = σ_t²."""
    levels = geometric_levels(10, 0.05, 5.0)
    alpha_bar = alpha_bar_from_levels(levels)
    before = torch.cat([torch.ones(1, dtype=torch.float64), alpha_bar[:-1]])
    schedule = Schedule(alpha_bar / before, alpha_bar, before)
    torch.manual_seed(0)
    x0, noise = torch.randn(20, 2, dtype=torch.float64), torch.randn(10, 20, 2, dtype=torch.float64)
    gamma = bound_weight(schedule)

    def score(x: Tensor, t: Tensor) -> Tensor:
        """The score of the data plus σ ε, from a denoiser of the scaled state."""
        return -arbitrary_denoiser(x * alpha_bar[t].sqrt()[:, None], t) / levels[t][:, None]

    def sum_over_levels(weight: Callable[[Tensor], Tensor]) -> Tensor:
        parts = [
            multiscale_score_matching(score, levels, x0, torch.full((20,), step), noise[step], weight=weight)
            for step in range(10)
        ]
        return torch.stack(parts).sum(0)

    bound = surrogate_loss(arbitrary_denoiser, schedule, gamma, x0, noise)
    return Correction(
        printed=close(sum_over_levels(torch.square), bound, rtol=0.05),
        corrected=close(sum_over_levels(lambda sigma: gamma * sigma.square()), bound, rtol=1e-9),
    )


class GaussianDenoiser(nn.Module):
    """E[ε | z] at level γ for x ~ N(0, s²), times `factor`; exact for factor 1."""

    def __init__(self, variance: float, factor: float = 1.0) -> None:
        super().__init__()
        self.variance, self.factor = variance, factor

    def forward(self, z: Tensor, gamma: Tensor) -> Tensor:
        signal, noise = torch.sigmoid(-gamma), torch.sigmoid(gamma)  # variances
        return self.factor * (noise.sqrt() / (signal * self.variance + noise))[:, None] * z


def _diffusion_term(model: VariationalDiffusion) -> Tensor:
    """½ E γ′(t) ‖ε − ε_θ‖² on N(0, ½), by a fine grid of times and exact means over pairs of signs."""
    times = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    x, noise = SIGNS[:, :1] * VARIANCE**0.5, SIGNS[:, 1:]
    draws = model.terms(x.repeat(20_000, 1), times.repeat_interleave(4), noise.repeat(20_000, 1)).diffusion
    return draws.mean()


def _gaussian_model(
    curve: Curve, *, factor: float = 1.0, gamma_min: float = -10.0, gamma_max: float = 10.0
) -> VariationalDiffusion:
    return VariationalDiffusion(
        GaussianDenoiser(VARIANCE, factor), (1,), curve=curve, gamma_min=gamma_min, gamma_max=gamma_max
    ).double()


def _nonlinear_curve() -> MonotoneCurve:
    torch.manual_seed(0)
    curve = MonotoneCurve(6)
    nn.init.normal_(curve.height, 0.0, 2.0)
    nn.init.constant_(curve.slope, 20.0)
    return curve


@claim("B13.2.8-2")
@torch.no_grad()
def the_continuous_bound_depends_on_the_schedule_ends_only() -> Evidence:
    """In continuous time linear and nonlinear schedules with the same endpoints have the same bound."""
    models = [_gaussian_model(curve, factor=0.8) for curve in (linear_curve, _nonlinear_curve())]
    linear, nonlinear = (_diffusion_term(model) for model in models)
    (low, middle), _ = models[1].level(torch.tensor([0.0, 0.5], dtype=torch.float64))
    other_end = _diffusion_term(_gaussian_model(linear_curve, factor=0.8, gamma_min=-8.0))
    return all_of(
        same_ends=close(nonlinear, linear, rtol=1e-4),
        nonlinearity=greater_equal((middle - (low + 10)).abs(), 1.0),
        other_end=greater_equal((other_end - linear).abs(), 0.01),
    )


@claim("B13.2.8-2")
@torch.no_grad()
def the_bound_is_tight_for_the_exact_denoiser() -> Evidence:
    """On N(0, ½) the three terms add up to the entropy ½ log(2πe/2), up to 10⁻⁴ from the two endpoints."""
    model = _gaussian_model(linear_curve, gamma_min=-12.0, gamma_max=12.0)
    x, noise = SIGNS[:, :1] * VARIANCE**0.5, SIGNS[:, 1:]
    terms = model.terms(x, torch.full((4,), 0.5, dtype=torch.float64), noise)
    total = terms.reconstruction.mean() + terms.prior.mean() + _diffusion_term(model)
    worse = _diffusion_term(_gaussian_model(linear_curve, factor=0.9, gamma_min=-12.0, gamma_max=12.0))
    entropy = 0.5 * log(2 * pi * e * VARIANCE)
    return all_of(
        entropy=close(total, entropy, atol=1e-4),
        bound=greater_equal(total, entropy),
        worse_denoiser=greater_equal(worse - _diffusion_term(model), 0.01),
    )


@claim("B13.2.8-2")
def a_learned_schedule_reduces_the_variance_of_the_bound() -> Evidence:
    """150 gradient steps on the second moment reduce the variance of the estimate by a third; its mean is unchanged."""
    torch.manual_seed(0)
    curve = MonotoneCurve(12)
    model = _gaussian_model(curve)
    with torch.no_grad():
        before = _sample_diffusion_term(model)
    optimizer = torch.optim.Adam(curve.parameters(), lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        model.loss(VARIANCE**0.5 * torch.randn(256, 1, dtype=torch.float64)).backward()
        optimizer.step()
    with torch.no_grad():
        after = _sample_diffusion_term(model)
    return all_of(
        variance=less_equal(after.var() / before.var(), 2 / 3),
        mean=close(after.mean(), before.mean(), rtol=0.02),
    )


def _sample_diffusion_term(model: VariationalDiffusion) -> Tensor:
    """Single draws of the diffusion term at uniform times."""
    x, noise = torch.randn(2, 40_000, 1, dtype=torch.float64)
    return model.terms(VARIANCE**0.5 * x, torch.rand(40_000, dtype=torch.float64), noise).diffusion
