"""Maximum mean discrepancy: a kernel distance of two distributions, from samples (Gretton et al. 2012)."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.probability.divergences.rbf_kernel import squared_distances


@runtime_checkable
class PairwiseKernel(Protocol):
    """A positive definite kernel, evaluated as k(x_i, y_j) for all pairs of rows, such as `rbf_kernel`."""

    def __call__(
        self, x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"], /
    ) -> Float[Tensor, "count_x count_y"]: ...


@dataclass(frozen=True)
class InverseMultiquadricKernel:
    """k(x, y) = C / (C + ‖x − y‖²), with heavy tails: distant points keep a gradient (Tolstikhin et al. 2018).

    >>> InverseMultiquadricKernel(scale=1.0)(torch.zeros(1, 2), torch.ones(1, 2))
    tensor([[0.3333]])
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_positive(scale=self.scale)

    def __call__(
        self, x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"], /
    ) -> Float[Tensor, "count_x count_y"]:
        return self.scale / (self.scale + squared_distances(x, y))


@dataclass(frozen=True)
class CubicKernel:
    """k(x, y) = (⟨x, y⟩ / d + 1)³, which compares moments up to order three (Bińkowski et al. 2018).

    >>> CubicKernel()(torch.ones(1, 2), torch.ones(3, 2)).tolist()
    [[8.0, 8.0, 8.0]]
    """

    def __call__(
        self, x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"], /
    ) -> Float[Tensor, "count_x count_y"]:
        product = x @ y.mT / x.shape[1] + 1
        return product * product * product


def squared_mmd(
    x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"], *, kernel: PairwiseKernel
) -> Float[Tensor, ""]:
    """E k(X, X′) + E k(Y, Y′) − 2 E k(X, Y) with means over all pairs of rows, the diagonal included.

    It is the squared distance of two mean feature vectors, hence non-negative, and biased upwards: by about
    2 (k(x, x) − E k) / n for samples of the same distribution.
    """
    if len(x) == 0 or len(y) == 0:
        raise ValueError(f"both samples must be non-empty; got {len(x)} and {len(y)} points")
    return kernel(x, x).mean() + kernel(y, y).mean() - 2 * kernel(x, y).mean()


def unbiased_squared_mmd(
    x: Float[Tensor, "count_x dim"], y: Float[Tensor, "count_y dim"], *, kernel: PairwiseKernel
) -> Float[Tensor, ""]:
    """The unbiased estimate, with means over pairs of distinct rows; negative values occur (Gretton et al. 2012)."""
    if len(x) < 2 or len(y) < 2:
        raise ValueError(f"each sample must have at least two points; got {len(x)} and {len(y)}")
    return _off_diagonal_mean(kernel(x, x)) + _off_diagonal_mean(kernel(y, y)) - 2 * kernel(x, y).mean()


def gaussian_squared_mmd(
    mean_1: Float[Tensor, " dim"],
    variance_1: Float[Tensor, " dim"],
    mean_2: Float[Tensor, " dim"],
    variance_2: Float[Tensor, " dim"],
    *,
    length_scale: float = 1.0,
) -> Float[Tensor, ""]:
    """The squared MMD of N(μ₁, diag σ₁²) and N(μ₂, diag σ₂²) under the RBF kernel, in closed form.

    E k(X, Y) = Π_j √(h² / v_j) exp(−(μ₁ − μ₂)_j² / 2v_j),   v = h² + σ₁² + σ₂²
    """

    def mean_kernel(offset: Tensor, variance: Tensor) -> Tensor:
        v = length_scale**2 + variance
        return ((length_scale**2 / v).sqrt() * (-offset.square() / (2 * v)).exp()).prod()

    zero = torch.zeros_like(mean_1)
    between = mean_kernel(mean_1 - mean_2, variance_1 + variance_2)
    return mean_kernel(zero, 2 * variance_1) + mean_kernel(zero, 2 * variance_2) - 2 * between


def _off_diagonal_mean(matrix: Tensor) -> Tensor:
    count = len(matrix)
    return (matrix.sum() - matrix.diagonal().sum()) / (count * (count - 1))
