"""A learning-rate finder: raise the rate until the loss worsens (book sec. 1.3; Smith 2017)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log10

import torch
from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True)
class RateCurve:
    """What the finder saw: the rate of each step and the smoothed mini-batch loss before that step."""

    rates: Float[Tensor, " steps"]
    losses: Float[Tensor, " steps"]

    @property
    def safe(self) -> float:
        """The last rate that was still safe: its step led to the lowest loss of the curve."""
        lowest = int(self.losses.argmin())
        return float(self.rates[max(lowest - 1, 0)])


def find_rate(
    parameters: Iterable[nn.Parameter],
    batch_loss: Callable[[], Tensor],
    *,
    lowest: float = 1e-7,
    highest: float = 10.0,
    steps: int = 100,
    smoothing: float = 0.0,
    stop_factor: float = 4.0,
) -> RateCurve:
    """Descend while the rate grows geometrically from `lowest` to `highest`; stop when the loss worsens.

    `batch_loss()` is the loss of the next mini-batch at the present parameters. The curve is smoothed by an
    exponential average with weight `smoothing` on its past, corrected for its start; the walk ends when that exceeds
    `stop_factor` times its least value. The parameters are put back afterwards.
    """
    if not 0 < lowest < highest:
        raise ValueError(f"rates must satisfy 0 < lowest < highest; got lowest={lowest}, highest={highest}")
    if steps < 2 or not 0 <= smoothing < 1 or stop_factor <= 1:
        raise ValueError(
            "need steps ≥ 2, 0 ≤ smoothing < 1 and stop_factor > 1; "
            f"got steps={steps}, smoothing={smoothing}, stop_factor={stop_factor}"
        )
    parameters = list(parameters)
    kept = [parameter.detach().clone() for parameter in parameters]
    rates = torch.logspace(log10(lowest), log10(highest), steps, dtype=torch.float64)
    losses: list[float] = []
    average = 0.0
    for step, rate in enumerate(rates.tolist()):
        loss = batch_loss()
        average = smoothing * average + (1 - smoothing) * float(loss.detach())
        losses.append(average / (1 - smoothing ** (step + 1)))
        if not losses[-1] <= stop_factor * min(losses):  # a NaN stops it too
            break
        _descend(parameters, loss, rate)
    with torch.no_grad():
        for parameter, before in zip(parameters, kept, strict=True):
            parameter.copy_(before)
    return RateCurve(rates[: len(losses)], torch.tensor(losses, dtype=torch.float64).nan_to_num(torch.inf))


@torch.no_grad()
def _descend(parameters: list[nn.Parameter], loss: Tensor, rate: float) -> None:
    for parameter, slope in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.sub_(slope, alpha=rate)
