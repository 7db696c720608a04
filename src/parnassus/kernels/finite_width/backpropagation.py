"""Backpropagation in fully connected networks: gradients as outer products, and the NTK (book sec. 15.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import vjp

from parnassus.kernels.infinite_width.layer import ScaledLinear
from parnassus.kernels.infinite_width.nonlinearity import Nonlinearity, normaliser


@dataclass(frozen=True)
class Signals:
    """Forward signals g⁰ … g^L and backward signals b¹ … b^{L+1} of a network with L hidden layers.

    Each is (*draws, n, units); `forward[h]` is g^h and `backward[h]` is b^{h+1}, the factors of ∂f/∂W^{h+1}.

    >>> ones = torch.ones(1, 2)
    >>> Signals(forward=(ones, ones), backward=(ones, ones)).forward[0].shape
    torch.Size([1, 2])
    """

    forward: tuple[Float[Tensor, "*draws n _"], ...]
    backward: tuple[Float[Tensor, "*draws n _"], ...]

    def weight_gradients(self) -> list[Float[Tensor, "*draws n out in"]]:
        """∂f/∂W^h = b^h (g^{h−1})ᵀ for h = 1 … L + 1, one matrix per input (book eq. 15.80)."""
        return [b[..., None] * g[..., None, :] for g, b in zip(self.forward, self.backward, strict=True)]


def propagate_signals(weights: Sequence[Tensor], x: Float[Tensor, "n inputs"], nonlinearity: Nonlinearity) -> Signals:
    """Forward and backward signals of the book's network without biases, for all inputs at once.

        g⁰ = x,   f^h = W^h g^{h−1},   g^h = √(c_σ/d_h) σ(f^h),   f = W^{L+1} g^L             (book eqs. 15.28-15.30)
        b^{L+1} = 1,   b^h = √(c_σ/d_h) D^h (W^{h+1})ᵀ b^{h+1},   D^h = diag σ′(f^h)          (book eqs. 15.78-15.79)

    `weights` are W¹ … W^{L+1}, each (*draws, d_h, d_{h−1}) with d_{L+1} = 1: leading axes are independent networks.
    """
    _check_matching_sizes(weights, x)
    gain = normaliser(nonlinearity)
    forward, derivatives = [x.expand(*weights[0].shape[:-2], *x.shape)], []
    for weight in weights[:-1]:
        f = forward[-1] @ weight.mT
        scale = (gain / weight.shape[-2]) ** 0.5
        value, derivative = _value_and_derivative(nonlinearity, f)
        forward.append(scale * value)
        derivatives.append(scale * derivative)
    backward = [torch.ones_like(forward[-1][..., :1])]
    for weight, derivative in zip(reversed(weights[1:]), reversed(derivatives), strict=True):
        backward.append(derivative * (backward[-1] @ weight))
    return Signals(tuple(forward), tuple(reversed(backward)))


def layerwise_ntk(left: Signals, right: Signals | None = None) -> Float[Tensor, "*draws n m"]:
    """K(x, x') = Σ_h ⟨b^h(x), b^h(x')⟩ ⟨g^{h−1}(x), g^{h−1}(x')⟩, without forming gradients (book eqs. 15.85, 15.96).

    Exact at every width: the Hilbert-Schmidt product of two outer products is the product of two inner products.
    """
    right = left if right is None else right
    terms = [
        (b @ c.mT) * (g @ h.mT)
        for g, b, h, c in zip(left.forward, left.backward, right.forward, right.backward, strict=True)
    ]
    return torch.stack(terms).sum(0)


def random_weights(
    sizes: Sequence[int], *, draws: Sequence[int] = (), generator: torch.Generator | None = None
) -> list[Float[Tensor, "*draws out in"]]:
    """W^h ~ N(0, 1) in float64 for sizes d_0, d_1, …, d_{L+1}, with leading axes `draws` (book eq. 15.31)."""
    if len(sizes) < 2 or min(sizes) < 1:
        raise ValueError(f"sizes must be at least two positive integers; got sizes={list(sizes)}")
    return [
        torch.randn(*draws, after, before, generator=generator, dtype=torch.float64)
        for before, after in pairwise(sizes)
    ]


def train_networks(
    weights: Sequence[Tensor],
    x: Float[Tensor, "n inputs"],
    y: Float[Tensor, "*each n"],
    nonlinearity: Nonlinearity,
    *,
    learning_rate: float,
    steps: int,
) -> list[Float[Tensor, "*draws out in"]]:
    """Train each draw by `steps` of gradient descent on ½ Σ_n (f(x_n) − y_n)² (book eqs. 15.49-15.50).

    ∂ℓ/∂W^h = Σ_n (f(x_n) − y_n) b^h(x_n) g^{h−1}(x_n)ᵀ for all networks at once, by matrix products. Labels `y` are
    shared by all draws or given per draw.
    """
    if not learning_rate > 0 or steps < 0:
        raise ValueError(f"need learning_rate > 0 and steps ≥ 0; got {learning_rate=}, {steps=}")
    trained = [weight.clone() for weight in weights]
    for _ in range(steps):
        signals = propagate_signals(trained, x, nonlinearity)
        residual = signals.forward[-1] @ trained[-1].mT - y[..., None]
        for weight, g, b in zip(trained, signals.forward, signals.backward, strict=True):
            weight.sub_((residual * b).mT @ g, alpha=learning_rate)
    return trained


def network_outputs(
    weights: Sequence[Tensor], x: Float[Tensor, "n inputs"], nonlinearity: Nonlinearity
) -> Float[Tensor, "*draws n"]:
    """f(x) = W^{L+1} g^L(x) of each network (book eq. 15.30)."""
    return (propagate_signals(weights, x, nonlinearity).forward[-1] @ weights[-1].mT)[..., 0]


def layer_weights(module: nn.Module) -> list[Float[Tensor, "out in"]]:
    """W¹ … W^{L+1} of a module built by `fully_connected(…).module(…)` without biases."""
    layers = [part for part in module.modules() if isinstance(part, ScaledLinear)]
    if not layers or any(layer.bias is not None for layer in layers):
        raise ValueError(f"module must have dense layers without biases; got {len(layers)} dense layers: {module}")
    return [layer.weight.detach() for layer in layers]


def _value_and_derivative(nonlinearity: Nonlinearity, f: Tensor) -> tuple[Tensor, Tensor]:
    value, pullback, *_ = vjp(nonlinearity, f)
    (derivative,) = pullback(torch.ones_like(f))
    return value, derivative


def _check_matching_sizes(weights: Sequence[Tensor], x: Tensor) -> None:
    sizes = [tuple(weight.shape[-2:]) for weight in weights]
    is_chain = all(after == before for (after, _), (_, before) in pairwise(sizes))
    if not sizes or not is_chain or sizes[0][1] != x.shape[1] or sizes[-1][0] != 1:
        raise ValueError(
            f"weights must map {x.shape[1]} features to one output, each with as many columns as the previous one has "
            f"rows; got (rows, columns) {sizes}"
        )
