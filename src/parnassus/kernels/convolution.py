"""Convolutions of infinitely many channels: what they do to the kernels of images (Novak et al. 2019)."""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from parnassus.kernels.layer import Shape
from parnassus.kernels.pair import Pair


@dataclass(frozen=True)
class Convolution:
    """f(p) = √(weight / (c k²)) Σ_a W_a g(p + a) + √bias β over k × k offsets a, all weights from N(0, 1), c channels.

        Σ ← weight · mean_a Σ(p + a, p' + a) + bias,   Θ ← Σ + weight · mean_a Θ(p + a, p' + a)

    The image keeps its size: beyond its border stand zeros, which the mean counts, or with `circular` the other side.
    Since both places move together, a place compared with itself needs only such places (Garriga-Alonso et al. 2019).
    """

    size: int = 3
    weight: float = 1.0
    bias: float = 0.0
    circular: bool = False
    mixes_places: ClassVar[bool] = False
    needs_variances: ClassVar[bool] = False
    has_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.size < 1 or self.size % 2 == 0:
            raise ValueError(f"a convolution that keeps the size of images needs an odd size; got size={self.size}")
        if not self.weight > 0 or not self.bias >= 0:
            raise ValueError(f"variances need weight > 0 and bias ≥ 0; got weight={self.weight}, bias={self.bias}")

    def kernel(self, pair: Pair) -> Pair:
        if not pair.places:
            raise ValueError("a convolution takes images (channels, height, width); got vectors")

        def mean(x: Tensor) -> Tensor:
            return moving_mean(x, self.size, every_place=x.ndim > 4, scale=self.weight, circular=self.circular)

        moved = pair.mapped(mean)
        nngp, left, right = moved.nngp, moved.left, moved.right
        if self.bias:
            nngp, left, right = (part.add_(self.bias) for part in (nngp, left, right))
        ntk = None if moved.ntk is None else moved.ntk.add_(nngp)
        return Pair(nngp, ntk, left, right)

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        if len(shape) != 3:
            raise ValueError(f"a convolution takes images (channels, height, width); got shape={shape}")
        scale = sqrt(self.weight / (shape[0] * self.size**2))
        module = ScaledConvolution(shape[0], width, self.size, scale, sqrt(self.bias), circular=self.circular)
        return module, (width, *shape[1:])


class ScaledConvolution(nn.Module):
    """scale · (W ∗ x) + shift · β, with W and β from N(0, 1), on images that keep their size."""

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
    x: Float[Tensor, "*rows h w"], size: int, *, every_place: bool = False, scale: float = 1.0, circular: bool = False
) -> Float[Tensor, "*rows h w"]:
    """Means over k × k offsets a of x(p + a), or for `every_place` of x(p + a, p' + a), times a scale.

    One axis after the other, so that it takes 2 (k − 1) additions and not k² − 1.
    """
    axes = ((-4, -2), (-3, -1)) if every_place else ((-2,), (-1,))
    for together, share in zip(axes, (scale / size**2, 1.0), strict=True):
        x = _sum_of_shifts(x, size // 2, together, share, circular=circular)
    return x


def _sum_of_shifts(x: Tensor, reach: int, axes: tuple[int, ...], share: float, *, circular: bool) -> Tensor:
    """Σ_{|a| ≤ reach} x moved by a along all the axes together, times a share; never x itself."""
    if torch.compiler.is_compiling() and not circular:
        return share * _sum_of_views(x, reach, axes)
    total = x * share if share != 1 else x.clone()
    for shift in range(1, reach + 1):
        if circular:
            for way in (shift, -shift):
                total.add_(x.roll([way] * len(axes), axes), alpha=share)
        else:
            near, far = _along(axes, x.ndim, slice(None, -shift)), _along(axes, x.ndim, slice(shift, None))
            total[far].add_(x[near], alpha=share)
            total[near].add_(x[far], alpha=share)
    return total


def _sum_of_views(x: Tensor, reach: int, axes: tuple[int, ...]) -> Tensor:
    """The same sum without writing to parts of anything: a compiler makes one pass of it and of what follows."""
    wider = functional.pad(x, [reach if axis in axes else 0 for axis in range(-1, -x.ndim - 1, -1) for _ in "<>"])
    total = torch.zeros_like(x)
    for shift in range(2 * reach + 1):
        view = wider
        for axis in axes:
            view = view.narrow(axis, shift, x.shape[axis])
        total = total + view
    return total


def _along(axes: tuple[int, ...], dimensions: int, part: slice) -> tuple[slice, ...]:
    """An index that takes `part` of the given axes and all of the others."""
    return tuple(part if axis - dimensions in axes else slice(None) for axis in range(dimensions))
