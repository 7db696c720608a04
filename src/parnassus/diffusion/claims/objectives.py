"""Claims about the training objectives and the names of one prediction (book sec. 13.2.4)."""

from collections.abc import Callable
from math import log, pi

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.diffusion.claims.truths import SIGNS, mixture_nodes
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.denoisers import sinusoidal_embedding
from parnassus.diffusion.elbo import elbo_terms, prior_kl
from parnassus.diffusion.objectives import (
    Objective,
    bound_weight,
    noise_weight,
    simple,
    weighted,
    weighted_x0,
    x0_weight,
)
from parnassus.diffusion.oracles import MixtureOracle, gaussian_oracle
from parnassus.diffusion.process import (
    diffuse,
    mean_from_noise,
    noise_from_mean,
    noise_from_score,
    noise_from_x0,
    posterior_mean,
    score_from_noise,
    x0_from_noise,
)
from parnassus.diffusion.schedules import Schedule, linear_schedule


@claim("B13.2.4-3")
def the_weight_of_x0_prediction_is_a_fall_of_the_signal_to_noise_ratio() -> Evidence:
    """Three ways to write the weight of ‖x_θ − x_0‖² agree: both fractions, and ½ (SNR_{t−1} − SNR_t)."""
    schedule = linear_schedule(1_000)
    alpha, after, before = (part[1:] for part in (schedule.alpha, schedule.alpha_bar, schedule.alpha_bar_before))
    longest = (1 - after) / ((1 - alpha) * (1 - before)) * before * (1 - alpha) ** 2 / (1 - after) ** 2 / 2
    shorter = before * (1 - alpha) / ((1 - before) * (1 - after)) / 2
    printed = (before - after) / ((1 - before) * (1 - after)) / 2
    return all_of(
        first=close(longest, x0_weight(schedule)[1:], rtol=1e-8),
        second=close(shorter, x0_weight(schedule)[1:], rtol=1e-8),
        third=close(printed, x0_weight(schedule)[1:], rtol=1e-8),
    )


@claim("B13.2.4-3")
def a_random_step_estimates_the_whole_sum() -> Evidence:
    """(T − 1) times the KL at a uniform step t ≥ 2 has the sum of all KLs as its mean, within 4 standard errors."""
    torch.manual_seed(0)
    schedule = linear_schedule(50, low=0.002, high=0.4)
    denoiser = _imperfect(schedule)
    x0, noise = SIGNS[:, :1] * 0.5, SIGNS[:, 1:]
    total = elbo_terms(denoiser, schedule, x0, noise=lambda _: noise).matching.sum(1).mean()
    drawn, t = 0.5 * torch.randn(200_000, 1, dtype=torch.float64), torch.randint(1, 50, (200_000,))
    draws = 49 * weighted(noise_weight)(denoiser, schedule, drawn, t, torch.randn_like(drawn))
    return all_of(
        distance_in_standard_errors=at_most((draws.mean() - total).abs() / (draws.std() / len(draws) ** 0.5), 4.0),
        standard_error=at_most(draws.std() / len(draws) ** 0.5 / total, 0.02),
    )


@claim("B13.2.4-4")
def the_mean_in_terms_of_noise_is_the_mean_in_terms_of_data() -> Evidence:
    """μ_q(x_t, x_0) with x_0 replaced by x_t and ε is x_t/√α_t − (1 − α_t)/(√(1 − ᾱ_t) √α_t) ε, at every step."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.arange(1_000)
    x0, noise = torch.randn(2, 1_000, 3, dtype=torch.float64)
    x = diffuse(schedule, x0, t, noise)
    return close(mean_from_noise(schedule, x, t, noise), posterior_mean(schedule, x, x0, t), atol=1e-9)


@claim("B13.2.4-4")
def both_parametrisations_pay_the_same_divergence() -> Evidence:
    """The weighted losses of ε_θ and of x_θ agree where the two are tied; both weights are infinite at t = 1."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.arange(1, 1_000)
    x0, noise, guess = torch.randn(3, 999, 3, dtype=torch.float64)
    by_noise = weighted(noise_weight)(lambda _x, _t: guess, schedule, x0, t, noise)
    by_x0 = weighted_x0(x0_weight)(lambda x, t: x0_from_noise(schedule, x, t, guess), schedule, x0, t, noise)
    return all_of(
        equal=close(by_noise, by_x0, rtol=1e-8),
        of_noise=at_least(noise_weight(schedule)[0], 1e300),
        of_x0=at_least(x0_weight(schedule)[0], 1e300),
    )


