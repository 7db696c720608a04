"""Claims about the objective behind score matching, DDPM and DDIM (book sec. 13.2.8), and about its continuous form."""

from collections.abc import Callable
from math import e, log, pi

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.diffusion.claims.truths import SIGNS
from parnassus.diffusion.elbo import elbo_terms
from parnassus.diffusion.noise_levels import alpha_bar_of, geometric_levels
from parnassus.diffusion.objectives import bound_weight, noise_weight, simple
from parnassus.diffusion.process import score_from_noise
from parnassus.diffusion.schedules import Schedule, linear_schedule
from parnassus.diffusion.score_matching import matching_at_levels
from parnassus.diffusion.surrogate import matching_weight, score_surrogate, surrogate
from parnassus.diffusion.variational_diffusion import Curve, RisingCurve, VariationalDiffusion, straight_curve

VARIANCE = 0.5
SCHEDULE = linear_schedule(30, low=0.005, high=0.5)


def guess(x: Tensor, t: Tensor) -> Tensor:
    """Some denoiser: the identities hold for any."""
    return 0.7 * torch.sin(x + 0.1 * t[:, None])


def _draws() -> tuple[Tensor, Tensor]:
    """Data, and a noise for each step of every example."""
    torch.manual_seed(0)
    return torch.randn(20, 2, dtype=torch.float64), torch.randn(len(SCHEDULE), 20, 2, dtype=torch.float64)


@claim("B13.2.8-2")
def equal_weights_give_the_simple_loss() -> Evidence:
    """With γ_t = 1/T, L_γ is the mean over the steps of ‖ε_θ − ε‖², the loss of book eq. 13.77."""
    x0, noise = _draws()
    steps = [simple(guess, SCHEDULE, x0, torch.full((20,), step), noise[step]) for step in range(len(SCHEDULE))]
    gamma = torch.full((len(SCHEDULE),), 1 / len(SCHEDULE), dtype=torch.float64)
    return close(surrogate(guess, SCHEDULE, gamma, x0, noise), torch.stack(steps).mean(0), rtol=1e-12)


@claim("B13.2.8-2")
def the_bounds_weights_give_its_matching_terms() -> Evidence:
    """With the weights of book eq. 13.76 from the second step on, L_γ is the sum of the bound's divergences."""
    x0, noise = _draws()
    gamma = torch.cat([torch.zeros(1), noise_weight(SCHEDULE)[1:]])
    drawn = iter(noise)
    terms = elbo_terms(guess, SCHEDULE, x0, noise=lambda _: next(drawn))
    return close(surrogate(guess, SCHEDULE, gamma.double(), x0, noise), terms.matching.sum(1), rtol=1e-9)


@claim("B13.2.8-2")
def a_weight_on_noise_is_a_weight_on_scores() -> Evidence:
    """‖ε_θ − ε‖² = (1 − ᾱ_t) ‖s_θ − ∇log q(x_t|x_0)‖²: L_γ is score matching with λ(t) = γ_t (1 − ᾱ_t)."""
    x0, noise = _draws()
    gamma = bound_weight(SCHEDULE)

    def score(x: Tensor, t: Tensor) -> Tensor:
        return score_from_noise(SCHEDULE, t, guess(x, t))

    left = surrogate(guess, SCHEDULE, gamma, x0, noise)
    return close(score_surrogate(score, SCHEDULE, matching_weight(SCHEDULE, gamma), x0, noise), left, rtol=1e-10)


@erratum(
    "B13.2.7-3",
    printed="score matching at many levels exactly matches the variational objective",
    right="it does once λ(t) = γ_t σ_t² and each blur is scaled by √ᾱ_t = 1/√(1 + σ_t²)",
)
def levels_and_steps_are_one_thing_after_scaling() -> Correction:
    """With λ(t) = σ_t² the sum over levels is not that of the bound's squared errors; with γ_t σ_t² it is."""
    levels = geometric_levels(10, 0.05, 5.0)
    alpha_bar = alpha_bar_of(levels)
    before = torch.cat([torch.ones(1, dtype=torch.float64), alpha_bar[:-1]])
    schedule = Schedule(alpha_bar / before, alpha_bar, before)
    torch.manual_seed(0)
    x0, noise = torch.randn(20, 2, dtype=torch.float64), torch.randn(10, 20, 2, dtype=torch.float64)
    gamma = bound_weight(schedule)

    def score(x: Tensor, t: Tensor) -> Tensor:
        """Of the data plus σ ε, from a denoiser that knows the scaled state."""
        return -guess(x * alpha_bar[t].sqrt()[:, None], t) / levels[t][:, None]

    def over_levels(weight: Callable[[Tensor], Tensor]) -> Tensor:
        parts = [
            matching_at_levels(score, levels, x0, torch.full((20,), step), noise[step], weight=weight)
            for step in range(10)
        ]
        return torch.stack(parts).sum(0)

    bound = surrogate(guess, schedule, gamma, x0, noise)
    return Correction(
        printed=close(over_levels(torch.square), bound, rtol=0.05),
        corrected=close(over_levels(lambda sigma: gamma * sigma.square()), bound, rtol=1e-9),
    )


