"""Expectations under a normal law by Gauss-Hermite quadrature (Diehl sec. 5)."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap

from parnassus.probability.gaussian import Gaussian, eigen_root

PointMap: TypeAlias = Callable[[Tensor], Tensor]
"""A single point (dim) in, a tensor out."""

LARGEST = 2_000_000  # nodes of a grid


def gaussian_expectation(function: PointMap, law: Gaussian, *, nodes: int = 20) -> Float[Tensor, "*event"]:
    """E f(X) for X = μ + R ε with R Rᵀ = Σ, on a grid of `nodes` Hermite nodes in every dimension of ε.

        E f(X) ≈ Σ_k w_k f(μ + R ε_k)

    Exact for polynomials up to degree 2 · nodes − 1. Σ may be singular; the grid grows as nodesᵈⁱᵐ.
    """
    if law.covariance.ndim > 2 or law.mean.ndim > 1:
        raise ValueError(f"quadrature takes one law at a time; got a batch of means {tuple(law.mean.shape)}")
    dim = law.mean.shape[-1]
    if nodes < 1 or nodes**dim > LARGEST:
        raise ValueError(f"need 1 ≤ nodes and nodes^dim ≤ {LARGEST:,}; got nodes={nodes}, dim={dim}")
    places, weights = (torch.from_numpy(part).to(law.mean) for part in np.polynomial.hermite_e.hermegauss(nodes))
    noise = torch.cartesian_prod(*[places] * dim).view(-1, dim)
    weight = torch.cartesian_prod(*[weights / weights.sum()] * dim).view(-1, dim).prod(-1)
    expected: Tensor = torch.tensordot(weight, vmap(function)(law.mean + noise @ eigen_root(law.covariance).mT), 1)
    return expected
