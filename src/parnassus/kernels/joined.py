"""Layers whose passes over memory torch.compile joins: passes are what a large kernel on an accelerator waits for."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from parnassus.kernels.layer import Shape
from parnassus.kernels.network import Network
from parnassus.kernels.pair import Pair

Parts: TypeAlias = tuple[Tensor, Tensor | None, Tensor, Tensor, int | None]


@dataclass(frozen=True)
class Joined:
    """The body itself, compiled when it first meets kernels of some shape: the same values, in fewer passes.

    A convolution and its rectifier take about fifty passes over their kernels one by one. Put the same `Joined` into a
    network as often as it is repeated, so that it is compiled once.
    """

    body: Network
    backend: str = "inductor"
    has_weights: ClassVar[bool] = False

    @property
    def mixes_places(self) -> bool:
        return self.body.mixes_places

    @property
    def needs_variances(self) -> bool:
        return self.body.needs_variances

    def kernel(self, pair: Pair) -> Pair:
        return Pair(*self._compiled(pair.nngp, pair.ntk, pair.left, pair.right, pair.features))

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        return self.body.built(shape, width, width)

    @cached_property
    def _compiled(self) -> Callable[[Tensor, Tensor | None, Tensor, Tensor, int | None], Parts]:
        def run(nngp: Tensor, ntk: Tensor | None, left: Tensor, right: Tensor, features: int | None) -> Parts:
            after = self.body.kernel(Pair(nngp, ntk, left, right, features))
            return after.nngp, after.ntk, after.left, after.right, after.features

        return torch.compile(run, backend=self.backend)
