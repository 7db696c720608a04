"""Residual and parallel branches at infinite width: kernels add (Yang 2019)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.layer import Shape
from parnassus.kernels.infinite_width.network import Network


@dataclass(frozen=True)
class Residual:
    """g ↦ g + body(g): Σ ← Σ + Σ_body and Θ ← Θ + Θ_body.

    The body must end in a layer with weights: they have mean zero and make its outputs uncorrelated with g.

    >>> body = Network((Activation(ReLU()), Dense()))
    >>> Network((Dense(), Residual(body), Dense())).kernels(torch.eye(2)).nngp.shape
    torch.Size([2, 2])
    """

    body: Network
    has_weights: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_weights(self.body)

    @property
    def mixes_positions(self) -> bool:
        return self.body.mixes_positions

    @property
    def needs_variances(self) -> bool:
        return self.body.needs_variances

    def trainable_layers(self) -> Iterator[nn.Module]:
        return self.body.trainable_layers()

    def kernel(self, state: KernelState) -> KernelState:
        return _add(state, self.body.kernel(state))

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        body, output_shape = self.body.build(shape, width, shape[0])
        if output_shape != shape:
            raise ValueError(f"a residual body must keep the shape of its input; got {shape} to {output_shape}")
        return Branches(nn.Identity(), body), shape


@dataclass(frozen=True)
class Parallel:
    """g ↦ Σ_b branch_b(g): kernels add if every branch ends in a layer with weights.

    >>> branches = (Network((Dense(),)), Network((Dense(2.0),)))
    >>> Network((Parallel(branches),)).kernels(torch.ones(1, 3)).nngp.item()
    3.0
    """

    branches: tuple[Network, ...]
    has_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.branches:
            raise ValueError("branches must not be empty")
        for branch in self.branches:
            _check_weights(branch)

    @property
    def mixes_positions(self) -> bool:
        return any(branch.mixes_positions for branch in self.branches)

    @property
    def needs_variances(self) -> bool:
        return any(branch.needs_variances for branch in self.branches)

    def trainable_layers(self) -> Iterator[nn.Module]:
        return chain.from_iterable(branch.trainable_layers() for branch in self.branches)

    def kernel(self, state: KernelState) -> KernelState:
        return reduce(_add, (branch.kernel(state) for branch in self.branches))

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        built = [branch.build(shape, width, width) for branch in self.branches]
        shapes = {output_shape for _, output_shape in built}
        if len(shapes) > 1:
            raise ValueError(f"parallel branches must have the same output shape; got {sorted(shapes)}")
        return Branches(*(branch for branch, _ in built)), shapes.pop()


class Branches(nn.Module):
    """The sum of several modules applied to the same input.

    >>> Branches(nn.Identity(), nn.Identity())(torch.ones(1, 2)).tolist()
    [[2.0, 2.0]]
    """

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *output"]:
        return torch.stack([branch(x) for branch in self.branches]).sum(0)


def _add(first: KernelState, second: KernelState) -> KernelState:
    if first.nngp.shape != second.nngp.shape:
        raise ValueError(
            f"branches must keep the same positions; got {tuple(first.nngp.shape[2:])}, {tuple(second.nngp.shape[2:])}"
        )
    ntk = None if first.ntk is None or second.ntk is None else first.ntk + second.ntk
    left, right = first.left + second.left, first.right + second.right
    return KernelState(first.nngp + second.nngp, ntk, left, right, first.features)


def _check_weights(branch: Network) -> None:
    last = branch.layers[-1]
    if not last.has_weights:
        raise ValueError(f"a branch must end in a layer with weights, otherwise kernels do not add; got {last}")
