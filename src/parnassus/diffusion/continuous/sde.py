"""Noising SDEs (VP, sub-VP, VE) with closed-form marginals (Song et al. 2021).

The chain of DDPM and the noise levels of score matching are discretisations of two of them (book sec. 13.2.8). Time
runs from 0, the data, to 1, the noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.continuous.time_grids import broadcast_rows
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture

TimeFunction: TypeAlias = Callable[[Tensor], Tensor]
"""A scalar function applied elementwise to times of any shape."""
TimedScore: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""∇ log q_t(x) for examples x and their times t (book sec. 13.2.6)."""


@dataclass(frozen=True, eq=False)
class NoisingSDE:
    """dX = f(t) X dt + g(t) dW, linear in X, so X_t is a scaled copy of X_0 plus Gaussian noise.

    X_t = a(t) X_0 + b(t) ε,   ε ~ N(0, I)
    a′ = f a,   (b²)′ = 2 f b² + g²,   a(0) = 1,   b(0) = 0

    >>> sde = variance_exploding(0.01, 10.0)
    >>> sde.std(torch.tensor([1.0])).item() > 9
    True
    """

    rate: TimeFunction  # f
    diffusion_rate: TimeFunction  # g
    scale: TimeFunction  # a
    std: TimeFunction  # b

    def drift(self, x: Float[Tensor, "batch *event"], t: Float[Tensor, "*rows"]) -> Float[Tensor, "batch *event"]:
        """The drift f(t) x, for one time or one per example."""
        return broadcast_rows(self.rate(t), x) * x

    def volatility(self, x: Float[Tensor, "batch *event"], t: Float[Tensor, "*rows"]) -> Tensor:
        """The volatility g(t), shaped to multiply x row by row."""
        return broadcast_rows(self.diffusion_rate(t), x)

    def diffuse(
        self, x0: Float[Tensor, "batch *event"], t: Float[Tensor, "*rows"], noise: Float[Tensor, "batch *event"]
    ) -> Float[Tensor, "batch *event"]:
        """A sample X_t = a(t) x_0 + b(t) ε of the marginal at time t."""
        return broadcast_rows(self.scale(t), x0) * x0 + broadcast_rows(self.std(t), x0) * noise

    @property
    def prior_std(self) -> float:
        """√(a(1)² + b(1)²), the standard deviation of the prior for data of unit variance."""
        one = torch.tensor(1.0, dtype=torch.float64, device="cpu")
        return float((self.scale(one).square() + self.std(one).square()).sqrt())


def variance_preserving(beta_min: float = 0.1, beta_max: float = 20.0) -> NoisingSDE:
    """The VP equation dX = −½ β(t) X dt + √β(t) dW, which keeps unit variance (Song et al. 2021, eq. 11).

        β(t) = beta_min + t (beta_max − beta_min),   a = exp(−½ ∫₀ᵗ β),   b² = 1 − a²

    The limit of DDPM's chain with 1 − α_k = β(k/T) / T as T → ∞ (book eq. 13.25).
    """
    return _variance_preserving_sde(*_linear_beta(beta_min, beta_max))


def sub_variance_preserving(beta_min: float = 0.1, beta_max: float = 20.0) -> NoisingSDE:
    """The sub-VP equation: VP with g² = β (1 − e^{−2 ∫β}), so that b = 1 − a² (Song et al. 2021, eq. 13).

    Its variance is at most that of `variance_preserving`; both have the same limit.
    """
    beta, total = _linear_beta(beta_min, beta_max)
    return NoisingSDE(
        rate=lambda t: -beta(t) / 2,
        diffusion_rate=lambda t: (beta(t) * -torch.expm1(-2 * total(t))).sqrt(),
        scale=lambda t: torch.exp(-total(t) / 2),
        std=lambda t: -torch.expm1(-total(t)),
    )


