"""Claims about training objectives and prediction types (book sec. 13.2.4)."""

from collections.abc import Callable
from math import log, pi

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.diffusion.chain.elbo import elbo_terms, prior_kl
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser, gaussian_denoiser
from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.gaussian_posterior import posterior_mean
from parnassus.diffusion.chain.objectives import (
    Objective,
    bound_weight,
    noise_weight,
    simple_objective,
    weighted_objective,
    weighted_x0_objective,
    x0_weight,
)
from parnassus.diffusion.chain.predictions import (
    mean_from_noise,
    noise_from_mean,
    noise_from_score,
    noise_from_x0,
    score_from_noise,
    x0_from_noise,
)
from parnassus.diffusion.chain.schedules import Schedule, linear_schedule
from parnassus.diffusion.claims.exact_expectations import SIGNS, mixture_nodes
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.networks.timestep_embedding import sinusoidal_embedding


@claim("B13.2.4-3")
def the_weight_of_x0_prediction_is_half_the_decrease_of_the_snr() -> Evidence:
    """Three formulas for the weight of ‖x_θ − x_0‖² agree: both fractions, and ½ (SNR_{t−1} − SNR_t)."""
    schedule = linear_schedule(1_000)
    alpha, after, before = (part[1:] for part in (schedule.alpha, schedule.alpha_bar, schedule.alpha_bar_before))
    first = (1 - after) / ((1 - alpha) * (1 - before)) * before * (1 - alpha) ** 2 / (1 - after) ** 2 / 2
    second = before * (1 - alpha) / ((1 - before) * (1 - after)) / 2
    third = (before - after) / ((1 - before) * (1 - after)) / 2
    return all_of(
        first=close(first, x0_weight(schedule)[1:], rtol=1e-8),
        second=close(second, x0_weight(schedule)[1:], rtol=1e-8),
        third=close(third, x0_weight(schedule)[1:], rtol=1e-8),
    )


