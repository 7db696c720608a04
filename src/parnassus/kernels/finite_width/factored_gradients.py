"""Gradients of weight matrices kept as factors, for matrices applied at several positions (Novak et al. 2022).

If W maps g_p to f_p = s W g_p at positions p (one in a dense layer, every patch in a convolution, every token in a
sequence), the gradient of an output is s Σ_p b_p g_pᵀ with b_p = ∂out/∂f_p, and two gradients have the inner product
s² Σ_{p,q} ⟨b_p, b'_q⟩ ⟨g_p, g'_q⟩ (book eq. 15.85, for one position).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from parnassus.kernels.infinite_width.convolution import ScaledConvolution
from parnassus.kernels.infinite_width.layer import ScaledLinear

SCALED = (ScaledLinear, ScaledConvolution)
IMAGES = (nn.Conv2d, ScaledConvolution)
PAIRS = 2**17
"""Pairs of positions whose products are in memory together."""


@dataclass(frozen=True)
class FactoredGradients:
    """The gradients of k outputs at n inputs with respect to a weight matrix, as Σ_p b_p g_pᵀ.

    >>> gradients = FactoredGradients(torch.ones(5, 1, 3), (torch.ones(5, 1, 2),))
    >>> gradients.gradients(0).shape
    torch.Size([5, 3, 2])
    """

    inputs: Float[Tensor, "n p in"]
    cotangents: tuple[Float[Tensor, "n p out"], ...]

    @classmethod
    def from_gradients(cls, gradients: Sequence[Float[Tensor, "n parameters"]]) -> "FactoredGradients":
        """Wrap formed gradients, one tensor per output, as one position with input 1."""
        return cls(gradients[0].new_ones(len(gradients[0]), 1, 1), tuple(part[:, None] for part in gradients))

    def gradients(self, output: int) -> Float[Tensor, "n in out"]:
        """The formed gradient Σ_p g_p b_pᵀ of one output, transposed because that product is faster for images."""
        return self.inputs.mT @ self.cotangents[output]

    def dot(self, other: "FactoredGradients") -> Float[Tensor, "n m k l"]:
        """Inner products of the gradients on both sides, for every pair of outputs."""
        k, others = len(self.cotangents), len(other.cotangents)
        if self._is_cheaper_factored(other, products=k * others):
            left = self.inputs, torch.stack(self.cotangents, 1)
            return _contract_positions(
                left, left if other is self else (other.inputs, torch.stack(other.cotangents, 1))
            )
        left_gradients = [self.gradients(i).flatten(1) for i in range(k)]
        right_gradients = left_gradients if other is self else [other.gradients(j).flatten(1) for j in range(others)]
        return torch.stack([torch.stack([a @ b.mT for b in right_gradients], 2) for a in left_gradients], 2)

    def trace(self, other: "FactoredGradients") -> Float[Tensor, "n m"]:
        """Inner products of the gradients of the same output on both sides, summed over the outputs."""
        k = len(self.cotangents)
        if self._is_cheaper_factored(other, products=k):
            left = self.inputs, torch.cat(self.cotangents, 2)[:, None]
            right = left if other is self else (other.inputs, torch.cat(other.cotangents, 2)[:, None])
            return _contract_positions(left, right)[:, :, 0, 0]
        total = self.inputs.new_zeros(len(self.inputs), len(other.inputs))
        for output in range(k):
            gradient = self.gradients(output).flatten(1)
            total.addmm_(gradient, (gradient if other is self else other.gradients(output).flatten(1)).mT)
        return total

    def _is_cheaper_factored(self, other: "FactoredGradients", *, products: int) -> bool:
        """Whether contracting pairs of positions is cheaper than forming gradients, for `products` pairs of outputs.

        Counts multiplications; those that form gradients use small matrices and count twice.
        """
        (n, p, into), out = self.inputs.shape, self.cotangents[0].shape[2]
        m, q, _ = other.inputs.shape
        formed = n * p * len(self.cotangents) + (0 if other is self else m * q * len(other.cotangents))
        return n * m * p * q * (products * out + into) <= (n * m * products + 2 * formed) * out * into


def _contract_positions(left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> Float[Tensor, "n m k l"]:
    """Σ_{p,q} ⟨b_p, b'_q⟩ ⟨g_p, g'_q⟩ from the inputs (n, p, in) and cotangents (n, k, p, out) of both sides.

    Computed in strips of inputs sized for the cache, and only on and above the diagonal if both sides are the same.
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
        block = pairs.sum((2, 5)).movedim(1, 2)
        kernel[strip, rest] = block
        if left is right:
            kernel[rest, strip] = block.movedim(0, 1).mT
    return kernel


