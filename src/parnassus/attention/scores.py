"""How well a key matches a query: one real number for each pair, before any softmax (Zhao sec. 11).

A score takes queries and keys and gives a matrix, a row for each query. Functions have nothing to learn, modules do.
"""

from collections.abc import Callable
from math import sqrt
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize

Score: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""score(queries, keys): (…, queries, d_q) and (…, keys, d_k) to (…, queries, keys)."""


def dot_score(
    query: Float[Tensor, "*batch queries width"], key: Float[Tensor, "*batch keys width"]
) -> Float[Tensor, "*batch queries keys"]:
    """a(q, k) = qᵀk, a matrix product for each element of the batch (Zhao sec. 11, Diehl sec. 2.2)."""
    return query @ key.mT


def scaled_score(
    query: Float[Tensor, "*batch queries width"], key: Float[Tensor, "*batch keys width"]
) -> Float[Tensor, "*batch queries keys"]:
    """a(q, k) = qᵀk / √d, of variance 1 if all entries are independent with mean 0 and variance 1 (Zhao sec. 11)."""
    return dot_score(query, key) / sqrt(query.shape[-1])


def cosine_score(
    query: Float[Tensor, "*batch queries width"], key: Float[Tensor, "*batch keys width"]
) -> Float[Tensor, "*batch queries keys"]:
    """a(q, k) = qᵀk / (‖q‖ ‖k‖), between −1 and 1; the zero vector scores 0 with everything."""
    return dot_score(normalize(query, dim=-1), normalize(key, dim=-1))


def gaussian_score(
    query: Float[Tensor, "*batch queries width"], key: Float[Tensor, "*batch keys width"], *, width: float = 1.0
) -> Float[Tensor, "*batch queries keys"]:
    """a(q, k) = −‖q − k‖² / 2σ², the logarithm of the Gaussian kernel (book sec. 10.1.3, Zhao sec. 11).

    Worked out as (qᵀk − ½‖k‖² − ½‖q‖²) / σ², a matrix product; the last term does not matter to a softmax.
    """
    if not width > 0:
        raise ValueError(f"the width must be positive; got width={width}")
    lengths = query.square().sum(-1)[..., :, None] + key.square().sum(-1)[..., None, :]
    return (dot_score(query, key) - lengths / 2).clamp(max=0) / width**2


class MetricScore(nn.Module):
    """a(q, k) = −½‖W (q − k)‖², a Gaussian kernel whose widths are learned (book sec. 10.1.3).

    W begins as the identity times 1/`width`. A row of zeros in Wᵀ makes a coordinate count for nothing.
    """

    def __init__(self, features: int, *, width: float = 1.0) -> None:
        super().__init__()
        if not width > 0:
            raise ValueError(f"the width must be positive; got width={width}")
        self.w = nn.Parameter(torch.eye(features) / width)

    def forward(
        self, query: Float[Tensor, "*batch queries features"], key: Float[Tensor, "*batch keys features"]
    ) -> Float[Tensor, "*batch queries keys"]:
        return gaussian_score(query @ self.w.mT, key @ self.w.mT)


class BilinearScore(nn.Module):
    """a(q, k) = qᵀ M k with a learned M, for queries and keys of any two widths (Zhao sec. 11).

    M begins with independent normal entries of variance 1/(d_q d_k): with unit entries in q and k the score then has
    variance 1. M = W_qᵀ W_k is what a head of attention learns (book sec. 10.1.3); M = 1/√d is `scaled_score`.
    """

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()
        if min(query_width, key_width) < 1:
            raise ValueError(f"widths must be at least 1; got {query_width} of queries, {key_width} of keys")
        self.m = nn.Parameter(torch.randn(query_width, key_width) / (query_width * key_width) ** 0.5)

    def forward(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*batch keys d_k"]
    ) -> Float[Tensor, "*batch queries keys"]:
        return dot_score(query @ self.m, key)


class AdditiveScore(nn.Module):
    """a(q, k) = w_vᵀ tanh(W_q q + W_k k), so |a| ≤ ‖w_v‖₁ (Zhao sec. 11, Bahdanau et al. 2015).

    A network with one hidden layer and no biases on query and key side by side. The notes hope for savings; but it
    holds `hidden` numbers for each pair where a product holds one.
    """

    def __init__(self, query_width: int, key_width: int, hidden: int) -> None:
        super().__init__()
        if min(query_width, key_width, hidden) < 1:
            raise ValueError(f"widths must be at least 1; got {query_width=}, {key_width=}, {hidden=}")
        self.query = nn.Linear(query_width, hidden, bias=False)
        self.key = nn.Linear(key_width, hidden, bias=False)
        self.value = nn.Linear(hidden, 1, bias=False)

    def forward(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*batch keys d_k"]
    ) -> Float[Tensor, "*batch queries keys"]:
        pairs: Tensor = self.value(torch.tanh(self.query(query)[..., :, None, :] + self.key(key)[..., None, :, :]))
        return pairs.squeeze(-1)
