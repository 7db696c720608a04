"""Solving (K + σ²I) α = t: by Cholesky's root where memory holds it, else by conjugate gradients (book eq. 15.9)."""

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.kernels.blocks import BLOCK, KernelMatrix, free_bytes
from parnassus.kernels.jitter import jittered_cholesky

RANK = 200
"""Columns of a preconditioner: they cost that many rows of the kernel, and each product with it."""


Symmetric: TypeAlias = Tensor | KernelMatrix
"""A symmetric n × n matrix, held or not."""
TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-10}
"""Of ‖r‖ / ‖t‖, what each type can meet."""


class Solution(NamedTuple):
    """α with (K + σ²I) α = t, and how well: the worst column's residual, the steps taken, the jitter added to σ²."""

    weights: Float[Tensor, "n *outputs"]
    residual: float
    """The most over columns of ‖t − (K + σ²I) α‖ / ‖t‖, measured in float64 at the end."""
    steps: int
    jitter: float


@runtime_checkable
class Solver(Protocol):
    """Something that knows (K + σ²I)⁻¹ well enough to apply it."""

    def solve(self, t: Float[Tensor, "n *outputs"]) -> Solution: ...

    def explained(self, k: Float[Tensor, "n m"]) -> Float[Tensor, " m"]:
        """kᵀ (K + σ²I)⁻¹ k for each column k: how far what was seen lowers a variance (book eq. 15.10)."""
        ...


@dataclass(frozen=True, eq=False)
class CholeskySolver:
    """By the root R Rᵀ = K + (σ² + jitter) I: exact, in n³/3 products and twice K's memory."""

    matrix: Float[Tensor, "n n"]
    noise: float
    root: Float[Tensor, "n n"]
    jitter: float

    @classmethod
    def of(cls, matrix: Float[Tensor, "n n"], *, noise: float) -> "CholeskySolver":
        """Factor K + σ²I. The diagonal of `matrix` is changed meanwhile and put back: no third copy is made."""
        _demand_noise(noise)
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

    def explained(self, k: Float[Tensor, "n m"]) -> Float[Tensor, " m"]:
        white: Tensor = torch.linalg.solve_triangular(self.root, k, upper=False)
        return white.square_().sum(0)


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """P = L Lᵀ + δ I near K + σ²I, with L of few columns: P⁻¹ r = (r − L (δI + LᵀL)⁻¹ Lᵀ r) / δ (Woodbury)."""

    factor: Float[Tensor, "n rank"]
    shift: float
    root: Float[Tensor, "rank rank"]

    @classmethod
    def of(cls, matrix: Symmetric, *, rank: int = RANK, noise: float) -> "Preconditioner":
        """L by Cholesky's algorithm with pivots: each step takes the row of the largest variance left.

        δ is σ² and the mean of what the diagonal still holds, so that P has the trace of K + σ²I
        (Gardner et al. 2018, with δ = σ²).
        """
        factor, left = pivoted_cholesky(matrix, rank)
        shift = noise + float(left.mean())
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
    """By products with K alone, which need not be held: as many steps as the accuracy asked for takes.

    p ← z + β p with z = P⁻¹ r, α ← α + a p, r ← r − a (K + σ²I) p; every column of t has its own a and β.
    """

    matrix: Symmetric
    noise: float
    preconditioner: Preconditioner | None = None
    tolerance: float = 1e-10
    """Of ‖r‖ / ‖t‖, as the recursion has it."""
    most: int = 1_000

    def solve(self, t: Float[Tensor, "n *outputs"]) -> Solution:
        """The residual reported is measured anew at the end, not the recursion's."""
        _demand_noise(self.noise)
        columns = t.reshape(len(t), -1)
        weights, steps = self._descend(columns)
        error = relative_residual(self.matrix, columns, weights, noise=self.noise)
        return Solution(weights.reshape(t.shape), error, steps, 0.0)

    def explained(self, k: Float[Tensor, "n m"]) -> Float[Tensor, " m"]:
        return (k * self.solve(k).weights).sum(0)

    @torch.no_grad()
    def _descend(self, t: Tensor) -> tuple[Tensor, int]:
        alpha, r, step = torch.zeros_like(t), t.clone(), 0
        z = self._near(r)
        p, rz = z, (r * z).sum(0)
        goal = self.tolerance * t.norm(dim=0)
        while step < self.most and bool((r.norm(dim=0) > goal).any()):
            step += 1
            Kp = self.matrix @ p + self.noise * p
            curvature = (p * Kp).sum(0)
            if not bool((curvature >= 0).all()):
                raise ValueError(
                    f"K + σ²I must be positive definite; at step {step} a direction p has pᵀ(K + σ²I)p = "
                    f"{float(curvature.min()):.3g}: give more noise than noise={self.noise:g}, or compute in float64"
                )
            a = _quotient(rz, curvature)
            alpha += a * p
            r -= a * Kp
            z = self._near(r)
            before, rz = rz, (r * z).sum(0)
            p = z + _quotient(rz, before) * p
        return alpha, step

    def _near(self, r: Tensor) -> Tensor:
        return r.clone() if self.preconditioner is None else self.preconditioner.solve(r)