@dataclass
class LayerRecord:
    """Inputs and outputs (on the autograd graph) of a linear module, one pair per call."""

    module: nn.Module
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)

    def gradients(self, cotangents: Sequence[Sequence[Float[Tensor, "n *event"]]]) -> dict[str, FactoredGradients]:
        """The gradients of `weight` and `bias` from ∂out_k by the outputs of each call, for each k."""
        layer = self.module
        scale, shift = (layer.scale, layer.shift) if isinstance(layer, SCALED) else (1.0, 1.0)
        g = _concatenate_calls([_input_positions(layer, x) for x in self.inputs])
        b = tuple(_concatenate_calls([_output_positions(layer, part) for part in calls]) for calls in cotangents)
        gradients = {"weight": FactoredGradients(g if scale == 1 else scale * g, b)}
        if layer.bias is not None:
            gradients["bias"] = FactoredGradients.from_gradients([shift * part.sum(1) for part in b])
        return gradients


def is_supported_layer(module: nn.Module) -> bool:
    """Whether a module computes W g + β at each position and nothing else."""
    if isinstance(module, nn.Conv2d):
        return module.groups == 1 and module.padding_mode == "zeros"
    return type(module) in (nn.Linear, *SCALED)


@contextmanager
def record_layers(modules: Sequence[nn.Module]) -> Iterator[list[LayerRecord]]:
    """Record every call of these modules inside the context."""
    records = [LayerRecord(module) for module in modules]
    handles = [record.module.register_forward_hook(_recording_hook(record)) for record in records]
    try:
        yield records
    finally:
        for handle in handles:
            handle.remove()


def _recording_hook(record: LayerRecord) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
    def record_call(_module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        record.inputs.append(inputs[0].detach())
        record.outputs.append(output)
        return output.clone()  # the next module may overwrite it in place

    return record_call


def _input_positions(layer: nn.Module, x: Tensor) -> Float[Tensor, "n p in"]:
    """The inputs of the matrix at each position: rows, or patches of an image."""
    if isinstance(layer, nn.Conv2d):
        padded = functional.pad(x, _conv_padding(layer))
        return functional.unfold(padded, layer.kernel_size, layer.dilation, 0, layer.stride).mT
    if isinstance(layer, ScaledConvolution):
        padded = functional.pad(x, (layer.reach,) * 4, layer.padding)
        return functional.unfold(padded, layer.weight.shape[2:]).mT
    return x.reshape(len(x), -1, x.shape[-1])


def _conv_padding(layer: nn.Conv2d) -> list[int]:
    """Padding (left, right, top, bottom), as `functional.pad` takes it."""
    if layer.padding == "same":
        totals = [d * (k - 1) for d, k in zip(layer.dilation, layer.kernel_size, strict=True)]
        return [side for total in reversed(totals) for side in (total // 2, total - total // 2)]
    if isinstance(layer.padding, str):  # "valid"
        return [0, 0, 0, 0]
    rows, columns = layer.padding
    return [columns, columns, rows, rows]


def _output_positions(layer: nn.Module, cotangents: Tensor) -> Float[Tensor, "n p out"]:
    """The cotangents as a view with the axes of `FactoredGradients`."""
    if isinstance(layer, IMAGES):
        return cotangents.flatten(2).mT
    return cotangents.reshape(len(cotangents), -1, cotangents.shape[-1])


def _concatenate_calls(calls: Sequence[Float[Tensor, "n _ width"]]) -> Float[Tensor, "n p width"]:
    """Concatenate the positions of all calls, without a copy for a single call."""
    return calls[0] if len(calls) == 1 else torch.cat(list(calls), 1)
