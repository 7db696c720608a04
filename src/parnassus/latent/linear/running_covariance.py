"""Mean and covariance of rows that arrive in batches, as PCA needs them (book sec. 4.3)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

ROWS_PER_PRODUCT, ROWS_PER_SUM = 65_536, 128  # rows in one matrix product, and in one sum
MAX_SQUARED_MEAN_TO_VARIANCE = 10.0  # above this ratio Σ x xᵀ − n x̄ x̄ᵀ would lose digits by cancellation


@dataclass(frozen=True)
class RunningCovariance:
    """Count, mean and scatter matrix of rows, in float64; those of two sets of rows add up (Chan et al. 1983).

    S = Σ_m (x_m − x̄)(x_m − x̄)ᵀ
    S_AB = S_A + S_B + (n_A n_B / n_AB) (x̄_B − x̄_A)(x̄_B − x̄_A)ᵀ

    >>> rows = torch.arange(6.0).view(3, 2)
    >>> RunningCovariance.from_rows(rows).covariance.tolist()
    [[2.6666666666666665, 2.6666666666666665], [2.6666666666666665, 2.6666666666666665]]
    """

    count: int
    mean: Float[Tensor, " features"]
    scatter: Float[Tensor, "features features"]

    @classmethod
    @torch.no_grad()
    def from_rows(cls, x: Float[Tensor, "count features"]) -> "RunningCovariance":
        """Mean and scatter of these rows: products in the dtype of x, sums of partial results in float64.

        S = Σ_m x_m x_mᵀ − n x̄ x̄ᵀ saves a pass and is exact enough while ‖x̄‖² is not much larger than the variance;
        otherwise the rows are centred first.
        """
        if len(x) == 0:
            raise ValueError(f"a covariance needs at least one row; got x of shape {tuple(x.shape)}")
        mean = mean_of_rows(x)
        scatter = _scatter(x, mean)
        if not bool(torch.isfinite(scatter.diagonal()).all()):
            raise ValueError(f"every value of x and its square must be finite in {x.dtype}; some are not")
        if len(x) * mean.square().sum() > MAX_SQUARED_MEAN_TO_VARIANCE * scatter.trace():
            centred = (x.double() - mean).to(x.dtype)
            rounding = mean_of_rows(centred)
            mean, scatter = mean + rounding, _scatter(centred, rounding)
        return cls(len(x), mean, scatter)

    def __add__(self, other: "RunningCovariance") -> "RunningCovariance":
        if self.mean.shape != other.mean.shape:
            raise ValueError(f"both sets of rows need as many features; got {len(self.mean)} and {len(other.mean)}")
        count = self.count + other.count
        step = other.mean - self.mean
        between = self.count * other.count / count * step.outer(step)
        return RunningCovariance(count, self.mean + other.count / count * step, self.scatter + other.scatter + between)

    @property
    def covariance(self) -> Float[Tensor, "features features"]:
        """Σ = S / n, the divisor under which the error of PCA is exact (book eq. 4.7)."""
        return self.scatter / self.count


@torch.no_grad()
def mean_of_rows(x: Float[Tensor, "count features"]) -> Float[Tensor, " features"]:
    """x̄ in float64, from partial sums in the dtype of x: float64 throughout takes ten times as long."""
    if not x.is_cpu:
        return x.mean(0, dtype=torch.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # the caller raises the error
        sums = np.stack([part.sum(0) for part in _iterate_arrays(x, ROWS_PER_SUM)])
    return torch.from_numpy(sums.sum(0, dtype=np.float64)) / len(x)


def _scatter(x: Tensor, mean: Tensor) -> Tensor:
    """Σ_m x_m x_mᵀ − n x̄ x̄ᵀ in float64.

    On a CPU numpy exploits the symmetry of the product and does half the work, which torch does not. The remaining
    steps use numpy too: idle threads of torch would slow down the eigendecomposition that follows.
    """
    if not x.is_cpu:
        x = x.double()  # accelerators may round float32 products
        return x.mT @ x - len(x) * mean.outer(mean)
    total = np.outer(mean, -len(x) * mean)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in _iterate_arrays(x, ROWS_PER_PRODUCT):
            total += part.T @ part
    return torch.from_numpy(total)


def _iterate_arrays(x: Tensor, rows: int) -> Iterator[np.ndarray]:
    """The rows of x as arrays of at most `rows` rows; half precision becomes float32."""
    for part in x.detach().split(rows):
        yield (part if x.dtype in (torch.float32, torch.float64) else part.float()).numpy()
