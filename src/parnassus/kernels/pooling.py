"""From images to fewer places, one place or vectors: means over places, and what they do to kernels."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from parnassus.kernels.layer import Shape
from parnassus.kernels.pair import Pair


@dataclass(frozen=True)
class AveragePooling:
    """The mean over squares of `size` × `size` places that do not overlap: f(q) = mean_{p in q} g(p).

    Σ ← mean_{p in q, p' in q'} Σ(p, p'), and so Θ: places are compared with their neighbours.
    """

    size: int = 2
    mixes_places: ClassVar[bool] = True
    needs_variances: ClassVar[bool] = False
    has_weights: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"a pooling size must be positive; got size={self.size}")

    def kernel(self, pair: Pair) -> Pair:
        require_every_place(pair, "average pooling")
        self._require(pair.nngp.shape[2:4])
        return pair.mixed(self._pooled)

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:  # noqa: ARG002 - as every layer has it
        require_image(shape, "average pooling")
        self._require(shape[1:])
        return nn.AvgPool2d(self.size), (shape[0], shape[1] // self.size, shape[2] // self.size)

    def _pooled(self, x: Float[Tensor, "*rows h w h w"]) -> Tensor:
        high, wide = x.shape[-4:-2]
        second = functional.avg_pool2d(x.reshape(-1, 1, high, wide), self.size)
        fewer = second.shape[-2:].numel()
        first = functional.avg_pool2d(second.view(-1, high, wide, fewer).movedim(3, 1), self.size)
        high, wide = first.shape[-2:]
        return first.movedim(1, 3).reshape(*x.shape[:-4], high, wide, high, wide)

    def _require(self, places: tuple[int, ...]) -> None:
        if any(side % self.size for side in places):
            raise ValueError(
                f"the pooling size must divide the sides of the image; got size={self.size}, sides {tuple(places)}"
            )


@dataclass(frozen=True)
class GlobalAveragePooling:
    """The mean over all places, which leaves a vector of channels: Σ ← mean_{p, p'} Σ(p, p'), and so Θ."""

    mixes_places: ClassVar[bool] = True
    needs_variances: ClassVar[bool] = False
    has_weights: ClassVar[bool] = False

    def kernel(self, pair: Pair) -> Pair:
        require_every_place(pair, "global pooling")
        return pair.mixed(lambda x: x.flatten(-4).mean(-1))

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:  # noqa: ARG002 - as every layer has it
        require_image(shape, "global pooling")
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), shape[:1]


@dataclass(frozen=True)
class Flatten:
    """All channels of all places as one vector: Σ ← mean_p Σ(p, p), and so Θ; other pairs of places are forgotten."""

    mixes_places: ClassVar[bool] = False
    needs_variances: ClassVar[bool] = False
    has_weights: ClassVar[bool] = False

    def kernel(self, pair: Pair) -> Pair:
        if not pair.places:
            return pair
        count = pair.nngp.shape[2:4].numel()

        def mean(x: Tensor) -> Tensor:
            if x.ndim < 5:  # only the same places
                return x.mean((-2, -1))
            square = x.reshape(*x.shape[:-4], count, count)
            return square.diagonal(dim1=-2, dim2=-1).mean(-1)

        flat = pair.mapped(mean)
        features = None if pair.features is None else pair.features * count
        return Pair(flat.nngp, flat.ntk, flat.left, flat.right, features)

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:  # noqa: ARG002 - as every layer has it
        return nn.Flatten(), (torch.Size(shape).numel(),)


def require_every_place(pair: Pair, name: str, *, within: bool = False) -> None:
    """Where places are compared with themselves only, nothing that mixes them can be worked out."""
    if pair.places != 4 or (within and pair.left.ndim != 5):
        got = ("vectors", "the same places only", "variances only within an image")[pair.places // 2]
        raise ValueError(f"{name} needs images of which every place is compared with every other; got {got}")


def require_image(shape: Shape, name: str) -> None:
    """One example must be (channels, height, width)."""
    if len(shape) != 3:
        raise ValueError(f"{name} takes images (channels, height, width); got shape={shape}")
