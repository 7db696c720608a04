"""Mean and scatter of rows, gathered part by part: all that PCA needs to know of the data (book sec. 4.3)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

PART, SHORT = 65_536, 128  # rows multiplied at a time, and added
OUTWEIGHED = 10.0  # mean² by variance from which the shortcut would cancel digits


@dataclass(frozen=True)
class Moments:
    """Count, mean and scatter of rows seen so far, in float64; those of two sets of rows add up (Chan et al. 1983).

    S = Σ_m (x_m − x̄)(x_m − x̄)ᵀ
    S_AB = S_A + S_B + (n_A n_B / n_AB) (x̄_B − x̄_A)(x̄_B − x̄_A)ᵀ
    """

    count: int
    mean: Float[Tensor, " features"]
    scatter: Float[Tensor, "features features"]

    @classmethod
    @torch.no_grad()
    def of(cls, x: Float[Tensor, "count features"]) -> "Moments":
        """The moments of these rows: products in x's own type, their sums over parts in float64.

        S = Σ_m x_m x_mᵀ − n x̄ x̄ᵀ spares a pass and loses nothing while ‖x̄‖² is not much larger than the variance;
        where it is, rows are centred first.
        """
        if len(x) == 0:
            raise ValueError(f"moments need at least one row; got x of shape {tuple(x.shape)}")
        mean = mean_of_rows(x)
        scatter = _scatter(x, mean)
        if not bool(torch.isfinite(scatter.diagonal()).all()):
            raise ValueError(f"every number of x and its square must be finite in {x.dtype}; some are not")
        if len(x) * mean.square().sum() > OUTWEIGHED * scatter.trace():
            centred = (x.double() - mean).to(x.dtype)
            left = mean_of_rows(centred)  # by what the mean was rounded
            mean, scatter = mean + left, _scatter(centred, left)
        return cls(len(x), mean, scatter)

    def __add__(self, other: "Moments") -> "Moments":
        if self.mean.shape != other.mean.shape:
            raise ValueError(f"moments to add need as many features; got {len(self.mean)} and {len(other.mean)}")
        count = self.count + other.count
        step = other.mean - self.mean
        between = self.count * other.count / count * step.outer(step)
        return Moments(count, self.mean + other.count / count * step, self.scatter + other.scatter + between)

    @property
    def covariance(self) -> Float[Tensor, "features features"]:
        """Σ = S / n, the divisor under which the error of PCA is exact (book eq. 4.7)."""
        return self.scatter / self.count


@torch.no_grad()
def mean_of_rows(x: Float[Tensor, "count features"]) -> Float[Tensor, " features"]:
    """x̄ in float64, from sums over short parts in x's own type: adding all as float64 takes ten times as long."""
    if not x.is_cpu:
        return x.mean(0, dtype=torch.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # whoever asked says what is wrong
        sums = np.stack([part.sum(0) for part in _arrays(x, SHORT)])
    return torch.from_numpy(sums.sum(0, dtype=np.float64)) / len(x)


def _scatter(x: Tensor, mean: Tensor) -> Tensor:
    """Σ_m x_m x_mᵀ − n x̄ x̄ᵀ in float64.

    On a CPU numpy sees that the product is symmetric and does half the work, which torch does not. It does the rest
    too: threads that torch leaves waiting would slow the eigenvalues that come next.
    """
    if not x.is_cpu:
        x = x.double()  # an accelerator might round float32 to less
        return x.mT @ x - len(x) * mean.outer(mean)
    total = np.outer(mean, -len(x) * mean)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in _arrays(x, PART):
            total += part.T @ part
    return torch.from_numpy(total)


def _arrays(x: Tensor, rows: int) -> Iterator[np.ndarray]:
    """The rows of x as arrays, so many at a time; numpy has no half precision worth the name."""
    for part in x.detach().split(rows):
        yield (part if x.dtype in (torch.float32, torch.float64) else part.float()).numpy()
