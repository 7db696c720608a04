"""Tensor rank and CP decomposition: a tensor as a sum of the fewest pure tensors (Diehl sec. 1.2).

    rank T = min{r : T = Σ_{i≤r} u_i⁽¹⁾ ⊗ … ⊗ u_i⁽ⁿ⁾}

Computing the rank is NP-hard. Unfoldings give lower bounds, an exact decomposition an upper bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_at_least_one


def unfolding(tensor: Float[Tensor, "..."], axis: int) -> Float[Tensor, "rows columns"]:
    """The matrix with `axis` as rows and all other axes, in order, as columns."""
    return tensor.movedim(axis, 0).reshape(tensor.shape[axis], -1)


def unfolding_ranks(tensor: Float[Tensor, "..."]) -> tuple[int, ...]:
    """The matrix rank of every unfolding, each a lower bound of the tensor rank (equal to it for order 2)."""
    _check_order(tensor)
    return tuple(int(torch.linalg.matrix_rank(unfolding(tensor, axis))) for axis in range(tensor.ndim))


def sum_of_pure_tensors(factors: Sequence[Float[Tensor, "*starts _ terms"]]) -> Float[Tensor, "..."]:
    """Σ_i u_i⁽¹⁾ ⊗ … ⊗ u_i⁽ⁿ⁾, where column i of the k-th factor is u_i⁽ᵏ⁾ (Diehl sec. 1.2)."""
    starts, sizes = factors[0].shape[:-2], [factor.shape[-2] for factor in factors]
    return (factors[0] @ _khatri_rao_product(factors[1:]).mT).reshape(*starts, *sizes)


def matrix_multiplication_tensor(size: int) -> Float[Tensor, "left right out"]:
    """T with (AB)_ik = Σ T_{(ij)(jk)(ik)} A_ij B_jk, for square matrices that are flattened row by row.

    Its rank is the minimal number of scalar multiplications for the product of two such matrices.
    """
    check_at_least_one(size=size)
    identity = torch.eye(size, dtype=torch.float64)
    return torch.einsum("jm,il,kn->ijmkln", identity, identity, identity).reshape([size**2] * 3)


@dataclass(frozen=True)
class CPDecomposition:
    """T ≈ Σ_i u_i⁽¹⁾ ⊗ … ⊗ u_i⁽ⁿ⁾, with factor matrices (u₁⁽ᵏ⁾ … u_r⁽ᵏ⁾) for every axis.

    >>> u, v = torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]])
    >>> CPDecomposition((u, v), torch.zeros(1)).full().tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """

    factors: tuple[Tensor, ...]  # one of shape (size, terms) per axis
    errors: Tensor  # ‖T − sum‖ / ‖T‖ after every sweep

    @property
    def error(self) -> float:
        return float(self.errors[-1])

    @property
    def largest_term(self) -> float:
        """The largest Frobenius norm of a term; it diverges if T is only a limit of tensors of lower rank."""
        return float(torch.stack([factor.norm(dim=0) for factor in self.factors]).prod(0).max())

    def full(self) -> Float[Tensor, "..."]:
        return sum_of_pure_tensors(self.factors)


def cp_decomposition(
    tensor: Float[Tensor, "..."],
    terms: int,
    *,
    generator: torch.Generator,
    num_starts: int = 16,
    max_sweeps: int = 500,
    damping: float = 1e-3,
    tolerance: float = 1e-14,
) -> CPDecomposition:
    """Approximation by `terms` pure tensors with alternating least squares, the best of several random starts.

        U⁽ᵏ⁾ ← argmin_U ‖T_(k) − U Kᵀ‖² + λ ‖U − U⁽ᵏ⁾‖²,   K the Khatri-Rao product of the other factors

    The factor of each axis in turn solves a linear least-squares problem. λ = `damping` times the error limits steps
    where columns of K are nearly collinear, and vanishes at an exact fit. All starts run in parallel until one has an
    error of at most `tolerance`, for at most `max_sweeps`; the result with the smallest error is returned.
    """
    _check_order(tensor)
    if terms < 1 or num_starts < 1 or max_sweeps < 1:
        raise ValueError(
            "terms, num_starts and max_sweeps must be at least 1; "
            f"got terms={terms}, num_starts={num_starts}, max_sweeps={max_sweeps}"
        )
    if not bool(tensor.isfinite().all()):
        raise ValueError("tensor must be finite; got NaN or infinite entries")
    norm = tensor.norm()
    if norm == 0:
        zeros = tuple(torch.zeros(side, terms, dtype=tensor.dtype) for side in tensor.shape)
        return CPDecomposition(zeros, torch.zeros(1, dtype=tensor.dtype))
    factors = [torch.randn(num_starts, side, terms, generator=generator).to(tensor) for side in tensor.shape]
    unfolded = [unfolding(tensor / norm, axis) for axis in range(tensor.ndim)]
    errors = [_relative_errors(unfolded[0], factors)]
    while len(errors) <= max_sweeps and float(errors[-1].min()) > tolerance:
        for axis in range(tensor.ndim):
            factors[axis] = _update_factor(unfolded[axis], factors, axis, damping * errors[-1])
        errors.append(_relative_errors(unfolded[0], factors))
    best = int(errors[-1].argmin())
    factors[0] = factors[0] * norm
    return CPDecomposition(tuple(factor[best] for factor in factors), torch.stack(errors)[:, best])


class RankBounds(NamedTuple):
    """Bounds of the rank: `lower` from unfoldings, `upper` from a decomposition found numerically.

    >>> RankBounds(lower=2, upper=3)
    RankBounds(lower=2, upper=3)
    """

    lower: int
    upper: int


def rank_bounds(
    tensor: Float[Tensor, "..."],
    *,
    generator: torch.Generator,
    num_starts: int = 16,
    max_sweeps: int = 500,
    tolerance: float = 1e-6,
) -> RankBounds:
    """The largest unfolding rank, and the fewest terms that fit up to `tolerance` (Diehl sec. 1.2).

    A limit of tensors of lower rank is approximated arbitrarily well by large terms that cancel; a fit is accepted only
    if its largest term is at most 100 times the norm of the tensor.
    """
    low = max(unfolding_ranks(tensor))
    high = prod(tensor.shape) // max(tensor.shape)  # one term for every fibre along the longest axis
    norm = float(tensor.norm())
    for terms in range(max(low, 1) if norm else high, high):
        decomposition = cp_decomposition(
            tensor, terms, generator=generator, num_starts=num_starts, max_sweeps=max_sweeps, tolerance=tolerance
        )
        if decomposition.error <= tolerance and decomposition.largest_term <= 100 * norm:
            return RankBounds(low, terms)
    return RankBounds(low, high if norm else 0)


def _khatri_rao_product(factors: Sequence[Tensor]) -> Tensor:
    """The columnwise Kronecker product: column i is u_i⁽¹⁾ ⊗ u_i⁽²⁾ ⊗ …, flattened."""
    return reduce(lambda left, right: (left[..., :, None, :] * right[..., None, :, :]).flatten(-3, -2), factors)


def _update_factor(unfolded: Tensor, factors: Sequence[Tensor], axis: int, damping: Tensor) -> Tensor:
    """The damped least-squares solution for the factor of one axis, with the others fixed."""
    others = _khatri_rao_product([*factors[:axis], *factors[axis + 1 :]])
    damp = damping[:, None, None] + torch.finfo(unfolded.dtype).eps
    gram = others.mT @ others + damp * torch.eye(others.shape[-1], dtype=unfolded.dtype, device=unfolded.device)
    target = unfolded @ others + damp * factors[axis]
    factor: Tensor = torch.linalg.solve(gram, target.mT).mT
    return factor


def _relative_errors(unfolded: Tensor, factors: Sequence[Tensor]) -> Tensor:
    """The distance of every start's sum from the tensor, given by its first unfolding."""
    distance: Tensor = torch.linalg.matrix_norm(factors[0] @ _khatri_rao_product(factors[1:]).mT - unfolded)
    return distance


def _check_order(tensor: Tensor) -> None:
    if tensor.ndim < 2:
        raise ValueError(f"tensor must have order 2 or more; got shape {tuple(tensor.shape)}")
