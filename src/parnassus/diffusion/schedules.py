"""Noise schedules: how much of the signal each step of a diffusion chain keeps (book sec. 13.2.1)."""

from dataclasses import dataclass
from math import pi

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Schedule:
    """Factors α_1 … α_T of the forward kernel and their products (book eqs. 13.22, 13.31).

        ᾱ_t = α_1 α_2 … α_t,   ᾱ_0 = 1

    Code counts t from 0, the book from 1: `alpha[0]` is α_1, `alpha_bar_before[0]` is ᾱ_0. The numbers are float64:
    near the data 1 − ᾱ_t would lose half its digits in float32. A coefficient is cast when it meets the data.
    """

    alpha: Float[Tensor, " steps"]
    alpha_bar: Float[Tensor, " steps"]
    alpha_bar_before: Float[Tensor, " steps"]

    @staticmethod
    def of(alpha: Float[Tensor, " steps"]) -> "Schedule":
        """The schedule with one-step factors α_t, all strictly between 0 and 1."""
        if not len(alpha) or not bool(((alpha > 0) & (alpha < 1)).all()):
            ends = f"from {alpha.min():g} to {alpha.max():g}" if len(alpha) else "none"
            raise ValueError(f"every alpha must lie strictly between 0 and 1; got {ends}")
        alpha_bar = alpha.cumprod(0)
        return Schedule(alpha, alpha_bar, torch.cat([alpha.new_ones(1), alpha_bar[:-1]]))

    def __len__(self) -> int:
        return len(self.alpha)

    @property
    def snr(self) -> Float[Tensor, " steps"]:
        """Signal-to-noise ratio ᾱ_t / (1 − ᾱ_t)."""
        return self.alpha_bar / (1 - self.alpha_bar)

    @property
    def snr_before(self) -> Float[Tensor, " steps"]:
        """The ratio one step earlier; infinite at the first step, where nothing is drowned yet."""
        return self.alpha_bar_before / (1 - self.alpha_bar_before)

    def keep(self, grid: Int[Tensor, " kept"]) -> "Schedule":
        """The chain that jumps from each kept step to the next: α = ᾱ_t / ᾱ_s for neighbours s < t of the grid."""
        alpha_bar = self.alpha_bar[grid.to(self.alpha_bar.device)]
        before = torch.cat([alpha_bar.new_ones(1), alpha_bar[:-1]])
        return Schedule(alpha_bar / before, alpha_bar, before)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> "Schedule":
        """The same numbers elsewhere; each is rounded once, products are not formed anew."""

        def move(values: Tensor) -> Tensor:
            return values.to(dtype=dtype or values.dtype).to(device=device or values.device)

        return Schedule(move(self.alpha), move(self.alpha_bar), move(self.alpha_bar_before))


def linear_schedule(steps: int, low: float = 1e-4, high: float = 0.02) -> Schedule:
    """1 − α_t rises on a line from `low` to `high` (Ho et al. 2020, 1,000 steps).

    A shorter chain must drown the data in fewer steps: multiply `low` and `high` by 1,000 / steps.
    """
    return Schedule.of(1 - torch.linspace(low, high, _positive(steps), dtype=torch.float64))


def constant_schedule(steps: int, noise: float = 0.01) -> Schedule:
    """1 − α_t = `noise` at every step, so that ᾱ_t = (1 − noise)ᵗ."""
    return Schedule.of(torch.full((_positive(steps),), 1 - noise, dtype=torch.float64))


def sigmoid_schedule(steps: int, low: float = 1e-4, high: float = 0.02, *, sharpness: float = 6.0) -> Schedule:
    """1 − α_t climbs from `low` to `high` along a logistic curve over [−sharpness, sharpness]."""
    climb = torch.linspace(-sharpness, sharpness, _positive(steps), dtype=torch.float64).sigmoid()
    return Schedule.of(1 - (low + (high - low) * climb))


def cosine_schedule(steps: int, offset: float = 0.008, *, most: float = 0.999) -> Schedule:
    """ᾱ_t = f(t) / f(0) with f(t) = cos²(½π (t/T + offset) / (1 + offset)) (Nichol & Dhariwal 2021, eq. 17).

    No step may add more noise than `most`: the curve itself would end at ᾱ_T = 0.
    """
    time = torch.linspace(0, 1, _positive(steps) + 1, dtype=torch.float64)
    f = ((time + offset) / (1 + offset) * pi / 2).cos().square()
    return Schedule.of((f[1:] / f[:-1]).clamp(min=1 - most))


class LearnableSchedule(nn.Module):
    """A schedule with free parameters that is monotone whatever their values.

        log SNR_t = start − Σ_{s≤t} softplus(ω_s),   ᾱ_t = sigmoid(log SNR_t)

    Calling it gives a `Schedule` through which gradients flow; it begins as the schedule that `like` gives.
    """

    def __init__(self, like: Schedule) -> None:
        super().__init__()
        log_snr = like.snr.log()
        falls = log_snr[:-1] - log_snr[1:]
        self.start = nn.Parameter(log_snr[:1].clone())
        self.omega = nn.Parameter(falls + torch.log(-torch.expm1(-falls)))  # softplus⁻¹

    def forward(self) -> Schedule:
        falls = nn.functional.softplus(self.omega).cumsum(0)
        alpha_bar = torch.cat([self.start, self.start - falls]).sigmoid()
        before = torch.cat([alpha_bar.new_ones(1), alpha_bar[:-1]])
        return Schedule(alpha_bar / before, alpha_bar, before)


def _positive(steps: int) -> int:
    if steps < 1:
        raise ValueError(f"steps must be at least 1; got steps={steps}")
    return steps
