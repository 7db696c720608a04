"""Ridge regression on features, and on a kernel: what random features save (Diehl sec. 4.1)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class FeatureRidge:
    """f(x) = Wᵀψ(x), with W fitted in O(n k²) for n examples and k features (Diehl sec. 4.1).

        W = argmin 1/n Σ_i ½‖Wᵀψ(x_i) − y_i‖² + λ/2 ‖W‖²
        (ΨᵀΨ + nλ I) W = ΨᵀY

    Without an intercept, so that with ψ(x)ᵀψ(y) → k(x, y) it tends to kernel ridge regression. Several columns of Y are
    several regressions at once: one for each class makes a classifier, by `one_hot` labels and the largest answer.
    """

    slopes: Float[Tensor, "features outputs"]

    @classmethod
    def fit(
        cls, psi: Float[Tensor, "count features"], y: Float[Tensor, "count outputs"], *, penalty: float
    ) -> "FeatureRidge":
        _require(len(psi), penalty)
        return cls(_solved(psi.mT @ psi, psi.mT @ y, len(psi) * penalty))

    def predict(self, psi: Float[Tensor, "count features"]) -> Float[Tensor, "count outputs"]:
        return psi @ self.slopes


@dataclass(frozen=True)
class KernelRidge:
    """f(x) = Σ_i α_i k(x_i, x), with α = (K + nλ I)⁻¹ Y in O(n³) (Diehl sec. 4.1).

    The same minimum over all functions of the kernel's space; ψᵀψ in place of k gives `FeatureRidge` exactly.
    """

    alpha: Float[Tensor, "count outputs"]

    @classmethod
    def fit(
        cls, gram: Float[Tensor, "count count"], y: Float[Tensor, "count outputs"], *, penalty: float
    ) -> "KernelRidge":
        _require(len(gram), penalty)
        return cls(_solved(gram, y, len(gram) * penalty))

    def predict(self, kernel: Float[Tensor, "queries count"]) -> Float[Tensor, "queries outputs"]:
        """From k(x, x_i) of each new x with every example x_i of the fit."""
        return kernel @ self.alpha


def _solved(matrix: Tensor, right: Tensor, ridge: float) -> Tensor:
    """(M + ridge · I)⁻¹ R by Cholesky."""
    lifted = matrix + ridge * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    factor, failed = torch.linalg.cholesky_ex(lifted)
    if bool(failed):
        raise ValueError(f"M + nλ I is not positive definite in {matrix.dtype}; nλ={ridge:.3g} is too small for it")
    solution: Tensor = torch.cholesky_solve(right, factor)
    return solution


def _require(count: int, penalty: float) -> None:
    if count < 1 or not penalty > 0:
        raise ValueError(f"ridge regression needs examples and a positive penalty; got {count} and penalty={penalty}")
