"""Learning-rate finder: increase the learning rate until the loss diverges (book sec. 1.3; Smith 2017)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log10

import torch
from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True)
class LearningRateCurve:
    """Result of the finder: the learning rate of each step and the smoothed mini-batch loss before that step.

    >>> rates = torch.logspace(-4, 0, 9)
    >>> LearningRateCurve(rates, torch.tensor([9.0, 9, 8, 6, 3, 2, 1, 2, 9])).suggestion < 0.1
    True
    """

    rates: Float[Tensor, " steps"]
    losses: Float[Tensor, " steps"]

    @property
    def suggestion(self) -> float:
        """The learning rate of the step that led to the lowest loss."""
        best = int(self.losses.argmin())
        return float(self.rates[max(best - 1, 0)])


def find_learning_rate(
    parameters: Iterable[nn.Parameter],
    batch_loss: Callable[[], Tensor],
    *,
    min_rate: float = 1e-7,
    max_rate: float = 10.0,
    steps: int = 100,
    smoothing: float = 0.0,
    stop_factor: float = 4.0,
) -> LearningRateCurve:
    """Run SGD while the learning rate grows geometrically from `min_rate` to `max_rate`, until the loss diverges.

    `batch_loss()` is the loss of the next mini-batch at the current parameters. Losses are smoothed by a bias-corrected
    exponential moving average with weight `smoothing` on the past; the search ends when the average exceeds
    `stop_factor` times its minimum. The parameters are restored afterwards.
    """
    if not 0 < min_rate < max_rate:
        raise ValueError(f"need 0 < min_rate < max_rate; got min_rate={min_rate}, max_rate={max_rate}")
    if steps < 2 or not 0 <= smoothing < 1 or stop_factor <= 1:
        raise ValueError(
            "need steps ≥ 2, 0 ≤ smoothing < 1 and stop_factor > 1; "
            f"got steps={steps}, smoothing={smoothing}, stop_factor={stop_factor}"
        )
    parameters = list(parameters)
    initial = [parameter.detach().clone() for parameter in parameters]
    rates = torch.logspace(log10(min_rate), log10(max_rate), steps, dtype=torch.float64)
    losses: list[float] = []
    average = 0.0
    for step, rate in enumerate(rates.tolist()):
        loss = batch_loss()
        average = smoothing * average + (1 - smoothing) * float(loss.detach())
        losses.append(average / (1 - smoothing ** (step + 1)))
        if not losses[-1] <= stop_factor * min(losses):  # a NaN stops it too
            break
        _sgd_step(parameters, loss, rate)
    with torch.no_grad():
        for parameter, value in zip(parameters, initial, strict=True):
            parameter.copy_(value)
    return LearningRateCurve(rates[: len(losses)], torch.tensor(losses, dtype=torch.float64).nan_to_num(torch.inf))


@torch.no_grad()
def _sgd_step(parameters: list[nn.Parameter], loss: Tensor, rate: float) -> None:
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.sub_(gradient, alpha=rate)