def pivoted_cholesky(matrix: Symmetric, rank: int = RANK) -> tuple[Float[Tensor, "n found"], Float[Tensor, " n"]]:
    """L with K ≈ L Lᵀ, from `rank` rows of K or fewer where they say it all, and what is left of the diagonal."""
    if rank < 1:
        raise ValueError(f"a factor needs at least one column; got rank={rank}")
    left = matrix.diagonal().clone()
    floor = len(left) * torch.finfo(left.dtype).eps * float(left.max())
    rows = left.new_zeros(min(rank, len(left)), len(left))
    for step in range(len(rows)):
        pivot = int(left.argmax())
        variance = float(left[pivot])
        if variance <= floor:
            rows = rows[:step]
            break
        rows[step] = (matrix[pivot] - rows[:step, pivot] @ rows[:step]) / sqrt(variance)
        left = (left - rows[step].square()).clamp_(min=0)
        left[pivot] = 0
    return rows.mT, left


def relative_residual(
    matrix: Symmetric, t: Float[Tensor, "n outputs"], weights: Float[Tensor, "n outputs"], *, noise: float
) -> float:
    """The most over columns of ‖t − (K + σ²I) α‖ / ‖t‖, in float64 whatever the type in which α was found.

    A kernel that is not held is worked out in float64 too, so that the rounding of its float32 entries counts as error.
    """
    t, weights = t.double(), weights.double()
    if isinstance(matrix, KernelMatrix):
        product = matrix.double() @ weights
    else:
        product = torch.cat([rows.double() @ weights for rows in matrix.split(BLOCK)])
    missing = (t - noise * weights - product).norm(dim=0)
    return float(_quotient(missing, t.norm(dim=0)).max())


def solver_for(matrix: KernelMatrix, *, noise: float, memory: int | None = None, rank: int = RANK) -> Solver:
    """Cholesky's where two copies of the kernel and a bit fit into `memory` bytes, or else conjugate gradients.

    Without `memory`, what the device of the points has free.
    """
    memory = free_bytes(matrix.x.device) if memory is None else memory
    if 2.2 * matrix.bytes <= memory:
        return CholeskySolver.of(matrix.whole(), noise=noise)
    preconditioner = Preconditioner.of(matrix, rank=rank, noise=noise)
    return ConjugateGradients(matrix, noise, preconditioner, TOLERANCES[matrix.x.dtype])


def _quotient(above: Tensor, below: Tensor) -> Tensor:
    """The quotient, and 0 where both are: a column that is solved stands still."""
    return torch.where(above == 0, above, above / torch.where(below == 0, torch.ones_like(below), below))


def _demand_noise(noise: float) -> None:
    if not (noise >= 0 and isfinite(noise)):
        raise ValueError(f"the noise variance σ² must not be negative, and finite; got noise={noise}")
