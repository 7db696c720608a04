"""Maximum mean discrepancy: two laws compared through a kernel, from samples alone (Gretton et al. 2012)."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class Likeness(Protocol):
    """A kernel: k(x_i, y_j) of every pair of rows, positive definite."""

    def __call__(
        self, x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"], /
    ) -> Float[Tensor, "count_x count_y"]: ...


@dataclass(frozen=True)
class RBF:
    """The Gaussian kernel k(x, y) = exp(−‖x − y‖² / 2h²) of width h: it sees differences about as wide as h."""

    width: float = 1.0

    def __post_init__(self) -> None:
        _require_positive(self.width, "width")

    def __call__(
        self, x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"], /
    ) -> Float[Tensor, "count_x count_y"]:
        return (-_squared_distances(x, y) / (2 * self.width**2)).exp()


@dataclass(frozen=True)
class InverseMultiquadric:
    """k(x, y) = C / (C + ‖x − y‖²): its heavy tails also pull points that lie far outside (Tolstikhin et al. 2018)."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        _require_positive(self.scale, "scale")

    def __call__(
        self, x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"], /
    ) -> Float[Tensor, "count_x count_y"]:
        return self.scale / (self.scale + _squared_distances(x, y))


@dataclass(frozen=True)
class Cubic:
    """k(x, y) = (⟨x, y⟩ / d + 1)³: compares moments up to the third, no width to choose (Bińkowski et al. 2018)."""

    def __call__(
        self, x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"], /
    ) -> Float[Tensor, "count_x count_y"]:
        product = x @ y.mT / x.shape[1] + 1
        return product * product * product


def squared_mmd(
    x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"], *, kernel: Likeness
) -> Float[Tensor, ""]:
    """E k(X, X′) + E k(Y, Y′) − 2 E k(X, Y) with means over all pairs of rows, equal rows included.

    It is the squared distance of two mean feature vectors, so never negative; two samples of one law stay above 0 by
    about 2 (k(x, x) − E k) / n.
    """
    if len(x) == 0 or len(y) == 0:
        raise ValueError(f"a discrepancy of samples needs points in both; got {len(x)} and {len(y)}")
    return kernel(x, x).mean() + kernel(y, y).mean() - 2 * kernel(x, y).mean()


def unbiased_squared_mmd(
    x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"], *, kernel: Likeness
) -> Float[Tensor, ""]:
    """The same with means over pairs of different rows: right on average, and so often below 0 where laws are equal."""
    if len(x) < 2 or len(y) < 2:
        raise ValueError(f"pairs of different points need two in each sample; got {len(x)} and {len(y)}")
    return _mean_of_pairs(kernel(x, x)) + _mean_of_pairs(kernel(y, y)) - 2 * kernel(x, y).mean()


def normal_squared_mmd(
    mean_1: Float[Tensor, " dim"],
    variance_1: Float[Tensor, " dim"],
    mean_2: Float[Tensor, " dim"],
    variance_2: Float[Tensor, " dim"],
    *,
    kernel: RBF,
) -> Float[Tensor, ""]:
    """The exact value between N(μ₁, diag σ₁²) and N(μ₂, diag σ₂²) under the Gaussian kernel.

    E k(X, Y) = Π_j √(h² / v_j) exp(−(μ₁ − μ₂)_j² / 2v_j),   v = h² + σ₁² + σ₂²
    """

    def likeness(offset: Tensor, variance: Tensor) -> Tensor:
        wide = kernel.width**2 + variance
        return ((kernel.width**2 / wide).sqrt() * (-offset.square() / (2 * wide)).exp()).prod()

    zero = torch.zeros_like(mean_1)
    apart = likeness(mean_1 - mean_2, variance_1 + variance_2)
    return likeness(zero, 2 * variance_1) + likeness(zero, 2 * variance_2) - 2 * apart


def _squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """‖x_i − y_j‖² by products: the slope of a square root would be infinite where two rows are equal."""
    products = x.square().sum(1)[:, None] + y.square().sum(1) - 2 * x @ y.mT
    return products.clamp(min=0)


def _mean_of_pairs(likeness: Tensor) -> Tensor:
    count = len(likeness)
    return (likeness.sum() - likeness.diagonal().sum()) / (count * (count - 1))


def _require_positive(value: float, name: str) -> None:
    if not value > 0:
        raise ValueError(f"the {name} of a kernel must be positive; got {name}={value}")
