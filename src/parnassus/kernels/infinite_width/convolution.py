"""Convolutions with infinitely many channels: their maps of image kernels (Novak et al. 2019)."""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.layer import Shape


@dataclass(frozen=True)
class Convolution:
    """f(p) = √(v / (c k²)) Σ_a W_a g(p + a) + √b β over k × k offsets a, all weights from N(0, 1), c channels.

        Σ ← v · mean_a Σ(p + a, p' + a) + b,   Θ ← Σ + v · mean_a Θ(p + a, p' + a)

    with v = `weight_variance` and b = `bias_variance`. The image keeps its size by zero padding (the mean counts the
    zeros) or `circular` padding. Both positions shift together, so the entries p = p' depend on such entries only
    (Garriga-Alonso et al. 2019).

    >>> network = Network((Convolution(3), Activation(ReLU()), Flatten(), Dense()))
    >>> network.kernels(torch.ones(2, 1, 4, 4)).nngp.shape
    torch.Size([2, 2])
    """

    size: int = 3
    weight_variance: float = 1.0
    bias_variance: float = 0.0
    circular: bool = False
    mixes_positions: ClassVar[bool] = False
    needs_variances: ClassVar[bool] = False
    has_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.size < 1 or self.size % 2 == 0:
            raise ValueError(f"size must be odd, so that images keep their size; got size={self.size}")
        if not self.weight_variance > 0 or not self.bias_variance >= 0:
            raise ValueError(
                "need weight_variance > 0 and bias_variance ≥ 0; "
                f"got weight_variance={self.weight_variance}, bias_variance={self.bias_variance}"
            )

    def kernel(self, state: KernelState) -> KernelState:
        if not state.position_axes:
            raise ValueError("a convolution takes images (channels, height, width); got vectors")

        def mean(x: Tensor) -> Tensor:
            return moving_mean(
                x, self.size, all_positions=x.ndim > 4, scale=self.weight_variance, circular=self.circular
            )

        after = state.map_positions(mean)
        nngp, left, right = after.nngp, after.left, after.right
        if self.bias_variance:
            nngp, left, right = (part.add_(self.bias_variance) for part in (nngp, left, right))
        ntk = None if after.ntk is None else after.ntk.add_(nngp)
        return KernelState(nngp, ntk, left, right)

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        if len(shape) != 3:
            raise ValueError(f"a convolution takes images (channels, height, width); got shape={shape}")
        scale = sqrt(self.weight_variance / (shape[0] * self.size**2))
        module = ScaledConvolution(shape[0], width, self.size, scale, sqrt(self.bias_variance), circular=self.circular)
        return module, (width, *shape[1:])


class ScaledConvolution(nn.Module):
    """scale · (W ∗ x) + shift · β, with W and β from N(0, 1); the image size is preserved.

    >>> ScaledConvolution(1, 4, 3, scale=1.0, shift=0.0)(torch.zeros(2, 1, 5, 5)).shape
    torch.Size([2, 4, 5, 5])
    """

    def __init__(
        self, inputs: int, outputs: int, size: int, scale: float, shift: float, *, circular: bool = False
    ) -> None:
        super().__init__()
        self.scale, self.shift = scale, shift
        self.reach, self.padding = size // 2, "circular" if circular else "constant"
        self.weight = nn.Parameter(torch.randn(outputs, inputs, size, size))
        self.bias = nn.Parameter(torch.randn(outputs)) if shift else None

    def forward(self, x: Float[Tensor, "batch inputs h w"]) -> Float[Tensor, "batch outputs h w"]:
        scaled = self.scale * functional.conv2d(functional.pad(x, (self.reach,) * 4, self.padding), self.weight)
        return scaled if self.bias is None else torch.add(scaled, self.bias[:, None, None], alpha=self.shift)


def moving_mean(
    x: Float[Tensor, "*rows h w"], size: int, *, all_positions: bool = False, scale: float = 1.0, circular: bool = False
) -> Float[Tensor, "*rows h w"]:
    """Scaled mean over k × k offsets a of x(p + a), or with `all_positions` of x(p + a, p' + a).

    Separable: one axis after the other takes 2 (k − 1) additions instead of k² − 1.
    """
    axes = ((-4, -2), (-3, -1)) if all_positions else ((-2,), (-1,))
    for shifted, factor in zip(axes, (scale / size**2, 1.0), strict=True):
        x = _sum_of_shifts(x, size // 2, shifted, factor, circular=circular)
    return x


def _sum_of_shifts(x: Tensor, reach: int, axes: tuple[int, ...], factor: float, *, circular: bool) -> Tensor:
    """The sum factor · Σ_{|a| ≤ reach} x shifted by a along all the axes together; always a new tensor."""
    if torch.compiler.is_compiling() and not circular:
        return factor * _sum_of_views(x, reach, axes)
    total = x * factor if factor != 1 else x.clone()
    for shift in range(1, reach + 1):
        if circular:
            for offset in (shift, -shift):
                total.add_(x.roll([offset] * len(axes), axes), alpha=factor)
        else:
            head, tail = _axis_slices(axes, x.ndim, slice(None, -shift)), _axis_slices(axes, x.ndim, slice(shift, None))
            total[tail].add_(x[head], alpha=factor)
            total[head].add_(x[tail], alpha=factor)
    return total


def _sum_of_views(x: Tensor, reach: int, axes: tuple[int, ...]) -> Tensor:
    """`_sum_of_shifts` without in-place writes, which torch.compile can fuse with the following operations."""
    padded = functional.pad(x, [reach if axis in axes else 0 for axis in range(-1, -x.ndim - 1, -1) for _ in "<>"])
    total = torch.zeros_like(x)
    for shift in range(2 * reach + 1):
        view = padded
        for axis in axes:
            view = view.narrow(axis, shift, x.shape[axis])
        total = total + view
    return total


def _axis_slices(axes: tuple[int, ...], dimensions: int, part: slice) -> tuple[slice, ...]:
    """An index that takes `part` of the given axes and all of the other axes."""
    return tuple(part if axis - dimensions in axes else slice(None) for axis in range(dimensions))
