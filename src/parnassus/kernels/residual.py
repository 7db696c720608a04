"""Sums of branches, whose kernels add: skip connections at infinite width (Yang 2019)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.kernels.layer import Shape
from parnassus.kernels.network import Network
from parnassus.kernels.pair import Pair


@dataclass(frozen=True)
class Residual:
    """g ↦ g + body(g): Σ ← Σ + Σ_body and Θ ← Θ + Θ_body.

    The body must end in a layer with weights of its own: they have mean zero and make its values uncorrelated with g.
    """

    body: Network
    has_weights: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _require_weights(self.body)

    @property
    def mixes_places(self) -> bool:
        return self.body.mixes_places

    @property
    def needs_variances(self) -> bool:
        return self.body.needs_variances

    def learned(self) -> Iterator[nn.Module]:
        return self.body.learned()

    def kernel(self, pair: Pair) -> Pair:
        return _sum(pair, self.body.kernel(pair))

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        body, given = self.body.built(shape, width, shape[0])
        if given != shape:
            raise ValueError(f"a residual body must keep the shape of its input; got {shape} and gave {given}")
        return Branches(nn.Identity(), body), shape


@dataclass(frozen=True)
class Parallel:
    """g ↦ Σ_b branch_b(g): kernels add, where every branch ends in weights of its own."""

    branches: tuple[Network, ...]
    has_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.branches:
            raise ValueError("parallel branches need at least one")
        for branch in self.branches:
            _require_weights(branch)

    @property
    def mixes_places(self) -> bool:
        return any(branch.mixes_places for branch in self.branches)

    @property
    def needs_variances(self) -> bool:
        return any(branch.needs_variances for branch in self.branches)

    def learned(self) -> Iterator[nn.Module]:
        return chain.from_iterable(branch.learned() for branch in self.branches)

    def kernel(self, pair: Pair) -> Pair:
        return reduce(_sum, (branch.kernel(pair) for branch in self.branches))

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        built = [branch.built(shape, width, width) for branch in self.branches]
        shapes = {given for _, given in built}
        if len(shapes) > 1:
            raise ValueError(f"parallel branches must give the same shape; they give {sorted(shapes)}")
        return Branches(*(branch for branch, _ in built)), shapes.pop()


class Branches(nn.Module):
    """The sum of what several modules make of the same input."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *given"]:
        return torch.stack([branch(x) for branch in self.branches]).sum(0)


def _sum(one: Pair, other: Pair) -> Pair:
    if one.nngp.shape != other.nngp.shape:
        raise ValueError(
            f"branches must keep the same places; got {tuple(one.nngp.shape[2:])} and {tuple(other.nngp.shape[2:])}"
        )
    ntk = None if one.ntk is None or other.ntk is None else one.ntk + other.ntk
    return Pair(one.nngp + other.nngp, ntk, one.left + other.left, one.right + other.right, one.features)


def _require_weights(branch: Network) -> None:
    last = branch.layers[-1]
    if not last.has_weights:
        raise ValueError(f"a branch must end in a layer with weights of its own, or kernels do not add; got {last}")
