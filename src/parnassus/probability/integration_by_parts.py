"""Gaussian integration by parts, and the split on which its proof stands (Diehl thm. 5.5, proof B)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad

from parnassus.probability.gaussian import Gaussian, symmetric
from parnassus.probability.gaussian_quadrature import PointMap, gaussian_expectation


class Parts(NamedTuple):
    """Both sides of the formula."""

    product: Tensor  # E[X₁ f(X)]
    derivative: Tensor  # Σ_i E[X₁ X_i] E[∂_i f(X)]


def integration_by_parts(function: PointMap, law: Gaussian, *, coordinate: int = 0, nodes: int = 20) -> Parts:
    """E[X₁ f(X)] = Σ_i E[X₁X_i] E[∂_i f(X)] for a centred X, with ∂_i by autograd (Diehl thm. 5.5, proof B).

    `function` takes a single point; the expectations are by quadrature, exact for polynomials of degree < 2 · nodes.
    """
    _require_centred(law)
    product = gaussian_expectation(lambda x: x[coordinate] * function(x), law, nodes=nodes)
    slopes = gaussian_expectation(grad(function), law, nodes=nodes)
    return Parts(product, law.covariance[coordinate] @ slopes)


class Split(NamedTuple):
    """X = X̂ + λ X₁: a direction, and the law of the rest, which is independent of X₁."""

    direction: Tensor  # λ, with λ₁ = 1
    rest: Gaussian  # of X̂, whose first coordinate is 0


def split_along(law: Gaussian, coordinate: int = 0) -> Split:
    """Take out of a centred X the part along one coordinate, X = X̂ + λ X₁ (Diehl thm. 5.5, proof B).

        λ_i = E[X₁X_i] / E[X₁²],   X̂ = X − λ X₁ ~ N(0, Σ − λ λᵀ E[X₁²])

    It needs E[X₁²] > 0. As printed the vector X̂ is X − λ_i X₁, with an index too many.
    """
    _require_centred(law)
    column = law.covariance[:, coordinate]
    variance = column[coordinate]
    if not bool(variance > 0):
        raise ValueError(f"the coordinate split off must have a positive variance; got {float(variance):g}")
    direction = column / variance
    projection = torch.eye(len(column)).to(column)
    projection[:, coordinate] -= direction
    return Split(direction, Gaussian(law.mean, symmetric(projection @ law.covariance @ projection.mT)))


def residuals(
    x: Float[Tensor, "draws dim"], direction: Float[Tensor, " dim"], coordinate: int = 0
) -> Float[Tensor, "draws dim"]:
    """X̂ = X − λ X₁ of each draw (Diehl thm. 5.5, proof B)."""
    return x - x[:, coordinate, None] * direction


def _require_centred(law: Gaussian) -> None:
    if bool(law.mean.detach().any()):
        raise ValueError(f"the formula needs a centred law; got the mean {law.mean.tolist()}")
