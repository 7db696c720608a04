"""Pointwise nonlinearities and their derivatives (book sec. 1.2, Diehl sec. 1, Zhao sec. 5).

Every function takes a tensor of any shape and acts on each number alone. The derivative of `name` is `name_slope`;
where the function has a corner or a jump, the slope there is the one that torch's gradient uses.
"""

from collections.abc import Callable
from math import pi, sqrt
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

Activation: TypeAlias = Callable[[Tensor], Tensor]


def identity(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The input itself: what an output layer without a nonlinearity applies."""
    return x


def identity_slope(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 everywhere."""
    return torch.ones_like(x)


def step01(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 where x > 0, else 0; called Sign in the book (book eq. 1.4).

    Also 0 at x = 0. No gradient passes: the slope is 0 wherever there is one.
    """
    return torch.sign(torch.relu(x))  # a comparison would cut the graph: the gradient must be 0, not missing


def step01_slope(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """0 everywhere; at the jump there is no derivative, and 0 stands for it."""
    return torch.zeros_like(x)


def sign_pm1(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 where x > 0, else −1: the other Sign of the book, which never gives 0 (book eq. 2.11)."""
    return 2 * step01(x) - 1


def sign_pm1_slope(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """0 everywhere, as for `step01`."""
    return torch.zeros_like(x)


def relu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """max(x, 0): x where x > 0, else 0 (book eq. 1.5)."""
    return torch.relu(x)


def relu_slope(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 where x > 0, else 0; 0 at the corner."""
    return step01(x)


def leaky_relu(x: Float[Tensor, "*shape"], alpha: float = 0.01) -> Float[Tensor, "*shape"]:
    """Equal to x where x > 0, else to αx with 0 < α < 1 (book eq. 1.8)."""
    return torch.where(x > 0, x, alpha * x)


def leaky_relu_slope(x: Float[Tensor, "*shape"], alpha: float = 0.01) -> Float[Tensor, "*shape"]:
    """1 where x > 0, else α: never zero, so that no unit stops learning."""
    return alpha + (1 - alpha) * step01(x)


def tanh(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ), in a form that does not overflow (book eq. 1.6)."""
    return torch.tanh(x)


def tanh_slope(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """tanh′ = 1 − tanh², at most 1."""
    return 1 - torch.tanh(x).square()


def sigmoid(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 / (1 + e⁻ˣ), the logistic function (book eq. 1.7)."""
    return torch.sigmoid(x)


def sigmoid_slope(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """sigmoid′ = sigmoid(x) sigmoid(−x), at most ¼; the product keeps its digits where 1 − sigmoid(x) loses them."""
    return torch.sigmoid(x) * torch.sigmoid(-x)


def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The Gaussian error linear unit: x times the probability that a standard normal lies below x.

    GELU(x) = ½ x (1 + erf(x / √2)) = x Φ(x)                               (book eq. 1.9)
    erf(x)  = 2/√π ∫₀ˣ exp(−t²) dt                                         (book eq. 1.10)
    """
    return x * _normal_cdf(x)


def gelu_slope(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """GELU′ = Φ(x) + x φ(x), with φ the standard normal density."""
    density = torch.exp(-x.square() / 2) / sqrt(2 * pi)
    return _normal_cdf(x) + x * density


def gelu_by_tanh(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """GELU with Φ(x) ≈ ½ (1 + tanh(√(2/π) (x + 0.044715 x³))), never further off than 0.00048 (Diehl sec. 1)."""
    return x * torch.sigmoid(2 * _gate(x))  # ½ (1 + tanh u) = sigmoid(2u), without the cancellation far below 0


def gelu_by_tanh_slope(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Φ ≈ s gives s + x s (1 − s) 2u′, with s = sigmoid(2u) and u the argument of the tanh."""
    share = torch.sigmoid(2 * _gate(x))
    steepness = sqrt(8 / pi) * (1 + 3 * 0.044715 * x.square())
    return share + x * share * torch.sigmoid(-2 * _gate(x)) * steepness


def elu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Equal to x where x > 0, else to eˣ − 1: smooth at 0, and never below −1 (Diehl sec. 1)."""
    return torch.where(x > 0, x, torch.expm1(x.clamp(max=0)))  # unclamped, eˣ overflows in the branch not taken


def elu_slope(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 where x > 0, else eˣ: 1 from both sides at 0."""
    return torch.exp(x.clamp(max=0))


def _gate(x: Tensor) -> Tensor:
    return sqrt(2 / pi) * (x + 0.044715 * x.pow(3))


def _normal_cdf(x: Tensor) -> Tensor:
    """Φ(x) by erfc, which for x far below 0 keeps the digits that 1 + erf cancels."""
    return torch.erfc(-x / sqrt(2)) / 2