@claim("B13.2.4-3")
def a_uniform_random_step_estimates_the_sum_without_bias() -> Evidence:
    """(T − 1) times the KL at a uniform step t ≥ 2 has the sum of all KLs as its expectation (4 standard errors)."""
    torch.manual_seed(0)
    schedule = linear_schedule(50, low=0.002, high=0.4)
    denoiser = _imperfect_denoiser(schedule)
    x0, noise = SIGNS[:, :1] * 0.5, SIGNS[:, 1:]
    total = elbo_terms(denoiser, schedule, x0, noise=lambda _: noise).matching.sum(1).mean()
    samples, t = 0.5 * torch.randn(200_000, 1, dtype=torch.float64), torch.randint(1, 50, (200_000,))
    draws = 49 * weighted_objective(noise_weight)(denoiser, schedule, samples, t, torch.randn_like(samples))
    return all_of(
        distance_in_standard_errors=less_equal((draws.mean() - total).abs() / (draws.std() / len(draws) ** 0.5), 4.0),
        standard_error=less_equal(draws.std() / len(draws) ** 0.5 / total, 0.02),
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
def noise_and_x0_prediction_have_the_same_kl() -> Evidence:
    """The weighted losses of ε_θ and of the corresponding x_θ agree; both weights are infinite at t = 1."""
    torch.manual_seed(0)
    schedule, t = linear_schedule(1_000), torch.arange(1, 1_000)
    x0, noise, predicted = torch.randn(3, 999, 3, dtype=torch.float64)
    by_noise = weighted_objective(noise_weight)(lambda _x, _t: predicted, schedule, x0, t, noise)
    by_x0 = weighted_x0_objective(x0_weight)(
        lambda x, t: x0_from_noise(schedule, x, t, predicted), schedule, x0, t, noise
    )
    return all_of(
        equal=close(by_noise, by_x0, rtol=1e-8),
        first_noise_weight=greater_equal(noise_weight(schedule)[0], 1e300),
        first_x0_weight=greater_equal(x0_weight(schedule)[0], 1e300),
    )


@claim("B13.2.4-4", "B13.2.6-4")
def predictions_convert_into_each_other() -> Evidence:
    """Conversions between x_0, ε, score and μ are inverse to each other, and x_0 = (x_t + (1 − ᾱ_t) score) / √ᾱ_t."""
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
    """At ε_θ = E[ε|x_t] the directional derivatives of every objective vanish; elsewhere they do not."""
    schedule = linear_schedule(50, low=0.002, high=0.4)
    centres, stds = torch.tensor([[-1.0], [2.0]]).double(), torch.tensor([0.3, 0.6]).double()
    oracle = MixtureDenoiser(schedule, centres, stds)
    x0, noise, mass = mixture_nodes(centres, stds)
    t = torch.full((len(x0),), 10)

    def derivative(objective: Objective, direction: Callable[[Tensor], Tensor], offset: float) -> Tensor:
        """The derivative along ε_θ = E[ε|x_t] + s · direction(x_t), at s = offset."""
        s = torch.tensor(offset, dtype=torch.float64, requires_grad=True)
        losses = objective(lambda x, t: oracle(x, t) + s * direction(x), schedule, x0, t, noise)
        return torch.autograd.grad((mass * losses).sum(), s)[0]

    objectives = (simple_objective, weighted_objective(noise_weight), weighted_objective(bound_weight))
    directions = (torch.ones_like, torch.sin, torch.square)
    pairs = [(objective, direction) for objective in objectives for direction in directions]
    return all_of(
        at_the_minimum=close(torch.stack([derivative(*pair, 0.0) for pair in pairs]), 0.0, atol=1e-6),
        away_from_it=greater_equal(torch.stack([derivative(*pair, 0.1) for pair in pairs]), 1e-3),
    )


@claim("B13.2.4-5")
def the_bound_is_a_weighted_sum_of_squared_errors() -> Evidence:
    """−ELBO = Σ_t w_t E‖ε_θ − ε‖² + KL(q(x_T|x_0) ‖ p) + ½ D log(2π(1 − α_1)), with w_t the weights of the bound."""
    schedule = linear_schedule(50, low=0.002, high=0.4)
    denoiser, x0, noise = _imperfect_denoiser(schedule), SIGNS[:, :1] * 0.5, SIGNS[:, 1:]
    terms = elbo_terms(denoiser, schedule, x0, noise=lambda _: noise)
    sum_of_errors = torch.zeros(4, dtype=torch.float64)

    def data_predictor(x: Tensor, t: Tensor) -> Tensor:
        return x0_from_noise(schedule, x, t, denoiser(x, t))

    of_data = weighted_x0_objective(x0_weight)
    matching = [of_data(data_predictor, schedule, x0, torch.full((4,), step), noise) for step in range(1, 50)]
    for step in range(50):
        sum_of_errors += weighted_objective(bound_weight)(denoiser, schedule, x0, torch.full((4,), step), noise)
    constant = 0.5 * log(2 * pi * float(1 - schedule.alpha[0]))
    return all_of(
        bound=close(-terms.elbo, sum_of_errors + prior_kl(schedule, x0) + constant, atol=1e-9),
        errors_of_the_data=close(torch.stack(matching, 1), terms.matching, atol=1e-9),
    )


class LinearDenoiser(nn.Module):
    """ε_θ(x, t) = w_t x, which is exact for zero-mean Gaussian data."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.zeros(steps))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.slope[t][:, None] * x


@claim("B13.2.4-6")
def training_finds_the_conditional_mean_of_the_noise() -> Evidence:
    """Training on N(0, ¼) data converges to w_t = √(1 − ᾱ_t) / (¼ ᾱ_t + 1 − ᾱ_t), the coefficient of E[ε|x_t]."""
    torch.manual_seed(0)
    schedule = linear_schedule(10, low=0.01, high=0.9)
    model = DDPM(LinearDenoiser(10), (1,), schedule=schedule)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for step in range(400):
        optimizer.param_groups[0]["lr"] = 2.0 / (1 + step / 20)
        optimizer.zero_grad()
        model.loss(0.5 * torch.randn(2_000, 1)).backward()
        optimizer.step()
    alpha_bar = schedule.alpha_bar
    return close(next(model.parameters()), (1 - alpha_bar).sqrt() / (0.25 * alpha_bar + 1 - alpha_bar), atol=0.03)


@claim("B13.2.4-8")
def time_embeddings_are_distinct_and_depend_on_time_differences() -> Evidence:
    """The embeddings of 1,000 steps are distinct, and ⟨e(s), e(t)⟩ depends on s − t only."""
    embedding = sinusoidal_embedding(torch.arange(1_000), 64).double()
    gram = embedding @ embedding.mT
    squares = gram.diagonal()
    distances = (squares[:, None] + squares - 2 * gram).fill_diagonal_(torch.inf)
    return all_of(
        min_distance=greater_equal(distances.min(), 0.5),
        products_at_distance_7=close(gram.diagonal(offset=7), gram[0, 7], atol=1e-3),
    )


def _imperfect_denoiser(schedule: Schedule) -> "ImperfectDenoiser":
    return ImperfectDenoiser(gaussian_denoiser(schedule, torch.zeros(1, dtype=torch.float64), 0.5))


class ImperfectDenoiser:
    """0.8 times the exact denoiser, for identities that hold for every denoiser."""

    def __init__(self, oracle: MixtureDenoiser) -> None:
        self.oracle = oracle

    def __call__(self, x: Tensor, t: Tensor) -> Tensor:
        return 0.8 * self.oracle(x, t)
