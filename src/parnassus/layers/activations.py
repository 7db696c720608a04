"""Pointwise nonlinearities and their derivatives (book sec. 1.2, Diehl sec. 1, Zhao sec. 5).

All functions act elementwise. The derivative of `name` is `name_derivative`; at a corner or a jump it has the value
that torch's autograd uses.
"""

from collections.abc import Callable
from math import pi, sqrt
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability import normal_density

Activation: TypeAlias = Callable[[Tensor], Tensor]


def identity(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The input itself: the activation of a linear output layer."""
    return x


def identity_derivative(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 everywhere."""
    return torch.ones_like(x)


def heaviside(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 where x > 0, else 0; called Sign in the book (book eq. 1.4).

    Also 0 at x = 0. Its gradient is 0 everywhere.
    """
    return torch.sign(torch.relu(x))  # a comparison would detach the graph; the gradient must be 0


def heaviside_derivative(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """0 everywhere, by convention also at the jump."""
    return torch.zeros_like(x)


def binary_sign(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 where x > 0, else −1: the book's second Sign, which is never 0 (book eq. 2.11)."""
    return 2 * heaviside(x) - 1


def binary_sign_derivative(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """0 everywhere, as for `heaviside`."""
    return torch.zeros_like(x)


def relu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """max(x, 0): x where x > 0, else 0 (book eq. 1.5)."""
    return torch.relu(x)


def relu_derivative(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 where x > 0, else 0."""
    return heaviside(x)


def leaky_relu(x: Float[Tensor, "*shape"], alpha: float = 0.01) -> Float[Tensor, "*shape"]:
    """Equal to x where x > 0, else to αx with 0 < α < 1 (book eq. 1.8)."""
    return torch.where(x > 0, x, alpha * x)


def leaky_relu_derivative(x: Float[Tensor, "*shape"], alpha: float = 0.01) -> Float[Tensor, "*shape"]:
    """1 where x > 0, else α: never 0, so that no unit dies."""
    return alpha + (1 - alpha) * heaviside(x)


def tanh(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ), computed without overflow (book eq. 1.6)."""
    return torch.tanh(x)


def tanh_derivative(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """tanh′ = 1 − tanh², at most 1."""
    return 1 - torch.tanh(x).square()


def sigmoid(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 / (1 + e⁻ˣ), the logistic function (book eq. 1.7)."""
    return torch.sigmoid(x)


def sigmoid_derivative(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """sigmoid′ = sigmoid(x) sigmoid(−x), at most ¼; this form avoids the cancellation in 1 − sigmoid(x)."""
    return torch.sigmoid(x) * torch.sigmoid(-x)


def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The Gaussian error linear unit: x times the probability that a standard normal lies below x.

    GELU(x) = ½ x (1 + erf(x / √2)) = x Φ(x)                               (book eq. 1.9)
    erf(x)  = 2/√π ∫₀ˣ exp(−t²) dt                                         (book eq. 1.10)
    """
    return x * _normal_cdf(x)


def gelu_derivative(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """GELU′ = Φ(x) + x φ(x), with φ the standard normal density."""
    return _normal_cdf(x) + x * normal_density(x, mean=0.0, variance=1.0)


def gelu_tanh(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """GELU with Φ(x) ≈ ½ (1 + tanh(√(2/π) (x + 0.044715 x³))), with an error of at most 0.00048 (Diehl sec. 1)."""
    return x * torch.sigmoid(2 * _tanh_argument(x))  # ½ (1 + tanh u) = sigmoid(2u), without cancellation for x ≪ 0


def gelu_tanh_derivative(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Φ ≈ s gives s + x s (1 − s) 2u′, with s = sigmoid(2u) and u the argument of the tanh."""
    gate = torch.sigmoid(2 * _tanh_argument(x))
    inner_derivative = sqrt(8 / pi) * (1 + 3 * 0.044715 * x.square())
    return gate + x * gate * torch.sigmoid(-2 * _tanh_argument(x)) * inner_derivative


def elu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Equal to x where x > 0, else to eˣ − 1: differentiable at 0 and bounded below by −1 (Diehl sec. 1)."""
    return torch.where(x > 0, x, torch.expm1(x.clamp(max=0)))  # without the clamp eˣ overflows in the branch not used


def elu_derivative(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 where x > 0, else eˣ: 1 from both sides at 0."""
    return torch.exp(x.clamp(max=0))


ACTIVATIONS: dict[str, tuple[Activation, Activation]] = {
    "step": (heaviside, heaviside_derivative),
    "sign ±1": (binary_sign, binary_sign_derivative),
    "ReLU": (relu, relu_derivative),
    "leaky ReLU": (leaky_relu, leaky_relu_derivative),
    "tanh": (tanh, tanh_derivative),
    "sigmoid": (sigmoid, sigmoid_derivative),
    "GELU": (gelu, gelu_derivative),
    "ELU": (elu, elu_derivative),
    "identity": (identity, identity_derivative),
}
"""Activation functions with their derivatives, by their usual names."""


def _tanh_argument(x: Tensor) -> Tensor:
    return sqrt(2 / pi) * (x + 0.044715 * x.pow(3))


def _normal_cdf(x: Tensor) -> Tensor:
    """Φ(x) by erfc, which for x ≪ 0 avoids the cancellation in 1 + erf."""
    return torch.erfc(-x / sqrt(2)) / 2
