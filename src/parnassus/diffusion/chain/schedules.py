"""Noise schedules: constant, linear, sigmoid, cosine, learnable (book sec. 13.2.1)."""

from dataclasses import dataclass
from math import pi

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.errors import check_at_least_one


@dataclass(frozen=True, eq=False)
class Schedule:
    """Factors α_1 … α_T of the forward kernel and their products (book eqs. 13.22, 13.31).

        ᾱ_t = α_1 α_2 … α_t,   ᾱ_0 = 1

    Code counts t from 0, the book from 1: `alpha[0]` is α_1, `alpha_bar_before[0]` is ᾱ_0. Values are float64:
    near the data 1 − ᾱ_t would lose half its digits in float32. Coefficients are cast to the dtype of the data.

    >>> schedule = Schedule.from_alpha(torch.tensor([0.9, 0.5]))
    >>> schedule.alpha_bar
    tensor([0.9000, 0.4500])
    """

    alpha: Float[Tensor, " steps"]
    alpha_bar: Float[Tensor, " steps"]
    alpha_bar_before: Float[Tensor, " steps"]

    @staticmethod
    def from_alpha(alpha: Float[Tensor, " steps"]) -> "Schedule":
        """The schedule with per-step factors α_t, all strictly between 0 and 1."""
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
        """The signal-to-noise ratio one step earlier, infinite at the first step."""
        return self.alpha_bar_before / (1 - self.alpha_bar_before)

    def respace(self, grid: Int[Tensor, " kept"]) -> "Schedule":
        """The schedule of a subset of the steps: α = ᾱ_t / ᾱ_s for neighbours s < t of the grid."""
        alpha_bar = self.alpha_bar[grid.to(self.alpha_bar.device)]
        before = torch.cat([alpha_bar.new_ones(1), alpha_bar[:-1]])
        return Schedule(alpha_bar / before, alpha_bar, before)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> "Schedule":
        """The schedule on another device or in another dtype; products are not recomputed."""

        def move(values: Tensor) -> Tensor:
            return values.to(dtype=dtype or values.dtype).to(device=device or values.device)

        return Schedule(move(self.alpha), move(self.alpha_bar), move(self.alpha_bar_before))


def linear_schedule(steps: int, low: float = 1e-4, high: float = 0.02) -> Schedule:
    """1 − α_t increases linearly from `low` to `high` (Ho et al. 2020, 1,000 steps).

    For a shorter chain multiply `low` and `high` by 1,000 / steps.
    """
    check_at_least_one(steps=steps)
    return Schedule.from_alpha(1 - torch.linspace(low, high, steps, dtype=torch.float64))


def constant_schedule(steps: int, noise: float = 0.01) -> Schedule:
    """1 − α_t = `noise` at every step, so ᾱ_t = (1 − noise)ᵗ."""
    check_at_least_one(steps=steps)
    return Schedule.from_alpha(torch.full((steps,), 1 - noise, dtype=torch.float64))


def sigmoid_schedule(steps: int, low: float = 1e-4, high: float = 0.02, *, sharpness: float = 6.0) -> Schedule:
    """1 − α_t increases from `low` to `high` along a logistic curve over [−sharpness, sharpness]."""
    check_at_least_one(steps=steps)
    curve = torch.linspace(-sharpness, sharpness, steps, dtype=torch.float64).sigmoid()
    return Schedule.from_alpha(1 - (low + (high - low) * curve))


def cosine_schedule(steps: int, offset: float = 0.008, *, max_noise: float = 0.999) -> Schedule:
    """ᾱ_t = f(t)/f(0), f(t) = cos²(½π (t/T + offset)/(1 + offset)) (Nichol & Dhariwal 2021, eq. 17).

    1 − α_t is clipped to `max_noise`, since the curve would end at ᾱ_T = 0.
    """
    check_at_least_one(steps=steps)
    time = torch.linspace(0, 1, steps + 1, dtype=torch.float64)
    f = ((time + offset) / (1 + offset) * pi / 2).cos().square()
    return Schedule.from_alpha((f[1:] / f[:-1]).clamp(min=1 - max_noise))


class LearnableSchedule(nn.Module):
    """A schedule with unconstrained parameters whose SNR decreases for all their values.

        log SNR_t = start − Σ_{s≤t} softplus(ω_s),   ᾱ_t = sigmoid(log SNR_t)

    Calling it returns a differentiable `Schedule`, initially equal to `like`.

    >>> len(LearnableSchedule(linear_schedule(10))())
    10
    """

    def __init__(self, like: Schedule) -> None:
        super().__init__()
        log_snr = like.snr.log()
        decrements = log_snr[:-1] - log_snr[1:]
        self.start = nn.Parameter(log_snr[:1].clone())
        self.omega = nn.Parameter(decrements + torch.log(-torch.expm1(-decrements)))  # softplus⁻¹

    def forward(self) -> Schedule:
        decrements = nn.functional.softplus(self.omega).cumsum(0)
        alpha_bar = torch.cat([self.start, self.start - decrements]).sigmoid()
        before = torch.cat([alpha_bar.new_ones(1), alpha_bar[:-1]])
        return Schedule(alpha_bar / before, alpha_bar, before)
