"""What finite width changes: a tangent kernel scatters at random weights, drifts in training (book sec. 15.4)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.kernels.empirical import BLOCK, empirical_ntk


class Scatter(NamedTuple):
    """Mean and deviation of each entry of the kernel over random networks, and how far chance may put the mean off."""

    mean: Float[Tensor, "n n"]
    deviation: Float[Tensor, "n n"]
    standard_error: Float[Tensor, "n n"]


class Training(NamedTuple):
    """A run of gradient descent at some of its steps, the start among them."""

    steps: Int[Tensor, " records"]
    outputs: Float[Tensor, "records n *outputs"]
    kernel_change: Float[Tensor, " records"]
    """‖K(t) − K(0)‖ / ‖K(0)‖ on the training inputs."""
    parameter_change: Float[Tensor, " records"]
    """‖θ(t) − θ(0)‖ / ‖θ(0)‖ over all parameters."""


def kernel_scatter(
    draw: Callable[[], nn.Module], x: Float[Tensor, "n *features"], *, draws: int, block: int = BLOCK
) -> Scatter:
    """The tangent kernels of `draws` networks that `draw()` makes at random, for any kind of network.

    Compare `mean` with the limit: for deep networks it is off by O(1/width), while entries scatter by O(1/√width).
    """
    if draws < 2:
        raise ValueError(f"a deviation needs at least two draws; got draws={draws}")
    kernels = torch.stack([empirical_ntk(draw(), x, block=block) for _ in range(draws)])
    deviation = kernels.std(0)
    return Scatter(kernels.mean(0), deviation, deviation / draws**0.5)


def train_and_measure(
    module: nn.Module,
    x: Float[Tensor, "n *features"],
    target: Float[Tensor, "n *outputs"],
    *,
    rate: float,
    steps: int,
    records: int = 20,
    block: int = BLOCK,
) -> Training:
    """Train a module in place by θ ← θ − η ∇ ½ Σ_n ‖f(x_n) − y_n‖², and measure how kernel and parameters move.

    `records` moments are measured from the start to the end, densest at the start (book eqs. 15.49-15.50).
    """
    if not rate > 0 or steps < 1 or records < 2:
        raise ValueError(f"need rate > 0, steps ≥ 1 and records ≥ 2; got rate={rate}, steps={steps}, records={records}")
    theta: list[Tensor] = [parameter for parameter in module.parameters() if parameter.requires_grad]
    first, kernel = _flat(theta), empirical_ntk(module, x, block=block)
    due = (steps * torch.linspace(0, 1, records, dtype=torch.float64).square()).round().long().unique()
    outputs, kernel_change, parameter_change = [], [], []
    for step in range(steps + 1):
        made = module(x)
        if made.shape != target.shape:
            raise ValueError(f"targets must look like outputs; got {tuple(target.shape)} and {tuple(made.shape)}")
        if step in due:
            outputs.append(made.detach())
            kernel_change.append((empirical_ntk(module, x, block=block) - kernel).norm() / kernel.norm())
            parameter_change.append((_flat(theta) - first).norm() / first.norm())
        if step < steps:
            _descend(theta, (made - target).square().sum() / 2, rate)
    return Training(due, torch.stack(outputs), torch.stack(kernel_change), torch.stack(parameter_change))


def width_exponent(widths: Sequence[int], values: Sequence[float]) -> float:
    """The power r of values ∝ widthʳ: the slope of log value against log width by least squares."""
    if len(widths) < 2 or len(widths) != len(values) or min(widths) < 1 or not min(values) > 0:
        raise ValueError(f"need two or more widths with a positive value each; got {list(widths)} and {list(values)}")
    x, y = (torch.tensor(part, dtype=torch.float64).log() for part in (list(widths), list(values)))
    return float((x - x.mean()) @ y / (x - x.mean()).square().sum())


def _descend(theta: list[Tensor], loss: Tensor, rate: float) -> None:
    slopes = torch.autograd.grad(loss, theta)
    with torch.no_grad():
        torch._foreach_add_(theta, slopes, alpha=-rate)


def _flat(theta: list[Tensor]) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in theta])