@claim("B13.2.4-4", "B13.2.6-4")
def the_names_of_a_prediction_convert_into_each_other() -> Evidence:
    """x_0 ↔ ε ↔ score ↔ μ come back unchanged, and x_0 = (x_t + (1 − ᾱ_t) score) / √ᾱ_t."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.arange(1_000)
    x, noise = torch.randn(2, 1_000, 3, dtype=torch.float64)
    x0, score = x0_from_noise(schedule, x, t, noise), score_from_noise(schedule, t, noise)
    mean = mean_from_noise(schedule, x, t, noise)
    alpha_bar = schedule.alpha_bar[:, None]
    return all_of(
        by_x0=close(noise_from_x0(schedule, x, t, x0), noise, atol=1e-8),
        by_score=close(noise_from_score(schedule, t, score), noise, atol=1e-12),
        by_mean=close(noise_from_mean(schedule, x, t, mean), noise, atol=1e-8),
        tweedie=close((x + (1 - alpha_bar) * score) / alpha_bar.sqrt(), x0, rtol=1e-9, atol=1e-9),
    )


@claim("B13.2.4-5")
def every_weight_has_the_same_minimiser() -> Evidence:
    """At ε_θ = E[ε|x_t] the derivative of each objective vanishes in every direction tried; beside it, it does not."""
    schedule = linear_schedule(50, low=0.002, high=0.4)
    centres, stds = torch.tensor([[-1.0], [2.0]]).double(), torch.tensor([0.3, 0.6]).double()
    oracle = MixtureOracle(schedule, centres, stds)
    x0, noise, mass = mixture_nodes(centres, stds)
    t = torch.full((len(x0),), 10)

    def slope(objective: Objective, direction: Callable[[Tensor], Tensor], offset: float) -> Tensor:
        """The derivative along ε_θ = E[ε|x_t] + s · direction(x_t), at s = offset."""
        s = torch.tensor(offset, dtype=torch.float64, requires_grad=True)
        losses = objective(lambda x, t: oracle(x, t) + s * direction(x), schedule, x0, t, noise)
        return torch.autograd.grad((mass * losses).sum(), s)[0]

    objectives = (simple, weighted(noise_weight), weighted(bound_weight))
    ways = [(objective, way) for objective in objectives for way in (torch.ones_like, torch.sin, torch.square)]
    return all_of(
        at_the_minimum=close(torch.stack([slope(objective, way, 0.0) for objective, way in ways]), 0.0, atol=1e-6),
        beside=at_least(torch.stack([slope(objective, way, 0.1) for objective, way in ways]), 1e-3),
    )


@claim("B13.2.4-5")
def the_bound_is_a_weighted_sum_of_squared_errors() -> Evidence:
    """−ELBO = Σ_t w_t E‖ε_θ − ε‖² + KL(q(x_T|x_0) ‖ p) + ½ D log(2π(1 − α_1)), with w_t the bound's weights."""
    schedule = linear_schedule(50, low=0.002, high=0.4)
    denoiser, x0, noise = _imperfect(schedule), SIGNS[:, :1] * 0.5, SIGNS[:, 1:]
    terms = elbo_terms(denoiser, schedule, x0, noise=lambda _: noise)
    sum_of_errors = torch.zeros(4, dtype=torch.float64)
    for step in range(50):
        sum_of_errors += weighted(bound_weight)(denoiser, schedule, x0, torch.full((4,), step), noise)
    constant = 0.5 * log(2 * pi * float(1 - schedule.alpha[0]))
    return close(-terms.nats, sum_of_errors + prior_kl(schedule, x0) + constant, atol=1e-9)


class OneSlopeAStep(nn.Module):
    """ε_θ(x, t) = w_t x: all that zero-mean Gaussian data ask for."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.zeros(steps))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.slope[t][:, None] * x


@claim("B13.2.4-6")
def training_finds_the_conditional_mean_of_the_noise() -> Evidence:
    """The training algorithm on N(0, ¼) data ends at w_t = √(1 − ᾱ_t) / (¼ ᾱ_t + 1 − ᾱ_t), the slope of E[ε|x_t]."""
    torch.manual_seed(0)
    schedule = linear_schedule(10, low=0.01, high=0.9)
    model = DDPM(OneSlopeAStep(10), (1,), schedule=schedule)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for step in range(400):
        optimizer.param_groups[0]["lr"] = 2.0 / (1 + step / 20)
        optimizer.zero_grad()
        model.loss(0.5 * torch.randn(2_000, 1)).backward()
        optimizer.step()
    alpha_bar = schedule.alpha_bar
    return close(next(model.parameters()), (1 - alpha_bar).sqrt() / (0.25 * alpha_bar + 1 - alpha_bar), atol=0.03)


@claim("B13.2.4-8")
def the_time_embedding_tells_steps_apart_and_knows_their_distance() -> Evidence:
    """No two of 1,000 steps share a code, and ⟨e(s), e(t)⟩ depends on s − t alone."""
    code = sinusoidal_embedding(torch.arange(1_000), 64).double()
    gram = code @ code.mT
    squares = gram.diagonal()
    apart = (squares[:, None] + squares - 2 * gram).fill_diagonal_(torch.inf)
    return all_of(
        apart=at_least(apart.min(), 0.5),
        distance_alone=close(gram.diagonal(offset=7), gram[0, 7], atol=1e-3),
    )


def _imperfect(schedule: Schedule) -> "Imperfect":
    return Imperfect(gaussian_oracle(schedule, torch.zeros(1, dtype=torch.float64), 0.5))


class Imperfect:
    """0.8 times the exact answer: any denoiser will do where an identity must hold for all of them."""

    def __init__(self, oracle: MixtureOracle) -> None:
        self.oracle = oracle

    def __call__(self, x: Tensor, t: Tensor) -> Tensor:
        return 0.8 * self.oracle(x, t)
