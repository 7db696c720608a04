"""Average pooling, global average pooling and flattening: means over positions and their maps of kernels."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from parnassus.errors import check_positive
from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.layer import Shape


@dataclass(frozen=True)
class AveragePooling:
    """The mean over disjoint squares of `size` × `size` positions: f(q) = mean_{p in q} g(p).

    Σ ← mean_{p in q, p' in q'} Σ(p, p'), and likewise Θ.

    >>> network = Network((Convolution(3), AveragePooling(2), Flatten(), Dense()))
    >>> network.kernels(torch.ones(2, 1, 4, 4)).nngp.shape
    torch.Size([2, 2])
    """

    size: int = 2
    mixes_positions: ClassVar[bool] = True
    needs_variances: ClassVar[bool] = False
    has_weights: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive(size=self.size)

    def kernel(self, state: KernelState) -> KernelState:
        check_all_positions(state, "average pooling")
        self._check_divisible(state.nngp.shape[2:4])
        return state.mix_positions(self._pool)

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:  # noqa: ARG002 - part of the Layer interface
        check_image(shape, "average pooling")
        self._check_divisible(shape[1:])
        return nn.AvgPool2d(self.size), (shape[0], shape[1] // self.size, shape[2] // self.size)

    def _pool(self, x: Float[Tensor, "*rows h w h w"]) -> Tensor:
        h, w = x.shape[-4:-2]
        second = functional.avg_pool2d(x.reshape(-1, 1, h, w), self.size)
        positions = second.shape[-2:].numel()
        first = functional.avg_pool2d(second.view(-1, h, w, positions).movedim(3, 1), self.size)
        h, w = first.shape[-2:]
        return first.movedim(1, 3).reshape(*x.shape[:-4], h, w, h, w)

    def _check_divisible(self, sides: tuple[int, ...]) -> None:
        if any(side % self.size for side in sides):
            raise ValueError(f"size must divide the sides of the image; got size={self.size}, sides {tuple(sides)}")


@dataclass(frozen=True)
class GlobalAveragePooling:
    """The mean over all positions: Σ ← mean_{p, p'} Σ(p, p'), and likewise Θ.

    >>> network = Network((Convolution(3), GlobalAveragePooling(), Dense()))
    >>> network.kernels(torch.ones(2, 1, 4, 4)).nngp.shape
    torch.Size([2, 2])
    """

    mixes_positions: ClassVar[bool] = True
    needs_variances: ClassVar[bool] = False
    has_weights: ClassVar[bool] = False

    def kernel(self, state: KernelState) -> KernelState:
        check_all_positions(state, "global pooling")
        return state.mix_positions(lambda x: x.flatten(-4).mean(-1))

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:  # noqa: ARG002 - part of the Layer interface
        check_image(shape, "global pooling")
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), shape[:1]


@dataclass(frozen=True)
class Flatten:
    """All channels and positions as one vector: Σ ← mean_p Σ(p, p), and likewise Θ.

    >>> Network((Convolution(3), Flatten(), Dense())).kernels(torch.ones(2, 1, 4, 4)).nngp.shape
    torch.Size([2, 2])
    """

    mixes_positions: ClassVar[bool] = False
    needs_variances: ClassVar[bool] = False
    has_weights: ClassVar[bool] = False

    def kernel(self, state: KernelState) -> KernelState:
        if not state.position_axes:
            return state
        count = state.nngp.shape[2:4].numel()

        def mean(x: Tensor) -> Tensor:
            if x.ndim < 5:  # equal positions only
                return x.mean((-2, -1))
            square = x.reshape(*x.shape[:-4], count, count)
            return square.diagonal(dim1=-2, dim2=-1).mean(-1)

        flat = state.map_positions(mean)
        features = None if state.features is None else state.features * count
        return KernelState(flat.nngp, flat.ntk, flat.left, flat.right, features)

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:  # noqa: ARG002 - part of the Layer interface
        return nn.Flatten(), (torch.Size(shape).numel(),)


def check_all_positions(state: KernelState, name: str, *, within_images: bool = False) -> None:
    """Raise unless the state holds covariances of all pairs of positions (also within each image)."""
    if state.position_axes != 4 or (within_images and state.left.ndim != 5):
        got = ("vectors", "equal positions only", "variances only within an image")[state.position_axes // 2]
        raise ValueError(f"{name} needs covariances of all pairs of positions of images; got {got}")


def check_image(shape: Shape, name: str) -> None:
    """Raise unless the shape is (channels, height, width)."""
    if len(shape) != 3:
        raise ValueError(f"{name} takes images (channels, height, width); got shape={shape}")
