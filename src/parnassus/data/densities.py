"""The exact density of the two moons, as a reference for density models.

A point of `moons` lies on one of two half circles, evenly along the arc, blurred by N(0, noise² I):

    p(x) = ½ Σ_arc (1/π) ∫_0^π N(x; c_arc(θ), noise² I) dθ

No closed form is known to us, but the integrand is as smooth as a Gaussian, so Gauss's rule on short pieces of the arc
gives all digits that float64 has.
"""

from math import ceil, log, pi

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

NODES = 10
"""Of Gauss's rule on a piece of the arc as long as two standard deviations: an error near 1e-13."""
TOGETHER = 4_096
"""Points evaluated at once, so that the table of points × nodes stays small."""


def moons_log_prob(points: Float[Tensor, "count 2"], *, noise: float = 0.05) -> Float[Tensor, " count"]:
    """The logarithm of the density of `moons` at every point, in nats and float64."""
    if noise <= 0:
        raise ValueError(f"moons without noise have no density; noise must be positive, got noise={noise}")
    centres, log_weights = _mixture(noise, points.device)
    log_normal = -log(2 * pi * noise**2)
    return torch.cat(
        [
            torch.logsumexp(log_weights - torch.cdist(some, centres).square() / (2 * noise**2), dim=1) + log_normal
            for some in points.double().split(TOGETHER)
        ]
    )


def moons_entropy(*, noise: float = 0.05) -> float:
    """−∫ p log p of the moons, in nats: the lowest mean NLL of any model.

    The trapezium rule on a grid of half a standard deviation, which converges exponentially for a density this smooth.
    """
    grid, cell = moons_grid(noise=noise, spacing=noise / 2)
    log_prob = moons_log_prob(grid.flatten(0, 1), noise=noise)
    return float(-(log_prob.exp() * log_prob).sum() * cell)


def moons_grid(*, noise: float = 0.05, spacing: float) -> tuple[Float[Tensor, "rows columns 2"], float]:
    """Points over all of the mass of the moons but some 1e-15, `spacing` apart, and the area that belongs to each."""
    if noise <= 0 or spacing <= 0:
        raise ValueError(f"noise and spacing must be positive; got noise={noise}, spacing={spacing}")
    reach = 8 * noise
    across = torch.arange(-1 - reach, 2 + reach + spacing, spacing, dtype=torch.float64)
    up = torch.arange(-0.5 - reach, 1 + reach + spacing, spacing, dtype=torch.float64)
    rows, columns = torch.meshgrid(up, across, indexing="ij")
    return torch.stack([columns, rows], dim=-1), spacing**2


def _mixture(noise: float, device: torch.device) -> tuple[Float[Tensor, "nodes 2"], Float[Tensor, " nodes"]]:
    """The arcs as many Gaussians: Gauss's nodes on both of them, with the logarithms of their weights."""
    pieces = ceil(pi / (2 * noise))
    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.legendre.leggauss(NODES))
    angle = ((torch.arange(pieces, dtype=torch.float64)[:, None] + (nodes + 1) / 2) * pi / pieces).flatten()
    upper = torch.stack([angle.cos(), angle.sin()], dim=1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], dim=1)
    shares = (weights / (4 * pieces)).repeat(2 * pieces)
    return torch.cat([upper, lower]).to(device), shares.log().to(device)
