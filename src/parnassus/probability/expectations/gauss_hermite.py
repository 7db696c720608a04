"""Expectations under a Gaussian by Gauss-Hermite quadrature (Diehl sec. 5)."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap

from parnassus.probability.distributions.gaussian import Gaussian, eigen_root

PointMap: TypeAlias = Callable[[Tensor], Tensor]
"""A function that maps a single point (dim) to a tensor."""

MAX_NODES = 2_000_000  # nodes of a grid


def gaussian_expectation(function: PointMap, distribution: Gaussian, *, nodes: int = 20) -> Float[Tensor, "*event"]:
    """E f(X) for X = μ + R ε with R Rᵀ = Σ, by a tensor grid of `nodes` Hermite nodes per dimension.

        E f(X) ≈ Σ_k w_k f(μ + R ε_k)

    Exact for polynomials up to degree 2 · nodes − 1. Σ may be singular; the grid grows as nodesᵈⁱᵐ.
    """
    if distribution.covariance.ndim > 2 or distribution.mean.ndim > 1:
        raise ValueError(f"distribution must not be batched; got means of shape {tuple(distribution.mean.shape)}")
    dim = distribution.mean.shape[-1]
    if nodes < 1 or nodes**dim > MAX_NODES:
        raise ValueError(f"need 1 ≤ nodes and nodes^dim ≤ {MAX_NODES:,}; got nodes={nodes}, dim={dim}")
    points, weights = (
        torch.from_numpy(values).to(distribution.mean) for values in np.polynomial.hermite_e.hermegauss(nodes)
    )
    noise = torch.cartesian_prod(*[points] * dim).view(-1, dim)
    weight = torch.cartesian_prod(*[weights / weights.sum()] * dim).view(-1, dim).prod(-1)
    x = distribution.mean + noise @ eigen_root(distribution.covariance).mT
    expected: Tensor = torch.tensordot(weight, vmap(function)(x), 1)
    return expected
