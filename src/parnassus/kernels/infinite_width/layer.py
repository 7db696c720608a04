"""Layers of a network description: each defines its finite module and its map of kernels (book sec. 15.3)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.kernels.infinite_width.kernel_state import KernelState, position_variances
from parnassus.kernels.infinite_width.nonlinearity import Nonlinearity

Shape: TypeAlias = tuple[int, ...]
"""Shape of one example: (features,) or (channels, height, width)."""


@runtime_checkable
class Layer(Protocol):
    """A layer at finite width (`module`) and at infinite width (`kernel`)."""

    @property
    def mixes_positions(self) -> bool:
        """Whether outputs depend on covariances of different positions, as in pooling and attention."""
        ...

    @property
    def needs_variances(self) -> bool:
        """Whether the kernels after it depend on Σ(x, x) and Σ(x', x') in addition to those between x and x'."""
        ...

    @property
    def has_weights(self) -> bool:
        """Whether its outputs are sums with fresh random weights: `width` units, independent of earlier layers."""
        ...

    def kernel(self, state: KernelState) -> KernelState:
        """Map the kernels before this layer to those after it, at infinite width."""
        ...

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        """The layer with `width` units (or channels) for inputs of this shape, and its output shape."""
        ...


@runtime_checkable
class CompositeLayer(Protocol):
    """A layer made of other layers, some of which may have parameters."""

    def trainable_layers(self) -> Iterator[nn.Module]: ...


@dataclass(frozen=True)
class Dense:
    """f = √(v / d) W g + √b β, with all of W and β from N(0, 1) and d inputs (book eqs. 15.26-15.30).

    Σ ← v Σ + b and Θ ← Σ + v Θ, with v = `weight_variance` and b = `bias_variance`: the contribution of W and β, plus
    that of the layers below. The book's first layer does not divide by √d: `divide=False`.

    >>> Network((Dense(2.0),)).kernels(torch.ones(1, 3)).nngp.item()
    2.0
    """

    weight_variance: float = 1.0
    bias_variance: float = 0.0
    divide: bool = True
    mixes_positions: ClassVar[bool] = False
    needs_variances: ClassVar[bool] = False
    has_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.weight_variance > 0 or not self.bias_variance >= 0:
            raise ValueError(
                "need weight_variance > 0 and bias_variance ≥ 0; "
                f"got weight_variance={self.weight_variance}, bias_variance={self.bias_variance}"
            )

    def kernel(self, state: KernelState) -> KernelState:
        weight = self.weight_variance * fan_in_factor(state, divide=self.divide)
        nngp = torch.add(
            state.nngp.new_tensor(self.bias_variance), state.nngp, alpha=weight
        )  # a single pass over memory
        ntk = None if state.ntk is None else torch.add(nngp, state.ntk, alpha=weight)
        return KernelState(
            nngp, ntk, weight * state.left + self.bias_variance, weight * state.right + self.bias_variance
        )

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        if len(shape) != 1:
            raise ValueError(f"a dense layer takes vectors; got shape={shape}: flatten or pool first")
        scale = sqrt(self.weight_variance / shape[0]) if self.divide else sqrt(self.weight_variance)
        return ScaledLinear(shape[0], width, scale, sqrt(self.bias_variance)), (width,)


def fan_in_factor(state: KernelState, *, divide: bool) -> int:
    """1 if the sum over the d inputs of a dense layer is divided by d, otherwise d."""
    if state.position_axes:
        raise ValueError("a dense layer takes vectors; got images: flatten or pool first")
    if divide:
        return 1
    if state.features is None:
        raise ValueError("divide=False is allowed in the first layer only: later layers have infinitely many inputs")
    return state.features


@dataclass(frozen=True)
class Activation:
    """σ at every unit: Σ ← E σ(u)σ(v) and Θ ← Θ · E σ'(u)σ'(v), with (u, v) ~ N(0, Λ) of Σ (book eqs. 15.33-15.44).

    >>> Network((Dense(), Activation(ReLU()), Dense())).kernels(torch.eye(2)).nngp.diagonal()
    tensor([0.2500, 0.2500])
    """

    nonlinearity: Nonlinearity
    mixes_positions: ClassVar[bool] = False
    needs_variances: ClassVar[bool] = True
    has_weights: ClassVar[bool] = False

    def kernel(self, state: KernelState) -> KernelState:
        value, derivative = self.nonlinearity.expect(state.nngp, *state.broadcast_variances())
        multiply = torch.mul if derivative.requires_grad else Tensor.mul_  # autograd may have saved the derivative
        ntk = None if state.ntk is None else multiply(derivative, state.ntk)
        return replace(
            state,
            nngp=value,
            ntk=ntk,
            left=self.second_moment(state.left),
            right=self.second_moment(state.right),
            features=None,
        )

    def second_moment(self, side: Float[Tensor, "rows *positions"]) -> Float[Tensor, "rows *positions"]:
        """The variances after σ, or the covariances of all positions within each image."""
        if side.ndim != 5:
            return self.nonlinearity.second_moment(side)
        variances = position_variances(side)
        return self.nonlinearity.expect(side, variances[:, :, :, None, None], variances[:, None, None]).value

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:  # noqa: ARG002 - part of the Layer interface
        return FunctionModule(self.nonlinearity), shape


class ScaledLinear(nn.Module):
    """scale · W x + shift · β with W and β from N(0, 1), scaled in the forward pass (book eq. 15.26).

    >>> ScaledLinear(3, 4, scale=1.0, shift=0.0)(torch.zeros(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(self, inputs: int, outputs: int, scale: float, shift: float) -> None:
        super().__init__()
        self.scale, self.shift = scale, shift
        self.weight = nn.Parameter(torch.randn(outputs, inputs))
        self.bias = nn.Parameter(torch.randn(outputs)) if shift else None

    def forward(self, x: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        scaled = self.scale * (x @ self.weight.mT)
        return scaled if self.bias is None else torch.add(scaled, self.bias, alpha=self.shift)


class FunctionModule(nn.Module):
    """A function as a module."""

    def __init__(self, function: Nonlinearity) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return self.function(x)
