"""The exact density of the two moons, as a reference for density models.

A point of `moons` is uniform on one of two half circles, plus noise from N(0, noise² I):

    p(x) = ½ Σ_arc (1/π) ∫_0^π N(x; c_arc(θ), noise² I) dθ

There is no known closed form. The integrand is as smooth as a Gaussian, so Gauss-Legendre quadrature on short pieces of
the arc is accurate to float64 precision.
"""

from math import ceil, log, pi

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.data.built_in.toy import moon_arcs

NODES = 10
"""Quadrature nodes per piece of the arc, which is two standard deviations long: the error is near 1e-13."""
POINTS_PER_BATCH = 4_096
"""Points evaluated at once, which limits the memory of the table of points × nodes."""


def moons_log_prob(points: Float[Tensor, "count 2"], *, noise: float = 0.05) -> Float[Tensor, " count"]:
    """The logarithm of the density of `moons` at every point, in nats and float64."""
    if noise <= 0:
        raise ValueError(f"moons without noise have no density; noise must be positive, got noise={noise}")
    centres, log_weights = _mixture(noise, points.device)
    log_normal = -log(2 * pi * noise**2)
    return torch.cat(
        [
            torch.logsumexp(log_weights - torch.cdist(batch, centres).square() / (2 * noise**2), dim=1) + log_normal
            for batch in points.double().split(POINTS_PER_BATCH)
        ]
    )


def moons_entropy(*, noise: float = 0.05) -> float:
    """−∫ p log p of the moons, in nats: the lowest mean NLL of any model.

    By the trapezoidal rule with spacing noise/2, which converges exponentially for so smooth a density.
    """
    grid, cell = moons_grid(noise=noise, spacing=noise / 2)
    log_prob = moons_log_prob(grid.flatten(0, 1), noise=noise)
    return float(-(log_prob.exp() * log_prob).sum() * cell)


def moons_grid(*, noise: float = 0.05, spacing: float) -> tuple[Float[Tensor, "rows columns 2"], float]:
    """A grid with this spacing that covers the density up to a mass of 1e-15, and the area of a cell."""
    if noise <= 0 or spacing <= 0:
        raise ValueError(f"noise and spacing must be positive; got noise={noise}, spacing={spacing}")
    margin = 8 * noise
    x = torch.arange(-1 - margin, 2 + margin + spacing, spacing, dtype=torch.float64)
    y = torch.arange(-0.5 - margin, 1 + margin + spacing, spacing, dtype=torch.float64)
    grid_y, grid_x = torch.meshgrid(y, x, indexing="ij")
    return torch.stack([grid_x, grid_y], dim=-1), spacing**2


def _mixture(noise: float, device: torch.device) -> tuple[Float[Tensor, "nodes 2"], Float[Tensor, " nodes"]]:
    """Both arcs as a mixture of Gaussians: the quadrature nodes and the logarithms of their weights."""
    pieces = ceil(pi / (2 * noise))
    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(NODES))
    angle = ((torch.arange(pieces, dtype=torch.float64)[:, None] + (nodes + 1) / 2) * pi / pieces).flatten()
    mixture_weights = (weights / (4 * pieces)).repeat(2 * pieces)
    return torch.cat(moon_arcs(angle)).to(device), mixture_weights.log().to(device)
