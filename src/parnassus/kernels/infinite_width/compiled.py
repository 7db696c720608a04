"""Layers fused by torch.compile: large kernels on an accelerator are bound by passes over memory."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.layer import Shape
from parnassus.kernels.infinite_width.network import Network

Parts: TypeAlias = tuple[Tensor, Tensor | None, Tensor, Tensor, int | None]


@dataclass(frozen=True)
class CompiledLayer:
    """The body, compiled at its first call for each shape: same values, fewer passes over memory.

    A convolution with its ReLU takes about fifty passes over its kernels uncompiled. Reuse one `Compiled` object for a
    repeated block, so that it is compiled once.

    >>> body = Network((Activation(ReLU()), Dense()))
    >>> CompiledLayer(body, backend="eager").needs_variances
    True
    """

    body: Network
    backend: str = "inductor"
    has_weights: ClassVar[bool] = False

    @property
    def mixes_positions(self) -> bool:
        return self.body.mixes_positions

    @property
    def needs_variances(self) -> bool:
        return self.body.needs_variances

    def kernel(self, state: KernelState) -> KernelState:
        return KernelState(*self._compiled(state.nngp, state.ntk, state.left, state.right, state.features))

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        return self.body.build(shape, width, width)

    @cached_property
    def _compiled(self) -> Callable[[Tensor, Tensor | None, Tensor, Tensor, int | None], Parts]:
        def run(nngp: Tensor, ntk: Tensor | None, left: Tensor, right: Tensor, features: int | None) -> Parts:
            after = self.body.kernel(KernelState(nngp, ntk, left, right, features))
            return after.nngp, after.ntk, after.left, after.right, after.features

        return torch.compile(run, backend=self.backend)
