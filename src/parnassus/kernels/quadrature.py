"""Expectations of any nonlinearity by Gauss and Hermite's rule (book eqs. 15.19-15.21)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import pi, sqrt

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.kernels.nonlinearity import Expected

AT_ONCE = 2**20
"""Values of σ that are worked out together."""


@dataclass(frozen=True)
class Quadrature:
    """Any σ: both expectations by Gauss and Hermite's rule in two variables, of `nodes`² points.

        u = √Σ_x z₁,   v = (Σ z₁ + √(Σ_x Σ_x' − Σ²) z₂) / √Σ_x,   z₁, z₂ ~ N(0, 1) independent

    Exact where σ² is a polynomial of degree below 2 · nodes; close for smooth σ of inputs that are not much longer
    than 1; poor for σ with a kink.
    """

    function: Callable[[Tensor], Tensor]
    nodes: int = 40

    def __post_init__(self) -> None:
        hermite(self.nodes)  # which says what is wrong with them

    def __call__(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return self.function(x)

    def expect(
        self, cross: Float[Tensor, "*shape"], left: Float[Tensor, "*_left"], right: Float[Tensor, "*_right"]
    ) -> Expected:
        z, weight = (part.to(cross) for part in hermite(self.nodes))
        tiny = torch.finfo(cross.dtype).tiny  # below it a root has no slope
        root = left.clamp(min=tiny).sqrt()
        along = cross / root
        across = (right - along * along).clamp(min=tiny).sqrt()
        points, weights = torch.cartesian_prod(z, z), torch.outer(weight, weight).flatten()
        value, slope = torch.zeros_like(cross), torch.zeros_like(cross)
        together = max(1, AT_ONCE // max(1, cross.numel()))
        for some, part in zip(points.split(together), weights.split(together), strict=True):
            z_1, z_2 = some.unbind(1)
            f, f_slope = self._with_slope(root[..., None] * z_1)
            g, g_slope = self._with_slope(along[..., None] * z_1 + across[..., None] * z_2)
            value, slope = value + (f * g) @ part, slope + (f_slope * g_slope) @ part
        return Expected(value, slope)

    def square(self, variance: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        z, weight = (part.to(variance) for part in hermite(self.nodes))
        root = variance.clamp(min=torch.finfo(variance.dtype).tiny).sqrt()
        return self.function(root[..., None] * z).square() @ weight

    def _with_slope(self, x: Tensor) -> tuple[Tensor, Tensor]:
        value, pull_back, *_ = torch.func.vjp(self.function, x)  # entry by entry, so ones bring back every slope
        return value, pull_back(torch.ones_like(value))[0]


@lru_cache(maxsize=8)
def hermite(nodes: int) -> tuple[Float[Tensor, " nodes"], Float[Tensor, " nodes"]]:
    """Points and weights with which Σ_i w_i f(z_i) is E f(z), z ~ N(0, 1), for polynomials f of degree < 2 · nodes."""
    if not 1 <= nodes <= 250:
        raise ValueError(f"a quadrature has from 1 to 250 nodes, beyond which their weights vanish; got nodes={nodes}")
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    return torch.from_numpy(points), torch.from_numpy(weights / sqrt(2 * pi))
