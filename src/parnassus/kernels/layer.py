"""The parts networks are described by: each knows its finite module and what it does to kernels (book sec. 15.3)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.kernels.nonlinearity import Nonlinearity
from parnassus.kernels.pair import Pair, variances_of_places

Shape: TypeAlias = tuple[int, ...]
"""Of one example: (features,), or (channels, height, width)."""


@runtime_checkable
class Layer(Protocol):
    """One description, two meanings: a module of finite width, and a map of kernels."""

    @property
    def mixes_places(self) -> bool:
        """Whether a unit hears other places of an image than a convolution's: then all pairs of places are needed."""
        ...

    @property
    def needs_variances(self) -> bool:
        """Whether the kernels after it depend on Σ(x, x) and Σ(x', x') too, and not on those between x and x' alone."""
        ...

    @property
    def has_weights(self) -> bool:
        """Whether what it gives is a sum with fresh random weights: `width` units, independent of what came before."""
        ...

    def kernel(self, pair: Pair) -> Pair:
        """The kernels after this layer at infinite width, from those before it."""
        ...

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        """The layer with `width` units (or channels), for inputs of this shape, and the shape of what it gives."""
        ...


@runtime_checkable
class Holder(Protocol):
    """A layer made of others, some of which may have parameters."""

    def learned(self) -> Iterator[nn.Module]: ...


@dataclass(frozen=True)
class Dense:
    """f = √(weight / d) W g + √bias β, with all of W and β from N(0, 1) and d inputs (book eqs. 15.26-15.30).

    So Σ ← weight Σ + bias, and Θ ← Σ + weight Θ: what W and β add themselves, and what comes from below. The book's
    first layer does not divide by √d: that is `divide=False`.
    """

    weight: float = 1.0
    bias: float = 0.0
    divide: bool = True
    mixes_places: ClassVar[bool] = False
    needs_variances: ClassVar[bool] = False
    has_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.weight > 0 or not self.bias >= 0:
            raise ValueError(f"variances need weight > 0 and bias ≥ 0; got weight={self.weight}, bias={self.bias}")

    def kernel(self, pair: Pair) -> Pair:
        weight = self.weight * counted_inputs(pair, divide=self.divide)
        nngp = torch.add(pair.nngp.new_tensor(self.bias), pair.nngp, alpha=weight)  # in one pass
        ntk = None if pair.ntk is None else torch.add(nngp, pair.ntk, alpha=weight)
        return Pair(nngp, ntk, weight * pair.left + self.bias, weight * pair.right + self.bias)

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        if len(shape) != 1:
            raise ValueError(f"a dense layer takes vectors; got shape={shape}: flatten or pool first")
        scale = sqrt(self.weight / shape[0]) if self.divide else sqrt(self.weight)
        return ScaledLinear(shape[0], width, scale, sqrt(self.bias)), (width,)


def counted_inputs(pair: Pair, *, divide: bool) -> int:
    """What a sum over the inputs of a dense layer is, in means over them: 1 where it is divided, else their number."""
    if pair.places:
        raise ValueError("a dense layer takes vectors; got images: flatten or pool first")
    if divide:
        return 1
    if pair.features is None:
        raise ValueError("only the first layer may leave its inputs undivided: after it there are infinitely many")
    return pair.features


@dataclass(frozen=True)
class Activation:
    """σ at every unit: Σ ← E σ(u)σ(v) and Θ ← Θ · E σ'(u)σ'(v), with (u, v) ~ N(0, Λ) of Σ (book eqs. 15.33-15.44)."""

    nonlinearity: Nonlinearity
    mixes_places: ClassVar[bool] = False
    needs_variances: ClassVar[bool] = True
    has_weights: ClassVar[bool] = False

    def kernel(self, pair: Pair) -> Pair:
        value, slope = self.nonlinearity.expect(pair.nngp, *pair.spreads())
        multiply = torch.mul if slope.requires_grad else Tensor.mul_  # autograd may have kept the slopes
        ntk = None if pair.ntk is None else multiply(slope, pair.ntk)
        return replace(
            pair, nngp=value, ntk=ntk, left=self.square(pair.left), right=self.square(pair.right), features=None
        )

    def square(self, side: Float[Tensor, "rows *places"]) -> Float[Tensor, "rows *places"]:
        """The variances after σ; where places are compared with each other, their covariances."""
        if side.ndim != 5:
            return self.nonlinearity.square(side)
        own = variances_of_places(side)
        return self.nonlinearity.expect(side, own[:, :, :, None, None], own[:, None, None]).value

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:  # noqa: ARG002 - as every layer has it
        return Apply(self.nonlinearity), shape


class ScaledLinear(nn.Module):
    """scale · W x + shift · β, with W and β from N(0, 1): the scale is in the forward pass (book eq. 15.26)."""

    def __init__(self, inputs: int, outputs: int, scale: float, shift: float) -> None:
        super().__init__()
        self.scale, self.shift = scale, shift
        self.weight = nn.Parameter(torch.randn(outputs, inputs))
        self.bias = nn.Parameter(torch.randn(outputs)) if shift else None

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        scaled = self.scale * (x @ self.weight.mT)
        return scaled if self.bias is None else torch.add(scaled, self.bias, alpha=self.shift)


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function: Nonlinearity) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return self.function(x)
