"""The limiting tangent kernel of the book's network as a sum over its layers (book sec. 15.4)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_non_negative
from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.nonlinearity import Nonlinearity, normaliser


@dataclass(frozen=True)
class LayerKernels:
    """Covariances Σ⁰ … Σ^L of forward signals and Σ̇¹ … Σ̇^L of derivatives, between n and m inputs.

    >>> layers = layer_kernels(2, ReLU(), torch.eye(3))
    >>> layers.values.shape
    torch.Size([3, 3, 3])
    """

    values: Float[Tensor, "after n m"]
    derivatives: Float[Tensor, "depth n m"]

    def backward(self) -> Float[Tensor, "after n m"]:
        """The limits Π_{k=h}^L Σ̇^k of ⟨b^h(x), b^h(x')⟩ for h = 1 … L + 1; the last is 1 (book eq. 15.94).

        The book prints the product of Σ̇^h repeated, instead of over the layers above.
        """
        last = torch.ones_like(self.values[:1])
        return torch.cat([last, self.derivatives.flip(0)]).cumprod(0).flip(0)

    def ntk(self) -> Float[Tensor, "n m"]:
        """K* = Σ^L + Σ_{h=1}^L Σ^{h−1} Π_{k=h}^L Σ̇^k (book eq. 15.98)."""
        return (self.values * self.backward()).sum(0)

    def ntk_by_recursion(self) -> Float[Tensor, "n m"]:
        """K* by recursion: Θ⁰ = Σ⁰, Θ^l = Σ^l + Θ^{l−1} Σ̇^l."""
        theta = self.values[0]
        for value, derivative in zip(self.values[1:], self.derivatives, strict=True):
            theta = value + theta * derivative
        return theta


def layer_kernels(
    depth: int,
    nonlinearity: Nonlinearity,
    x: Float[Tensor, "n features"],
    y: Float[Tensor, "m features"] | None = None,
) -> LayerKernels:
    """Kernels of every layer for L = `depth`; `Network.kernels` returns only the last.

    Σ⁰ = xᵀx',   Σ^h = c_σ E σ(u)σ(v),   Σ̇^h = c_σ E σ′(u)σ′(v),   (u, v) ~ N(0, Λ^h)     (book eqs. 15.33-15.44, 15.93)
    """
    check_non_negative(depth=depth)
    y = x if y is None else y
    gain = normaliser(nonlinearity)
    inputs = KernelState.from_inputs(x, y, tangent=False)
    values, left, right = [x.shape[1] * inputs.nngp], x.shape[1] * inputs.left, x.shape[1] * inputs.right
    derivatives = []
    for _ in range(depth):
        value, derivative = nonlinearity.expect(values[-1], left[:, None], right[None])
        values.append(gain * value)
        derivatives.append(gain * derivative)
        left, right = gain * nonlinearity.second_moment(left), gain * nonlinearity.second_moment(right)
    empty = values[0].new_empty(0, *values[0].shape)
    return LayerKernels(torch.stack(values), torch.stack(derivatives) if derivatives else empty)
