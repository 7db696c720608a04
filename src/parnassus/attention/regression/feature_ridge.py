"""Ridge regression on features and kernel ridge regression (Diehl sec. 4.1)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.arrays import accepts_arrays


@dataclass(frozen=True)
class FeatureRidge:
    """Ridge regression f(x) = Wᵀψ(x), fitted in O(n k²) for n examples and k features (Diehl sec. 4.1).

        W = argmin 1/n Σ_i ½‖Wᵀψ(x_i) − y_i‖² + λ/2 ‖W‖²
        (ΨᵀΨ + nλ I) W = ΨᵀY

    Without an intercept, so that it tends to kernel ridge regression as ψ(x)ᵀψ(y) → k(x, y). Each column of Y is a
    separate regression; with `one_hot` labels the largest output is the predicted class.
    """

    slopes: Float[Tensor, "features outputs"]

    @classmethod
    @accepts_arrays
    def fit(
        cls, psi: Float[Tensor, "count features"], y: Float[Tensor, "count outputs"], *, penalty: float
    ) -> "FeatureRidge":
        _check_penalty(len(psi), penalty)
        return cls(_solve_ridge(psi.mT @ psi, psi.mT @ y, len(psi) * penalty))

    @accepts_arrays
    def predict(self, psi: Float[Tensor, "count features"]) -> Float[Tensor, "count outputs"]:
        return psi @ self.slopes


@dataclass(frozen=True)
class KernelRidge:
    """Kernel ridge regression f(x) = Σ_i α_i k(x_i, x), α = (K + nλ I)⁻¹ Y in O(n³) (Diehl sec. 4.1).

    The same minimum over the reproducing kernel Hilbert space; with k = ψᵀψ it equals `FeatureRidge`.
    """

    alpha: Float[Tensor, "count outputs"]

    @classmethod
    @accepts_arrays
    def fit(
        cls, gram: Float[Tensor, "count count"], y: Float[Tensor, "count outputs"], *, penalty: float
    ) -> "KernelRidge":
        _check_penalty(len(gram), penalty)
        return cls(_solve_ridge(gram, y, len(gram) * penalty))

    @accepts_arrays
    def predict(self, kernel: Float[Tensor, "queries count"]) -> Float[Tensor, "queries outputs"]:
        """Predictions from k(x, x_i) for each new x and every training example x_i."""
        return kernel @ self.alpha


def _solve_ridge(matrix: Tensor, right: Tensor, ridge: float) -> Tensor:
    """(M + ridge · I)⁻¹ R by Cholesky."""
    regularised = matrix + ridge * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    factor, info = torch.linalg.cholesky_ex(regularised)
    if bool(info):
        raise ValueError(f"M + nλ I must be positive definite in {matrix.dtype}; nλ={ridge:.3g} is too small")
    solution: Tensor = torch.cholesky_solve(right, factor)
    return solution


def _check_penalty(count: int, penalty: float) -> None:
    if count < 1 or not penalty > 0:
        raise ValueError(f"examples and a positive penalty are needed; got {count} examples, penalty={penalty}")