def variance_exploding(sigma_min: float = 0.01, sigma_max: float = 10.0) -> NoisingSDE:
    """The VE equation dX = √(dσ²/dt) dW with σ(t) = sigma_min (sigma_max/sigma_min)ᵗ (Song et al. 2021, eq. 9).

        a = 1,   b² = σ(t)² − σ(0)²,   g = σ(t) √(2 log(sigma_max/sigma_min))

    The limit of score matching at geometric noise levels (book sec. 13.2.7). `sigma_max` should be about
    the diameter of the data. Song et al. write σ(t) for b, which differs near t = 0 only.
    """
    if not 0 < sigma_min < sigma_max:
        raise ValueError(f"0 < sigma_min < sigma_max must hold; got sigma_min={sigma_min}, sigma_max={sigma_max}")
    growth = log(sigma_max / sigma_min)

    def sigma(t: Tensor) -> Tensor:
        return sigma_min * torch.exp(growth * t)

    return NoisingSDE(
        rate=torch.zeros_like,
        diffusion_rate=lambda t: sigma(t) * (2 * growth) ** 0.5,
        scale=torch.ones_like,
        std=lambda t: sigma_min * torch.expm1(2 * growth * t).sqrt(),
    )


def sde_from_schedule(schedule: Schedule) -> NoisingSDE:
    """The VP equation that agrees with a chain of T steps at times k/T: a(k/T)² = ᾱ_k (book eq. 13.31).

    β is piecewise constant: β = −T log α_k for t in ((k − 1)/T, k/T]
    """
    steps = len(schedule)
    decrements = -schedule.alpha.log()
    before = -schedule.alpha_bar_before.log()

    def step(t: Tensor) -> Tensor:
        return (t * steps - 1e-3).ceil().long().clamp(1, steps) - 1  # k/T, up to rounding, belongs to step k

    def beta(t: Tensor) -> Tensor:
        return steps * decrements.to(t)[step(t)]

    def total(t: Tensor) -> Tensor:
        k = step(t)
        return before.to(t)[k] + (t * steps - k) * decrements.to(t)[k]

    return _variance_preserving_sde(beta, total)


def time_at_noise_ratio(sde: NoisingSDE, ratio: float) -> float:
    """The time t with noise-to-signal ratio b(t) / a(t) = `ratio`, by bisection.

    At equal ratios x_t / a(t) has the same distribution, and so the same score, under every equation.
    """

    def noise_ratio(t: float) -> float:
        time = torch.tensor(t, dtype=torch.float64, device="cpu")
        return float(sde.std(time) / sde.scale(time))

    if not 0 < ratio <= noise_ratio(1.0):
        raise ValueError(f"ratio must be > 0 and at most {noise_ratio(1.0):g}, its value at t = 1; got ratio={ratio}")
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if noise_ratio(middle) < ratio else (low, middle)
    return high


def _linear_beta(beta_min: float, beta_max: float) -> tuple[TimeFunction, TimeFunction]:
    """β(t), linear from beta_min to beta_max, and its integral from 0."""
    if not 0 < beta_min <= beta_max:
        raise ValueError(f"0 < beta_min ≤ beta_max must hold; got beta_min={beta_min}, beta_max={beta_max}")
    growth = beta_max - beta_min
    return lambda t: beta_min + growth * t, lambda t: beta_min * t + growth / 2 * t.square()


def _variance_preserving_sde(beta: TimeFunction, total: TimeFunction) -> NoisingSDE:
    return NoisingSDE(
        rate=lambda t: -beta(t) / 2,
        diffusion_rate=lambda t: beta(t).sqrt(),
        scale=lambda t: torch.exp(-total(t) / 2),
        std=lambda t: (-torch.expm1(-total(t))).sqrt(),
    )


def mixture_score(mixture: IsotropicMixture, sde: NoisingSDE) -> TimedScore:
    """The exact ∇ log q_t for data from a mixture of Gaussians."""

    def score(x: Tensor, t: Tensor) -> Tensor:
        return mixture.score(x, sde.scale(t)[:, None], sde.std(t)[:, None])

    return score
