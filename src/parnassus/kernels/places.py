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
PAIRS = 2**17
"""Pairs of places whose products are held together."""


@dataclass(frozen=True)
class Places:
    """The gradients of k outputs at n inputs by a weight matrix, as Σ_p b_p g_pᵀ; each output has its own b."""

    inputs: Float[Tensor, "n p in"]
    cotangents: tuple[Float[Tensor, "n p out"], ...]

    @classmethod
    def of_gradients(cls, gradients: Sequence[Float[Tensor, "n numbers"]]) -> "Places":
        """Any gradients, one tensor an output, as one place whose input is the number 1."""
        return cls(gradients[0].new_ones(len(gradients[0]), 1, 1), tuple(part[:, None] for part in gradients))

    def gradients(self, output: int) -> Float[Tensor, "n in out"]:
        """Σ_p g_p b_pᵀ of one output written out: turned over, which is how images are multiplied fastest."""
        return self.inputs.mT @ self.cotangents[output]

    def dot(self, other: "Places") -> Float[Tensor, "n m k l"]:
        """Inner products of the gradients on both sides, of every pair of outputs."""
        k, others = len(self.cotangents), len(other.cotangents)
        if self._better_apart(other, products=k * others):
            left = self.inputs, torch.stack(self.cotangents, 1)
            return _over_places(left, left if other is self else (other.inputs, torch.stack(other.cotangents, 1)))
        mine = [self.gradients(i).flatten(1) for i in range(k)]
        theirs = mine if other is self else [other.gradients(j).flatten(1) for j in range(others)]
        return torch.stack([torch.stack([a @ b.mT for b in theirs], 2) for a in mine], 2)

    def trace(self, other: "Places") -> Float[Tensor, "n m"]:
        """Inner products of the gradients of the same output on both sides, summed over the outputs."""
        k = len(self.cotangents)
        if self._better_apart(other, products=k):
            left = self.inputs, torch.cat(self.cotangents, 2)[:, None]
            right = left if other is self else (other.inputs, torch.cat(other.cotangents, 2)[:, None])
            return _over_places(left, right)[:, :, 0, 0]
        total = self.inputs.new_zeros(len(self.inputs), len(other.inputs))
        for output in range(k):
            mine = self.gradients(output).flatten(1)
            total.addmm_(mine, (mine if other is self else other.gradients(output).flatten(1)).mT)
        return total

    def _better_apart(self, other: "Places", *, products: int) -> bool:
        """Whether pairs of places cost less than gradients written out and multiplied, for so many pairs of outputs.

        Counted in products of numbers; those that write gradients out are in small matrices and take twice as long.
        """
        (n, p, into), out = self.inputs.shape, self.cotangents[0].shape[2]
        m, q, _ = other.inputs.shape
        written = n * p * len(self.cotangents) + (0 if other is self else m * q * len(other.cotangents))
        return n * m * p * q * (products * out + into) <= (n * m * products + 2 * written) * out * into


def _over_places(left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> Float[Tensor, "n m k l"]:
    """Σ_{p,q} ⟨b_p, b'_q⟩ ⟨g_p, g'_q⟩ from the inputs (n, p, in) and cotangents (n, k, p, out) of both sides.

    In strips of inputs whose pairs of places stay in a processor's cache; on and above the diagonal where both sides
    are the same.
    """
    (g, b), (h, c) = ([part.contiguous() for part in side] for side in (left, right))
    (n, k, p, _), (m, others, q, _) = b.shape, c.shape
    kernel = g.new_empty(n, m, k, others)
    rows = max(1, PAIRS // (k * p * m * others * q))
    for top in range(0, n, rows):
        strip, rest = slice(top, top + rows), slice(top if left is right else 0, m)
        backward = b[strip].flatten(0, 2) @ c[rest].flatten(0, 2).mT
        forward = g[strip].flatten(0, 1) @ h[rest].flatten(0, 1).mT
        pairs = backward.view(-1, k, p, len(c[rest]), others, q).mul_(forward.view(-1, 1, p, len(h[rest]), 1, q))
        found = pairs.sum((2, 5)).movedim(1, 2)
        kernel[strip, rest] = found
        if left is right:
            kernel[rest, strip] = found.movedim(0, 1).mT
    return kernel


@dataclass
class Record:
    """What a linear module met while the network ran: its inputs, and its outputs on the graph, a pair a call."""

    module: nn.Module
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)

    def parts(self, cotangents: Sequence[Sequence[Float[Tensor, "n *event"]]]) -> dict[str, Places]:
        """The gradients of `weight` and `bias` from ∂out_k by the outputs of each call, for each k."""
        layer = self.module
        scale, shift = (layer.scale, layer.shift) if isinstance(layer, SCALED) else (1.0, 1.0)
        g = _joined([_seen(layer, x) for x in self.inputs])
        b = tuple(_joined([_spread(layer, part) for part in calls]) for calls in cotangents)
        found = {"weight": Places(g if scale == 1 else scale * g, b)}
        if layer.bias is not None:
            found["bias"] = Places.of_gradients([shift * part.sum(1) for part in b])
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


def _spread(layer: nn.Module, cotangents: Tensor) -> Float[Tensor, "n p out"]:
    """A view with the axes of `Places`."""
    if isinstance(layer, IMAGES):
        return cotangents.flatten(2).mT
    return cotangents.reshape(len(cotangents), -1, cotangents.shape[-1])


def _joined(calls: Sequence[Float[Tensor, "n _ width"]]) -> Float[Tensor, "n p width"]:
    """The places of all calls; of one call as they are, without a copy."""
    return calls[0] if len(calls) == 1 else torch.cat(list(calls), 1)
