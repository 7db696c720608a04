"""Diffusion in continuous time: equations that drown data in noise, with their laws in closed form.

The chain of DDPM and the noise levels of score matching are two of them, seen at a grid of times (book sec. 13.2.8;
Song et al. 2021). Time runs from 0, the data, to 1, the noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.brownian import beside
from parnassus.diffusion.schedules import Schedule

TimeFunction: TypeAlias = Callable[[Tensor], Tensor]
"""Times of any shape in, a number for each out."""
TimedScore: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""∇ log q_t(x) for examples x and their times t, one for each (book sec. 13.2.6)."""


@dataclass(frozen=True, eq=False)
class NoisingSDE:
    """dX = f(t) X dt + g(t) dW, linear in X, so that X_t is a scaled copy of X_0 with normal noise.

    X_t = a(t) X_0 + b(t) ε,   ε ~ N(0, I)
    a′ = f a,   (b²)′ = 2 f b² + g²,   a(0) = 1,   b(0) = 0
    """

    pull: TimeFunction  # f
    noise: TimeFunction  # g
    scale: TimeFunction  # a
    std: TimeFunction  # b

    def drift(self, x: Float[Tensor, "batch *event"], t: Float[Tensor, "*rows"]) -> Float[Tensor, "batch *event"]:
        """The drift f(t) x, for one time or one for each example."""
        return beside(self.pull(t), x) * x

    def volatility(self, x: Float[Tensor, "batch *event"], t: Float[Tensor, "*rows"]) -> Tensor:
        """The factor g(t) of the noise, which multiplies x row by row."""
        return beside(self.noise(t), x)

    def diffuse(
        self, x0: Float[Tensor, "batch *event"], t: Float[Tensor, "*rows"], noise: Float[Tensor, "batch *event"]
    ) -> Float[Tensor, "batch *event"]:
        """X_t = a(t) x_0 + b(t) ε, from the data to any time at once."""
        return beside(self.scale(t), x0) * x0 + beside(self.std(t), x0) * noise

    @property
    def last_std(self) -> float:
        """√(a(1)² + b(1)²), the deviation that data of variance 1 end with, and where the way back begins."""
        one = torch.tensor(1.0, dtype=torch.float64)
        return float((self.scale(one).square() + self.std(one).square()).sqrt())


def variance_preserving(low: float = 0.1, high: float = 20.0) -> NoisingSDE:
    """The equation dX = −½ β(t) X dt + √β(t) dW: data of variance 1 keep it (Song et al. 2021, eq. 11).

        β(t) = low + t (high − low),   a = exp(−½ ∫₀ᵗ β),   b² = 1 − a²

    The limit of DDPM's chain with 1 − α_k = β(k/T) / T for ever more steps T (book eq. 13.25).
    """
    return _preserving(*_linear_beta(low, high))


def sub_variance_preserving(low: float = 0.1, high: float = 20.0) -> NoisingSDE:
    """The same pull with less noise on the way, g² = β (1 − e^{−2 ∫β}), and so b = 1 − a² (Song et al. 2021, eq. 13).

    Its variance is never above that of `variance_preserving`, and the two end alike.
    """
    beta, total = _linear_beta(low, high)
    return NoisingSDE(
        pull=lambda t: -beta(t) / 2,
        noise=lambda t: (beta(t) * -torch.expm1(-2 * total(t))).sqrt(),
        scale=lambda t: torch.exp(-total(t) / 2),
        std=lambda t: -torch.expm1(-total(t)),
    )


def variance_exploding(low: float = 0.01, high: float = 10.0) -> NoisingSDE:
    """The equation dX = √(dσ²/dt) dW, σ(t) = low (high/low)ᵗ: noise is piled on the data (Song et al. 2021, eq. 9).

        a = 1,   b² = σ(t)² − σ(0)²,   g = σ(t) √(2 log(high/low))

    The limit of score matching at geometric noise levels (book sec. 13.2.7). `high` should be as large as the data are
    wide. Song et al. write σ(t) for b, which is the same but near t = 0.
    """
    if not 0 < low < high:
        raise ValueError(f"need 0 < low < high; got low={low}, high={high}")
    growth = log(high / low)

    def sigma(t: Tensor) -> Tensor:
        return low * torch.exp(growth * t)

    return NoisingSDE(
        pull=torch.zeros_like,
        noise=lambda t: sigma(t) * (2 * growth) ** 0.5,
        scale=torch.ones_like,
        std=lambda t: low * torch.expm1(2 * growth * t).sqrt(),
    )


def of_schedule(schedule: Schedule) -> NoisingSDE:
    """The variance-preserving equation that meets a chain of T steps at the times k/T: a(k/T)² = ᾱ_k (book eq. 13.31).

    β is constant over each step: β = −T log α_k for t in ((k − 1)/T, k/T]
    """
    steps = len(schedule)
    falls = -schedule.alpha.log()
    before = -schedule.alpha_bar_before.log()

    def step(t: Tensor) -> Tensor:
        return (t * steps - 1e-3).ceil().long().clamp(1, steps) - 1  # k/T, rounded up, is still of step k

    def beta(t: Tensor) -> Tensor:
        return steps * falls.to(t)[step(t)]

    def total(t: Tensor) -> Tensor:
        k = step(t)
        return before.to(t)[k] + (t * steps - k) * falls.to(t)[k]

    return _preserving(beta, total)


def time_of(sde: NoisingSDE, ratio: float) -> float:
    """The time at which there is `ratio` times as much noise as signal, b(t) / a(t) = ratio, by bisection.

    Equations that noise at their own pace are alike at equal ratios: x_t / a(t) then has one law, and one score.
    """

    def reached(t: float) -> float:
        time = torch.tensor(t, dtype=torch.float64)
        return float(sde.std(time) / sde.scale(time))

    if not 0 < ratio <= reached(1.0):
        raise ValueError(f"the ratio must lie above 0 and at most at {reached(1.0):g}, its last; got ratio={ratio}")
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle) < ratio else (low, middle)
    return high


def towards_data(steps: int, *, end: float = 1e-3, bend: float = 2.0) -> Float[Tensor, " times"]:
    """Times from 1 down to `end`, closer together near the data, where the score changes fast: even in t^(1/bend)."""
    if steps < 1 or not 0 < end < 1 or not bend > 0:
        raise ValueError(f"need steps ≥ 1, 0 < end < 1 and bend > 0; got steps={steps}, end={end}, bend={bend}")
    return torch.linspace(1, end ** (1 / bend), steps + 1, dtype=torch.float64) ** bend


def _linear_beta(low: float, high: float) -> tuple[TimeFunction, TimeFunction]:
    """β(t) on a line from low to high, and its integral from 0."""
    if not 0 < low <= high:
        raise ValueError(f"need 0 < low ≤ high; got low={low}, high={high}")
    return lambda t: low + (high - low) * t, lambda t: low * t + (high - low) / 2 * t.square()


def _preserving(beta: TimeFunction, total: TimeFunction) -> NoisingSDE:
    return NoisingSDE(
        pull=lambda t: -beta(t) / 2,
        noise=lambda t: beta(t).sqrt(),
        scale=lambda t: torch.exp(-total(t) / 2),
        std=lambda t: (-torch.expm1(-total(t))).sqrt(),
    )
