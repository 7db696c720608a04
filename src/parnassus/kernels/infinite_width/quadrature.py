"""Expectations of any nonlinearity by Gauss-Hermite quadrature (book eqs. 15.19-15.21)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import pi, sqrt

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.kernels.infinite_width.nonlinearity import Expectations

MAX_VALUES = 2**20
"""Values of σ computed together, which bounds the memory."""


@dataclass(frozen=True)
class Quadrature:
    """Any σ, with both expectations by the two-dimensional Gauss-Hermite rule of `nodes`² points.

        u = √Σ_x z₁,   v = (Σ z₁ + √(Σ_x Σ_x' − Σ²) z₂) / √Σ_x,   z₁, z₂ ~ N(0, 1) independent

    Exact if σ² is a polynomial of degree below 2 · nodes; accurate for smooth σ and inputs of norm about 1 or less;
    inaccurate for σ with a kink.

    >>> Quadrature(torch.relu).second_moment(torch.tensor(2.0, dtype=torch.float64)).item() > 0.9
    True
    """

    function: Callable[[Tensor], Tensor]
    nodes: int = 40

    def __post_init__(self) -> None:
        gauss_hermite(self.nodes)  # validates nodes

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return self.function(x)

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expectations:
        z, weight = (part.to(cross) for part in gauss_hermite(self.nodes))
        tiny = torch.finfo(cross.dtype).tiny  # the square root has no derivative at 0
        root = left.clamp(min=tiny).sqrt()
        along = cross / root
        across = (right - along * along).clamp(min=tiny).sqrt()
        points, weights = torch.cartesian_prod(z, z), torch.outer(weight, weight).flatten()
        value, derivative = torch.zeros_like(cross), torch.zeros_like(cross)
        chunk = max(1, MAX_VALUES // max(1, cross.numel()))
        for nodes, part in zip(points.split(chunk), weights.split(chunk), strict=True):
            z_1, z_2 = nodes.unbind(1)
            f, df = self._value_and_derivative(root[..., None] * z_1)
            g, dg = self._value_and_derivative(along[..., None] * z_1 + across[..., None] * z_2)
            value, derivative = value + (f * g) @ part, derivative + (df * dg) @ part
        return Expectations(value, derivative)

    def second_moment(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        z, weight = (part.to(variance) for part in gauss_hermite(self.nodes))
        root = variance.clamp(min=torch.finfo(variance.dtype).tiny).sqrt()
        return self.function(root[..., None] * z).square() @ weight

    def _value_and_derivative(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, pull_back, *_ = torch.func.vjp(self.function, x)  # entrywise: a cotangent of ones gives all derivatives
        return value, pull_back(torch.ones_like(value))[0]


@lru_cache(maxsize=8)
def gauss_hermite(nodes: int) -> tuple[Float[Tensor, " nodes"], Float[Tensor, " nodes"]]:
    """Nodes and weights with Σ_i w_i f(z_i) = E f(z), z ~ N(0, 1), for polynomials f of degree < 2 · nodes."""
    if not 1 <= nodes <= 250:
        raise ValueError(f"nodes must lie between 1 and 250, beyond which weights underflow; got nodes={nodes}")
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return torch.from_numpy(points), torch.from_numpy(weights / sqrt(2 * pi))
