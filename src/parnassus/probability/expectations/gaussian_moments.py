"""Moments of centred Gaussian vectors by Isserlis' (Wick's) theorem (Diehl thm. 5.5)."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_non_negative
from parnassus.probability.distributions.gaussian import Gaussian

Pairing: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs {i, j}, i < j, that contain every index exactly once."""


def pairings(count: int) -> Iterator[Pairing]:
    """All partitions of 0, …, count − 1 into pairs: (count − 1)!! of them, none if count is odd (Diehl thm. 5.5)."""
    check_non_negative(count=count)
    yield from _pairings_of(tuple(range(count)))


def _pairings_of(indices: tuple[int, ...]) -> Iterator[Pairing]:
    if not indices:
        yield ()
        return
    first, *others = indices
    for partner in others:
        rest = tuple(index for index in others if index != partner)
        yield from (((first, partner), *pairing) for pairing in _pairings_of(rest))


def moment_by_pairings(covariance: Float[Tensor, "dim dim"], indices: Sequence[int]) -> Float[Tensor, ""]:
    """E[X_{i₁} ⋯ X_{iₙ}] = Σ_pairings ∏_{{k,l}} Σ_{i_k i_l} for X ~ N(0, Σ) (Diehl thm. 5.5).

    Indices may repeat: E[X₁⁴] is the moment of (0, 0, 0, 0).
    """
    S = _factor_covariance(covariance, indices)
    terms = [prod((S[i, j] for i, j in pairing), start=S.new_ones(())) for pairing in pairings(len(indices))]
    return torch.stack(terms).sum() if terms else S.new_zeros(())


def moment_by_recursion(covariance: Float[Tensor, "dim dim"], indices: Sequence[int]) -> Float[Tensor, ""]:
    """The moment of `gaussian_moment`, by recursion over the partner of the first factor (Diehl thm. 5.5).

        E[X₁ X₂ ⋯ Xₙ] = Σ_{j>1} E[X₁ X_j] E[∏_{i≠1,j} X_i]

    Each set of remaining factors is evaluated once: 2ⁿ steps instead of (n − 1)!! pairings.
    """
    S = _factor_covariance(covariance, indices)
    cache: dict[tuple[int, ...], Tensor] = {(): S.new_ones(())}

    def moment(factors: tuple[int, ...]) -> Tensor:
        if factors not in cache:
            first, *others = factors
            terms = [S[first, j] * moment(tuple(i for i in others if i != j)) for j in others]
            cache[factors] = torch.stack(terms).sum() if terms else S.new_zeros(())
        return cache[factors]

    return moment(tuple(range(len(indices))))


def moment_by_differentiation(distribution: Gaussian, indices: Sequence[int]) -> Float[Tensor, ""]:
    """The moment of any Gaussian, as a derivative of its moment generating function (Diehl thm. 5.5, proof A).

    E[X_{i₁} ⋯ X_{iₙ}] = ∂ⁿ/∂a_{i₁}⋯∂a_{iₙ} E exp⟨a, X⟩ at a = 0
    """
    _factor_covariance(distribution.covariance, indices)
    with torch.enable_grad():
        a = torch.zeros_like(distribution.mean, requires_grad=True)
        value = distribution.moment_generating_function(a)
        for index in indices:
            (gradient,) = torch.autograd.grad(value, a, create_graph=True)
            value = gradient[index]
    return value.detach()


def _factor_covariance(covariance: Float[Tensor, "dim dim"], indices: Sequence[int]) -> Float[Tensor, "count count"]:
    """The covariance matrix of the factors of the product."""
    dim = len(covariance)
    if not all(0 <= index < dim for index in indices):
        raise ValueError(f"indices must lie between 0 and {dim - 1}; got {list(indices)}")
    index = torch.tensor(list(indices), dtype=torch.long, device=covariance.device)
    return covariance[index[:, None], index]
