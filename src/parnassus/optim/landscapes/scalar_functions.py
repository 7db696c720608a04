"""Functions on which gradient descent fails: local minima, flat minima, plateaus (Zhao sec. 12).

Each is a sum of one scalar function over the entries of a vector.
"""

from math import pi

from jaxtyping import Float
from torch import Tensor


def cosine_risk(x: Float[Tensor, " dim"]) -> Float[Tensor, ""]:
    """Σ x cos πx: a risk with several local minima."""
    return (x * (pi * x).cos()).sum()


def empirical_cosine_risk(x: Float[Tensor, " dim"]) -> Float[Tensor, ""]:
    """Σ x cos πx + 0.2 cos 5πx: an empirical version of `cosine_risk`, with other local minima."""
    return cosine_risk(x) + 0.2 * (5 * pi * x).cos().sum()


def flat_minimum(x: Float[Tensor, " dim"]) -> Float[Tensor, ""]:
    """Σ max(|x| − 1, 0): convex, with many minimisers of the same value."""
    return (x.abs() - 1).clamp(min=0).sum()


def inverted_gaussian(x: Float[Tensor, " dim"]) -> Float[Tensor, ""]:
    """Σ 1 − exp(−4x²): one minimum and, in one dimension, convex sublevel sets; not convex, and flat far out."""
    return (1 - (-4 * x.square()).exp()).sum()


def tanh_plateau(x: Float[Tensor, " dim"]) -> Float[Tensor, ""]:
    """Σ tanh x, whose derivative 1 − tanh² x almost vanishes at 4."""
    return x.tanh().sum()
