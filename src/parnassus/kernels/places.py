"""Gradients that are kept as factors: a weight matrix at work at one or many places (Novak et al. 2022).

Where W turns g_p into f_p = s W g_p at places p (one in a dense layer, every patch in a convolution, every token in a
sequence), the gradient of an output is s Σ_p b_p g_pᵀ with b_p = ∂out/∂f_p, and two gradients have the inner product
s² Σ_{p,q} ⟨b_p, b'_q⟩ ⟨g_p, g'_q⟩ (book eq. 15.85, where there is one place).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from parnassus.kernels.convolution import ScaledConvolution
from parnassus.kernels.layer import ScaledLinear

SCALED = (ScaledLinear, ScaledConvolution)
IMAGES = (nn.Conv2d, ScaledConvolution)


@dataclass(frozen=True)
class Places:
    """The gradients of k outputs at n inputs by a weight matrix, as Σ_p b_p g_pᵀ."""

    inputs: Float[Tensor, "n p in"]
    cotangents: Float[Tensor, "n k p out"]

    @classmethod
    def of_gradients(cls, gradients: Float[Tensor, "n k numbers"]) -> "Places":
        """Any gradients, as one place whose input is the number 1."""
        return cls(gradients.new_ones(len(gradients), 1, 1), gradients[:, :, None])

    def gradients(self) -> Float[Tensor, "n k numbers"]:
        """Σ_p b_p g_pᵀ written out, a row of numbers an output."""
        return (self.cotangents.mT @ self.inputs[:, None]).flatten(2)

    def folded(self) -> "Places":
        """All outputs as one, whose inner products are the sum over them of their own."""
        return Places(self.inputs, self.cotangents.mT.flatten(1, 2).mT[:, None])

    def cheapest(self) -> "Places":
        """Itself, or its gradients written out where pairs of places would cost more products than pairs of weights."""
        (_, places, into), outputs, out = self.inputs.shape, *self.cotangents.shape[1::2]
        apart = places**2 * (outputs**2 * out + into)
        return self if apart <= outputs**2 * out * into else Places.of_gradients(self.gradients())

    def dot(self, other: "Places") -> Float[Tensor, "n m k l"]:
        """Inner products of the gradients on both sides: Σ_{p,q} ⟨b_p, b'_q⟩ ⟨g_p, g'_q⟩."""
        n, k, p, out = self.cotangents.shape
        m, others, q, _ = other.cotangents.shape
        backward = self.cotangents.reshape(-1, out) @ other.cotangents.reshape(-1, out).mT
        forward = self.inputs.flatten(0, 1) @ other.inputs.flatten(0, 1).mT
        pairs = backward.view(n, k, p, m, others, q) * forward.view(n, 1, p, m, 1, q)
        return pairs.sum((2, 5)).movedim(1, 2)


@dataclass
class Record:
    """What a linear module met while the network ran: its inputs, and its outputs on the graph, a pair a call."""

    module: nn.Module
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)

    def parts(self, cotangents: Sequence[Float[Tensor, "k n *event"]]) -> dict[str, Places]:
        """The gradients of `weight` and `bias` from ∂out_k by the outputs of each call."""
        layer = self.module
        scale, shift = (layer.scale, layer.shift) if isinstance(layer, SCALED) else (1.0, 1.0)
        seen = [_seen(layer, x) for x in self.inputs]
        spread = [_spread(layer, part) for part in cotangents]
        g, b = (seen[0], spread[0]) if len(seen) == 1 else (torch.cat(seen, 1), torch.cat(spread, 2))
        found = {"weight": Places(g if scale == 1 else scale * g, b)}
        if layer.bias is not None:
            found["bias"] = Places.of_gradients(shift * b.sum(2))
        return found


def is_linear(module: nn.Module) -> bool:
    """Whether a module is known to be W g + β at its places, and nothing else."""
    if isinstance(module, nn.Conv2d):
        return module.groups == 1 and module.padding_mode == "zeros"
    return type(module) in (nn.Linear, *SCALED)


@contextmanager
def recorded(modules: Sequence[nn.Module]) -> Iterator[list[Record]]:
    """Within it, every call of these modules is written down."""
    records = [Record(module) for module in modules]
    handles = [record.module.register_forward_hook(_hook(record)) for record in records]
    try:
        yield records
    finally:
        for handle in handles:
            handle.remove()


def _hook(record: Record) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
    def write(_module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        record.inputs.append(inputs[0].detach())
        record.outputs.append(output)
        return output.clone()  # so that what comes next may overwrite it

    return write


def _seen(layer: nn.Module, x: Tensor) -> Float[Tensor, "n p in"]:
    """What the matrix is multiplied with at each place: rows, or patches of an image."""
    if isinstance(layer, nn.Conv2d):
        padding = layer._reversed_padding_repeated_twice  # of all sides, also where `padding` is a word
        return functional.unfold(functional.pad(x, padding), layer.kernel_size, layer.dilation, 0, layer.stride).mT
    if isinstance(layer, ScaledConvolution):
        padded = functional.pad(x, (layer.reach,) * 4, layer.padding)
        return functional.unfold(padded, layer.weight.shape[2:]).mT
    return x.reshape(len(x), -1, x.shape[-1])


def _spread(layer: nn.Module, cotangents: Tensor) -> Float[Tensor, "n k p out"]:
    """A view with the axes of `Places`."""
    if isinstance(layer, IMAGES):
        return cotangents.flatten(3).permute(1, 0, 3, 2)
    return cotangents.reshape(*cotangents.shape[:2], -1, cotangents.shape[-1]).transpose(0, 1)