class GaussianDenoiser(nn.Module):
    """E[ε | z] at level γ for x ~ N(0, s²), times `share`: exact at 1."""

    def __init__(self, variance: float, share: float = 1.0) -> None:
        super().__init__()
        self.variance, self.share = variance, share

    def forward(self, z: Tensor, gamma: Tensor) -> Tensor:
        kept, left = torch.sigmoid(-gamma), torch.sigmoid(gamma)
        return self.share * (left.sqrt() / (kept * self.variance + left))[:, None] * z


def _diffusion_term(model: VariationalDiffusion) -> Tensor:
    """½ E γ′(t) ‖ε − ε_θ‖² on N(0, ½): a fine grid of times, and pairs over which squares have their exact mean."""
    times = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    x, noise = SIGNS[:, :1] * VARIANCE**0.5, SIGNS[:, 1:]
    draws = model.terms(x.repeat(20_000, 1), times.repeat_interleave(4), noise.repeat(20_000, 1)).diffusion
    return draws.mean()


def _continuous(curve: Curve, *, share: float = 1.0, low: float = -10.0, high: float = 10.0) -> VariationalDiffusion:
    return VariationalDiffusion(GaussianDenoiser(VARIANCE, share), (1,), curve=curve, low=low, high=high).double()


def _bent() -> RisingCurve:
    torch.manual_seed(0)
    curve = RisingCurve(6)
    nn.init.normal_(curve.height, 0.0, 2.0)
    nn.init.constant_(curve.slope, 20.0)
    return curve


@claim("B13.2.8-2")
@torch.no_grad()
def only_the_ends_of_a_schedule_count() -> Evidence:
    """In continuous time the bound is an integral over the noise level: a bent schedule with the same ends gives it."""
    models = [_continuous(curve, share=0.8) for curve in (straight_curve, _bent())]
    straight, bent = (_diffusion_term(model) for model in models)
    (low, middle), _ = models[1].level(torch.tensor([0.0, 0.5], dtype=torch.float64))
    narrower = _diffusion_term(_continuous(straight_curve, share=0.8, low=-8.0))
    return all_of(
        same=close(bent, straight, rtol=1e-4),
        bends=at_least((middle - (low + 10)).abs(), 1.0),
        other_end=at_least((narrower - straight).abs(), 0.01),
    )


@claim("B13.2.8-2")
@torch.no_grad()
def the_exact_denoiser_closes_the_bound() -> Evidence:
    """On N(0, ½) the three terms add up to the entropy ½ log(2πe/2), up to what the two ends leave (10⁻⁴)."""
    model = _continuous(straight_curve, low=-12.0, high=12.0)
    x, noise = SIGNS[:, :1] * VARIANCE**0.5, SIGNS[:, 1:]
    terms = model.terms(x, torch.full((4,), 0.5, dtype=torch.float64), noise)
    total = terms.reconstruction.mean() + terms.prior.mean() + _diffusion_term(model)
    worse = _diffusion_term(_continuous(straight_curve, share=0.9, low=-12.0, high=12.0))
    entropy = 0.5 * log(2 * pi * e * VARIANCE)
    return all_of(
        entropy=close(total, entropy, atol=1e-4),
        bound=at_least(total, entropy),
        worse_denoiser=at_least(worse - _diffusion_term(model), 0.01),
    )


@claim("B13.2.8-2")
def a_learned_schedule_scatters_less() -> Evidence:
    """150 steps of a curve down the second moment of its draws take a third off their variance; the mean stays."""
    torch.manual_seed(0)
    curve = RisingCurve(12)
    model = _continuous(curve)
    with torch.no_grad():
        before = _draw(model)
    optimizer = torch.optim.Adam(curve.parameters(), lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        model.loss(VARIANCE**0.5 * torch.randn(256, 1, dtype=torch.float64)).backward()
        optimizer.step()
    with torch.no_grad():
        after = _draw(model)
    return all_of(
        variance=at_most(after.var() / before.var(), 2 / 3),
        mean=close(after.mean(), before.mean(), rtol=0.02),
    )


def _draw(model: VariationalDiffusion) -> Tensor:
    """Single draws of the diffusion term at uniform times."""
    x, noise = torch.randn(2, 40_000, 1, dtype=torch.float64)
    return model.terms(VARIANCE**0.5 * x, torch.rand(40_000, dtype=torch.float64), noise).diffusion
