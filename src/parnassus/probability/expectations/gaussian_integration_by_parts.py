"""Gaussian integration by parts, and the residual decomposition used in its proof (Diehl thm. 5.5, proof B)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad

from parnassus.probability.distributions.gaussian import Gaussian, symmetrise
from parnassus.probability.expectations.gauss_hermite import PointMap, gaussian_expectation


class IntegrationByParts(NamedTuple):
    """Both sides of the integration-by-parts formula.

    >>> IntegrationByParts(product=torch.tensor(1.0), derivative=torch.tensor(1.0)).product.item()
    1.0
    """

    product: Tensor  # E[X₁ f(X)]
    derivative: Tensor  # Σ_i E[X₁ X_i] E[∂_i f(X)]


def gaussian_integration_by_parts(
    function: PointMap, distribution: Gaussian, *, coordinate: int = 0, nodes: int = 20
) -> IntegrationByParts:
    """E[X₁ f(X)] = Σ_i E[X₁X_i] E[∂_i f(X)] for a centred X, with ∂_i by autograd (Diehl thm. 5.5, proof B).

    `function` takes a single point. The expectations are by quadrature, exact for polynomials of degree < 2 · nodes.
    """
    _check_centred(distribution)
    product = gaussian_expectation(lambda x: x[coordinate] * function(x), distribution, nodes=nodes)
    gradient = gaussian_expectation(grad(function), distribution, nodes=nodes)
    return IntegrationByParts(product, distribution.covariance[coordinate] @ gradient)


class ResidualDecomposition(NamedTuple):
    """X = X̂ + λ X₁: the direction λ, and the distribution of X̂, which is independent of X₁.

    >>> rest = Gaussian(torch.zeros(1), torch.ones(1, 1))
    >>> ResidualDecomposition(direction=torch.tensor([0.5]), residual=rest).residual.rank.item()
    1
    """

    direction: Tensor  # λ, with λ₁ = 1
    residual: Gaussian  # of X̂, whose first coordinate is 0


def residual_decomposition(distribution: Gaussian, coordinate: int = 0) -> ResidualDecomposition:
    """Decompose a centred X into its regression on one coordinate and a residual (Diehl thm. 5.5, proof B).

        X = X̂ + λ X₁,   λ_i = E[X₁X_i] / E[X₁²],   X̂ = X − λ X₁ ~ N(0, Σ − λ λᵀ E[X₁²])

    It requires E[X₁²] > 0. The notes print X − λ_i X₁ for the vector X̂, with a superfluous index.
    """
    _check_centred(distribution)
    column = distribution.covariance[:, coordinate]
    variance = column[coordinate]
    if not bool(variance > 0):
        raise ValueError(f"the coordinate must have a positive variance; got {float(variance):g}")
    direction = column / variance
    projection = torch.eye(len(column), dtype=column.dtype, device=column.device)
    projection[:, coordinate] -= direction
    return ResidualDecomposition(
        direction, Gaussian(distribution.mean, symmetrise(projection @ distribution.covariance @ projection.mT))
    )


def residuals(
    x: Float[Tensor, "draws dim"], direction: Float[Tensor, " dim"], coordinate: int = 0
) -> Float[Tensor, "draws dim"]:
    """X̂ = X − λ X₁ of each sample (Diehl thm. 5.5, proof B)."""
    return x - x[:, coordinate, None] * direction


def _check_centred(distribution: Gaussian) -> None:
    if bool(distribution.mean.detach().any()):
        raise ValueError(f"the distribution must be centred; got mean={distribution.mean.tolist()}")
