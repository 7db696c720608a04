"""Solvers of (K + σ²I) α = t: Cholesky, or preconditioned conjugate gradients (book eq. 15.9)."""

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.kernels.solvers.jittered_cholesky import jittered_cholesky
from parnassus.kernels.solvers.kernel_matrix import BLOCK, KernelMatrix, free_bytes
from parnassus.optim.optimisers.conjugate_gradient import conjugate_gradient

RANK = 200
"""Default rank of a preconditioner, which needs that many rows of the kernel."""
SymmetricMatrix: TypeAlias = Tensor | KernelMatrix
"""A symmetric n × n matrix, dense or lazy."""
TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-10}
"""Attainable ‖r‖ / ‖t‖ for each dtype."""


class Solution(NamedTuple):
    """α with (K + σ²I) α = t, its worst relative residual, the steps taken, and the jitter added to σ².

    >>> Solution(weights=torch.zeros(5, 1), residual=1e-12, steps=3, jitter=0.0).steps
    3
    """

    weights: Float[Tensor, "n *outputs"]
    residual: float
    """The maximum over columns of ‖t − (K + σ²I) α‖ / ‖t‖, computed in float64."""
    steps: int
    jitter: float


@runtime_checkable
class LinearSolver(Protocol):
    """Applies (K + σ²I)⁻¹."""

    def solve(self, t: Float[Tensor, "n *outputs"]) -> Solution: ...

    def explained_variance(self, k: Float[Tensor, "n m"]) -> Float[Tensor, " m"]:
        """kᵀ (K + σ²I)⁻¹ k for each column k, the reduction of the prior variance (book eq. 15.10)."""
        ...


@dataclass(frozen=True, eq=False)
class CholeskySolver:
    """By the Cholesky factor R Rᵀ = K + (σ² + jitter) I: n³/3 operations and twice the memory of K.

    >>> matrix = torch.eye(2, dtype=torch.float64)
    >>> solution = CholeskySolver.from_matrix(matrix, noise=1.0).solve(torch.ones(2, 1, dtype=torch.float64))
    >>> solution.weights.round(decimals=6).flatten().tolist()
    [0.5, 0.5]
    """

    matrix: Float[Tensor, "n n"]
    noise: float
    root: Float[Tensor, "n n"]
    jitter: float

    @classmethod
    def from_matrix(cls, matrix: Float[Tensor, "n n"], *, noise: float) -> "CholeskySolver":
        """Factorise K + σ²I. To avoid a copy, the diagonal of `matrix` is modified in place and restored."""
        _check_noise(noise)
        diagonal = matrix.diagonal().clone()
        matrix.diagonal().add_(noise)
        try:
            root, jitter = jittered_cholesky(matrix)
        finally:
            matrix.diagonal().copy_(diagonal)
        return cls(matrix, noise, root, jitter)

    def solve(self, t: Float[Tensor, "n *outputs"]) -> Solution:
        columns = t.reshape(len(t), -1)
        weights: Tensor = torch.cholesky_solve(columns, self.root)
        error = relative_residual(self.matrix, columns, weights, noise=self.noise + self.jitter)
        return Solution(weights.reshape(t.shape), error, 0, self.jitter)

    def explained_variance(self, k: Float[Tensor, "n m"]) -> Float[Tensor, " m"]:
        whitened: Tensor = torch.linalg.solve_triangular(self.root, k, upper=False)
        return whitened.square_().sum(0)


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """P = L Lᵀ + δ I ≈ K + σ²I with L of low rank: P⁻¹ r = (r − L (δI + LᵀL)⁻¹ Lᵀ r) / δ (Woodbury).

    >>> matrix = torch.eye(4, dtype=torch.float64)
    >>> Preconditioner.from_matrix(matrix, rank=2, noise=1.0).factor.shape
    torch.Size([4, 2])
    """

    factor: Float[Tensor, "n rank"]
    shift: float
    root: Float[Tensor, "rank rank"]

    @classmethod
    def from_matrix(cls, matrix: SymmetricMatrix, *, rank: int = RANK, noise: float) -> "Preconditioner":
        """L by pivoted Cholesky: each step takes the row of the largest remaining variance.

        δ is σ² plus the mean of the remaining diagonal, so that P has the trace of K + σ²I
        (Gardner et al. 2018 use δ = σ²).
        """
        factor, remaining = pivoted_cholesky(matrix, rank)
        shift = noise + float(remaining.mean())
        if not shift > 0:
            shift = torch.finfo(factor.dtype).eps * float(matrix.diagonal().mean())
        inner = factor.mT @ factor
        inner.diagonal().add_(shift)
        return cls(factor, shift, torch.linalg.cholesky(inner))

    def solve(self, r: Float[Tensor, "n outputs"]) -> Float[Tensor, "n outputs"]:
        inner: Tensor = torch.cholesky_solve(self.factor.mT @ r, self.root)
        return (r - self.factor @ inner) / self.shift


