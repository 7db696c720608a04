"""Data with known scores, and points over which expectations are exact, for the claims about diffusion."""

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser
from parnassus.diffusion.chain.schedules import Schedule

SIGNS = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)
"""Pairs of ±1: the mean of a quadratic form over them is its mean over two independent standard normals."""


def two_modes(schedule: Schedule) -> MixtureDenoiser:
    """½ N(−2, ¼) + ½ N(2, ¼)."""
    return MixtureDenoiser(schedule, torch.tensor([[-2.0], [2.0]]).double(), torch.tensor([0.5, 0.5]).double())


def distances(
    sampler: Callable[..., Tensor], oracle: MixtureDenoiser, start: Tensor, grids: Iterable[Tensor], end: Tensor
) -> Tensor:
    """RMS distance between `end` and the samples on each of the grids."""
    samples = (sampler(oracle, oracle.schedule, start, grid=grid) for grid in grids)
    return torch.stack([(x - end).square().mean().sqrt() for x in samples])


def second_moment_points(covariance: Tensor) -> Tensor:
    """2D points with mean 0 and exactly this second moment, over which means of quadratic forms are exact."""
    root = torch.linalg.cholesky(covariance).mT * len(covariance) ** 0.5
    return torch.cat([root, -root])


def mixture_nodes(centres: Tensor, stds: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gauss-Hermite nodes for (x_0, ε), an equal-weight mixture and a standard normal, with the mass of each pair."""
    nodes, masses = (torch.from_numpy(part) for part in np.polynomial.hermite_e.hermegauss(60))
    masses = masses / masses.sum()
    x0 = torch.cat([centre + std * nodes for centre, std in zip(centres, stds, strict=True)])
    pairs = torch.cartesian_prod(torch.arange(len(x0)), torch.arange(60))
    mass = masses.repeat(len(stds))[pairs[:, 0]] / len(stds) * masses[pairs[:, 1]]
    return x0[pairs[:, :1]], nodes[pairs[:, 1:]], mass
