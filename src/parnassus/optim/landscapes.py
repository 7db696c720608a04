"""One-line functions with the traps of descent: false minima, flat floors, plateaus (Zhao sec. 12).

Each takes a vector and sums over its entries.
"""

from math import pi

from jaxtyping import Float
from torch import Tensor


def wave(x: Float[Tensor, " dim"]) -> Float[Tensor, ""]:
    """Σ x cos πx, a risk with several local minima."""
    return (x * (pi * x).cos()).sum()


def sampled_wave(x: Float[Tensor, " dim"]) -> Float[Tensor, ""]:
    """Σ x cos πx + 0.2 cos 5πx: the same risk as a finite sample might show it, with minima of its own."""
    return wave(x) + 0.2 * (5 * pi * x).cos().sum()


def flat_floor(x: Float[Tensor, " dim"]) -> Float[Tensor, ""]:
    """Σ max(|x| − 1, 0): convex, with many minimisers and one minimum."""
    return (x.abs() - 1).clamp(min=0).sum()


def upturned_bell(x: Float[Tensor, " dim"]) -> Float[Tensor, ""]:
    """Σ 1 − exp(−4x²): one minimum and convex below sets in one dimension, yet not convex and flat far out."""
    return (1 - (-4 * x.square()).exp()).sum()


def plateau(x: Float[Tensor, " dim"]) -> Float[Tensor, ""]:
    """Σ tanh x, whose slope 1 − tanh² x is all but gone at 4."""
    return x.tanh().sum()