@dataclass(frozen=True, eq=False)
class ConjugateGradients:
    """By preconditioned conjugate gradients: only products with K, which need not be stored.

    Each column of t is a separate system (see `optim.optimisers.conjugate_gradient`).

    >>> matrix = torch.eye(2, dtype=torch.float64)
    >>> solution = ConjugateGradients(matrix, noise=1.0).solve(torch.ones(2, 1, dtype=torch.float64))
    >>> solution.weights.round(decimals=6).flatten().tolist()
    [0.5, 0.5]
    """

    matrix: SymmetricMatrix
    noise: float
    preconditioner: Preconditioner | None = None
    tolerance: float = 1e-10
    """Stopping threshold for ‖r‖ / ‖t‖ of the recursion."""
    max_steps: int = 1_000

    def solve(self, t: Float[Tensor, "n *outputs"]) -> Solution:
        """The reported residual is recomputed at the end, not taken from the recursion."""
        _check_noise(self.noise)
        columns = t.reshape(len(t), -1)
        precondition = None if self.preconditioner is None else self.preconditioner.solve
        with torch.no_grad():
            weights, steps = conjugate_gradient(
                self._product,
                columns,
                max_steps=self.max_steps,
                tolerance=self.tolerance,
                dim=0,
                precondition=precondition,
            )
        error = relative_residual(self.matrix, columns, weights, noise=self.noise)
        return Solution(weights.reshape(t.shape), error, steps, 0.0)

    def explained_variance(self, k: Float[Tensor, "n m"]) -> Float[Tensor, " m"]:
        return (k * self.solve(k).weights).sum(0)

    def _product(self, p: Tensor) -> Tensor:
        """(K + σ²I) p."""
        along = self.matrix @ p + self.noise * p
        curvature = (p * along).sum(0)
        if not bool((curvature >= 0).all()):
            raise ValueError(
                f"K + σ²I must be positive definite; a direction p has pᵀ(K + σ²I)p = {float(curvature.min()):.3g}: "
                f"increase noise={self.noise:g}, or use float64"
            )
        return along


def pivoted_cholesky(matrix: SymmetricMatrix, rank: int = RANK) -> tuple[Float[Tensor, "n rank"], Float[Tensor, " n"]]:
    """L with K ≈ L Lᵀ from at most `rank` rows of K, and the remaining diagonal."""
    check_positive(rank=rank)
    remaining = matrix.diagonal().clone()
    floor = len(remaining) * torch.finfo(remaining.dtype).eps * float(remaining.max())
    rows = remaining.new_zeros(min(rank, len(remaining)), len(remaining))
    for step in range(len(rows)):
        pivot = int(remaining.argmax())
        variance = float(remaining[pivot])
        if variance <= floor:
            rows = rows[:step]
            break
        rows[step] = (matrix[pivot] - rows[:step, pivot] @ rows[:step]) / sqrt(variance)
        remaining = (remaining - rows[step].square()).clamp_(min=0)
        remaining[pivot] = 0
    return rows.mT, remaining


def relative_residual(
    matrix: SymmetricMatrix, t: Float[Tensor, "n outputs"], weights: Float[Tensor, "n outputs"], *, noise: float
) -> float:
    """The maximum over columns of ‖t − (K + σ²I) α‖ / ‖t‖, computed in float64.

    A lazy kernel is evaluated in float64 too, so that the rounding of its float32 entries counts as error.
    """
    t, weights = t.double(), weights.double()
    if isinstance(matrix, KernelMatrix):
        product = matrix.double() @ weights
    else:
        product = torch.cat([rows.double() @ weights for rows in matrix.split(BLOCK)])
    residual = (t - noise * weights - product).norm(dim=0)
    return float(_safe_divide(residual, t.norm(dim=0)).max())


def choose_solver(matrix: KernelMatrix, *, noise: float, memory: int | None = None, rank: int = RANK) -> LinearSolver:
    """`CholeskySolver` if two copies of the kernel fit into `memory` bytes, else `ConjugateGradients`.

    `memory` defaults to the free memory on the device of the points.
    """
    memory = free_bytes(matrix.x.device) if memory is None else memory
    if 2.2 * matrix.nbytes <= memory:
        return CholeskySolver.from_matrix(matrix.to_dense(), noise=noise)
    preconditioner = Preconditioner.from_matrix(matrix, rank=rank, noise=noise)
    return ConjugateGradients(matrix, noise, preconditioner, TOLERANCES[matrix.x.dtype])


def _safe_divide(numerator: Tensor, denominator: Tensor) -> Tensor:
    """The quotient, with 0 / 0 = 0, so that converged columns do not change."""
    safe = torch.where(denominator == 0, torch.ones_like(denominator), denominator)
    return torch.where(numerator == 0, numerator, numerator / safe)


def _check_noise(noise: float) -> None:
    if not (noise >= 0 and isfinite(noise)):
        raise ValueError(f"the noise variance σ² must be finite and non-negative; got noise={noise}")
