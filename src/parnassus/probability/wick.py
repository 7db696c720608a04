"""Moments of centred normal vectors: sums over pairings, after Isserlis 1918 and Wick 1950 (Diehl thm. 5.5)."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.gaussian import Gaussian

Pairing: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs {i, j}, i < j, which together have every place once."""


def pairings(count: int) -> Iterator[Pairing]:
    """All ways to part 0, …, count − 1 into pairs: (count − 1)!! of them, none if count is odd (Diehl thm. 5.5)."""
    if count < 0:
        raise ValueError(f"count must not be negative; got count={count}")
    yield from _pairings_of(tuple(range(count)))


def _pairings_of(places: tuple[int, ...]) -> Iterator[Pairing]:
    if not places:
        yield ()
        return
    first, *others = places
    for partner in others:
        rest = tuple(place for place in others if place != partner)
        yield from (((first, partner), *pairing) for pairing in _pairings_of(rest))


def moment_by_pairings(covariance: Float[Tensor, "dim dim"], indices: Sequence[int]) -> Float[Tensor, ""]:
    """E[X_{i₁} ⋯ X_{iₙ}] = Σ_pairings ∏_{{k,l}} Σ_{i_k i_l} for X ~ N(0, Σ) (Diehl thm. 5.5).

    Indices may repeat: E[X₁⁴] is the moment of (0, 0, 0, 0).
    """
    chosen = _chosen(covariance, indices)
    terms = [prod((chosen[i, j] for i, j in pairing), start=chosen.new_ones(())) for pairing in pairings(len(indices))]
    return torch.stack(terms).sum() if terms else chosen.new_zeros(())


def moment_by_recursion(covariance: Float[Tensor, "dim dim"], indices: Sequence[int]) -> Float[Tensor, ""]:
    """The same moment, peeled off one factor at a time (Diehl thm. 5.5).

        E[X₁ X₂ ⋯ Xₙ] = Σ_{j>1} E[X₁ X_j] E[∏_{i≠1,j} X_i]

    Each set of remaining factors is worked out once: 2ⁿ steps where the pairings are (n − 1)!!.
    """
    chosen = _chosen(covariance, indices)
    known: dict[tuple[int, ...], Tensor] = {(): chosen.new_ones(())}

    def moment(places: tuple[int, ...]) -> Tensor:
        if places not in known:
            first, *others = places
            parts = [chosen[first, j] * moment(tuple(i for i in others if i != j)) for j in others]
            known[places] = torch.stack(parts).sum() if parts else chosen.new_zeros(())
        return known[places]

    return moment(tuple(range(len(indices))))


def moment_by_differentiation(law: Gaussian, indices: Sequence[int]) -> Float[Tensor, ""]:
    """The same moment, of any normal law, as a derivative at a = 0 (Diehl thm. 5.5, proof A).

    E[X_{i₁} ⋯ X_{iₙ}] = ∂ⁿ/∂a_{i₁}⋯∂a_{iₙ} E exp⟨a, X⟩
    """
    _chosen(law.covariance, indices)
    with torch.enable_grad():
        a = torch.zeros_like(law.mean, requires_grad=True)
        value = law.exponential_moment(a)
        for index in indices:
            (gradient,) = torch.autograd.grad(value, a, create_graph=True)
            value = gradient[index]
    return value.detach()


def _chosen(covariance: Float[Tensor, "dim dim"], indices: Sequence[int]) -> Float[Tensor, "count count"]:
    """The covariances of the factors, by their places in the product."""
    dim = len(covariance)
    if not all(0 <= index < dim for index in indices):
        raise ValueError(f"indices must lie between 0 and {dim - 1}; got {list(indices)}")
    places = torch.tensor(list(indices), dtype=torch.long, device=covariance.device)
    return covariance[places[:, None], places]
