"""The rank of a tensor: the least number of pure tensors that add up to it (Diehl sec. 1.2).

    rank T = min{r : T = Σ_{i≤r} u_i⁽¹⁾ ⊗ … ⊗ u_i⁽ⁿ⁾}

No method finds it in general. Unfoldings bound it from below, a decomposition that fits bounds it from above.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


def unfolding(tensor: Float[Tensor, "..."], axis: int) -> Float[Tensor, "rows columns"]:
    """The matrix whose rows run along `axis` and whose columns run along all other axes in order."""
    return tensor.movedim(axis, 0).reshape(tensor.shape[axis], -1)


def unfolding_ranks(tensor: Float[Tensor, "..."]) -> tuple[int, ...]:
    """The matrix rank of every unfolding: none exceeds the rank of the tensor, for order 2 both equal it."""
    _require_order(tensor)
    return tuple(int(torch.linalg.matrix_rank(unfolding(tensor, axis))) for axis in range(tensor.ndim))


def sum_of_pure_tensors(factors: Sequence[Float[Tensor, "*starts _ terms"]]) -> Float[Tensor, "..."]:
    """Σ_i u_i⁽¹⁾ ⊗ … ⊗ u_i⁽ⁿ⁾, where column i of the k-th factor is u_i⁽ᵏ⁾ (Diehl sec. 1.2)."""
    starts, sizes = factors[0].shape[:-2], [factor.shape[-2] for factor in factors]
    return (factors[0] @ _columnwise_product(factors[1:]).mT).reshape(*starts, *sizes)


def matrix_product_tensor(size: int) -> Float[Tensor, "left right out"]:
    """T with (AB)_ik = Σ T_{(ij)(jk)(ik)} A_ij B_jk, for square matrices that are flattened row by row.

    Its rank is the least number of multiplications in which two such matrices can be multiplied.
    """
    if size < 1:
        raise ValueError(f"matrices have at least one row; got size={size}")
    same = torch.eye(size, dtype=torch.float64)
    return torch.einsum("jm,il,kn->ijmkln", same, same, same).reshape([size**2] * 3)


@dataclass(frozen=True)
class Decomposition:
    """T ≈ Σ_i u_i⁽¹⁾ ⊗ … ⊗ u_i⁽ⁿ⁾, by the factors (u₁⁽ᵏ⁾ … u_r⁽ᵏ⁾) of every axis."""

    factors: tuple[Tensor, ...]  # one (size, terms) an axis
    errors: Tensor  # ‖T − sum‖ / ‖T‖ after every sweep

    @property
    def error(self) -> float:
        return float(self.errors[-1])

    @property
    def largest_term(self) -> float:
        """The largest Frobenius norm of a term; it grows without end where terms cancel to reach a limit."""
        return float(torch.stack([factor.norm(dim=0) for factor in self.factors]).prod(0).max())

    def full(self) -> Float[Tensor, "..."]:
        return sum_of_pure_tensors(self.factors)


def decompose(
    tensor: Float[Tensor, "..."],
    terms: int,
    *,
    generator: torch.Generator,
    starts: int = 16,
    sweeps: int = 500,
    damping: float = 1e-3,
    tolerance: float = 1e-14,
) -> Decomposition:
    """The best sum of `terms` pure tensors that alternating least squares finds, from several random starts.

        U⁽ᵏ⁾ ← argmin_U ‖T_(k) − U Kᵀ‖² + λ ‖U − U⁽ᵏ⁾‖²,   K the columnwise product of the other factors

    Each axis in turn is a linear least-squares problem. λ = `damping` times the error keeps steps short where columns
    of K nearly agree, and vanishes at a fit. All starts descend at once until one errs by no more than
    `tolerance`, or for `sweeps`; the one of least error is kept.
    """
    _require_order(tensor)
    if terms < 1 or starts < 1 or sweeps < 1:
        raise ValueError(
            f"need at least one term, start and sweep; got terms={terms}, starts={starts}, sweeps={sweeps}"
        )
    if not bool(tensor.isfinite().all()):
        raise ValueError("a tensor to decompose must be finite; got NaN or infinite entries")
    size = tensor.norm()
    if size == 0:
        zeros = tuple(torch.zeros(side, terms, dtype=tensor.dtype) for side in tensor.shape)
        return Decomposition(zeros, torch.zeros(1, dtype=tensor.dtype))
    factors = [torch.randn(starts, side, terms, generator=generator).to(tensor) for side in tensor.shape]
    unfolded = [unfolding(tensor / size, axis) for axis in range(tensor.ndim)]
    errors = [_errors(unfolded[0], factors)]
    while len(errors) <= sweeps and float(errors[-1].min()) > tolerance:
        for axis in range(tensor.ndim):
            factors[axis] = _improved(unfolded[axis], factors, axis, damping * errors[-1])
        errors.append(_errors(unfolded[0], factors))
    best = int(errors[-1].argmin())
    factors[0] = factors[0] * size
    return Decomposition(tuple(factor[best] for factor in factors), torch.stack(errors)[:, best])


class RankBounds(NamedTuple):
    """The rank lies between `at_least`, which is certain, and `at_most`, for which a decomposition was found."""

    at_least: int
    at_most: int


def rank_bounds(
    tensor: Float[Tensor, "..."],
    *,
    generator: torch.Generator,
    starts: int = 16,
    sweeps: int = 500,
    tolerance: float = 1e-6,
) -> RankBounds:
    """Bounds on the rank: the largest unfolding rank, and the fewest terms that fit up to `tolerance` (Diehl sec. 1.2).

    A limit of tensors of lower rank comes close with huge terms that cancel, and no closer than that: a fit counts
    only when its largest term is at most 100 times the tensor.
    """
    low = max(unfolding_ranks(tensor))
    high = prod(tensor.shape) // max(tensor.shape)  # one term for every fibre along the longest axis
    size = float(tensor.norm())
    for terms in range(max(low, 1) if size else high, high):
        found = decompose(tensor, terms, generator=generator, starts=starts, sweeps=sweeps, tolerance=tolerance)
        if found.error <= tolerance and found.largest_term <= 100 * size:
            return RankBounds(low, terms)
    return RankBounds(low, high if size else 0)


def _columnwise_product(factors: Sequence[Tensor]) -> Tensor:
    """Column i is u_i⁽¹⁾ ⊗ u_i⁽²⁾ ⊗ …, flattened (the Khatri-Rao product)."""
    return reduce(lambda left, right: (left[..., :, None, :] * right[..., None, :, :]).flatten(-3, -2), factors)


def _improved(unfolded: Tensor, factors: Sequence[Tensor], axis: int, damping: Tensor) -> Tensor:
    """The factor of one axis that fits best while the others stay."""
    others = _columnwise_product([*factors[:axis], *factors[axis + 1 :]])
    damp = damping[:, None, None] + torch.finfo(unfolded.dtype).eps
    gram = others.mT @ others + damp * torch.eye(others.shape[-1]).to(unfolded)
    wanted = unfolded @ others + damp * factors[axis]
    improved: Tensor = torch.linalg.solve(gram, wanted.mT).mT
    return improved


def _errors(unfolded: Tensor, factors: Sequence[Tensor]) -> Tensor:
    """How far the sum of every start is from the tensor, which is unfolded along its first axis."""
    distance: Tensor = torch.linalg.matrix_norm(factors[0] @ _columnwise_product(factors[1:]).mT - unfolded)
    return distance


def _require_order(tensor: Tensor) -> None:
    if tensor.ndim < 2:
        raise ValueError(f"rank needs a tensor of order 2 or more; got shape {tuple(tensor.shape)}")
