"""Effects of finite width: variance of the tangent kernel and its change in training (book sec. 15.4)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.kernels.finite_width.empirical_ntk import BLOCK, empirical_ntk


class KernelStatistics(NamedTuple):
    """Mean, standard deviation and standard error of the mean of kernel entries over random networks.

    >>> zero = torch.zeros(2, 2)
    >>> KernelStatistics(mean=zero, std=zero, standard_error=zero).mean.shape
    torch.Size([2, 2])
    """

    mean: Float[Tensor, "n n"]
    std: Float[Tensor, "n n"]
    standard_error: Float[Tensor, "n n"]


class TrainingRecord(NamedTuple):
    """Outputs and changes of kernel and parameters at recorded steps of gradient descent, including the first.

    >>> record = TrainingRecord(torch.tensor([0, 10]), torch.zeros(2, 5, 1), torch.zeros(2), torch.zeros(2))
    >>> record.steps.tolist()
    [0, 10]
    """

    steps: Int[Tensor, " records"]
    outputs: Float[Tensor, "records n *outputs"]
    kernel_change: Float[Tensor, " records"]
    """‖K(t) − K(0)‖ / ‖K(0)‖ on the training inputs."""
    parameter_change: Float[Tensor, " records"]
    """‖θ(t) − θ(0)‖ / ‖θ(0)‖ over all parameters."""


def kernel_statistics(
    sample_network: Callable[[], nn.Module], x: Float[Tensor, "n *features"], *, draws: int, block: int = BLOCK
) -> KernelStatistics:
    """Statistics of the empirical NTK over `draws` random networks returned by `sample_network()`.

    For deep networks the mean differs from the limit by O(1/width), while entries deviate by O(1/√width).
    """
    if draws < 2:
        raise ValueError(f"a standard deviation needs at least two draws; got draws={draws}")
    kernels = torch.stack([empirical_ntk(sample_network(), x, block=block) for _ in range(draws)])
    deviation = kernels.std(0)
    return KernelStatistics(kernels.mean(0), deviation, deviation / draws**0.5)


def train_and_measure(
    module: nn.Module,
    x: Float[Tensor, "n *features"],
    target: Float[Tensor, "n *outputs"],
    *,
    learning_rate: float,
    steps: int,
    records: int = 20,
    block: int = BLOCK,
) -> TrainingRecord:
    """Train a module in place by θ ← θ − η ∇ ½ Σ_n ‖f(x_n) − y_n‖², recording kernel and parameters.

    Up to `records` steps are recorded, most densely at the start (book eqs. 15.49-15.50).
    """
    if not learning_rate > 0 or steps < 1 or records < 2:
        raise ValueError(
            f"need learning_rate > 0, steps ≥ 1 and records ≥ 2; got {learning_rate=}, {steps=}, {records=}"
        )
    theta: list[Tensor] = [parameter for parameter in module.parameters() if parameter.requires_grad]
    first, kernel = _flatten(theta), empirical_ntk(module, x, block=block)
    due = (steps * torch.linspace(0, 1, records, dtype=torch.float64).square()).round().long().unique()
    outputs, kernel_change, parameter_change = [], [], []
    for step in range(steps + 1):
        prediction = module(x)
        if prediction.shape != target.shape:
            raise ValueError(
                f"target must have the shape of the outputs {tuple(prediction.shape)}; got {tuple(target.shape)}"
            )
        if step in due:
            outputs.append(prediction.detach())
            kernel_change.append((empirical_ntk(module, x, block=block) - kernel).norm() / kernel.norm())
            parameter_change.append((_flatten(theta) - first).norm() / first.norm())
        if step < steps:
            _gradient_step(theta, (prediction - target).square().sum() / 2, learning_rate)
    return TrainingRecord(due, torch.stack(outputs), torch.stack(kernel_change), torch.stack(parameter_change))


def width_exponent(widths: Sequence[int], values: Sequence[float]) -> float:
    """The exponent r of values ∝ widthʳ: least-squares slope of log value against log width."""
    if len(widths) < 2 or len(widths) != len(values) or min(widths) < 1 or not min(values) > 0:
        raise ValueError(f"need at least two widths with a positive value each; got {list(widths)} and {list(values)}")
    x, y = (torch.tensor(part, dtype=torch.float64).log() for part in (list(widths), list(values)))
    return float((x - x.mean()) @ y / (x - x.mean()).square().sum())


def _gradient_step(theta: list[Tensor], loss: Tensor, learning_rate: float) -> None:
    gradients = torch.autograd.grad(loss, theta)
    with torch.no_grad():
        for parameter, gradient in zip(theta, gradients, strict=True):
            parameter.sub_(gradient, alpha=learning_rate)


def _flatten(theta: list[Tensor]) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in theta])
