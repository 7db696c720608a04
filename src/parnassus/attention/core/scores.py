"""Attention scores a(q, k), the logits of the attention weights (Zhao sec. 11).

A score maps queries and keys to a matrix with one row per query. Functions have no parameters, modules do.
"""

from collections.abc import Callable
from math import sqrt
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from parnassus.errors import check_positive
from parnassus.probability import squared_distances

AttentionScore: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""score(queries, keys): (…, queries, d_q) and (…, keys, d_k) to (…, queries, keys)."""


def dot_score(
    query: Float[Tensor, "*batch queries width"], key: Float[Tensor, "*batch keys width"]
) -> Float[Tensor, "*batch queries keys"]:
    """a(q, k) = qᵀk, as a batched matrix product (Zhao sec. 11, Diehl sec. 2.2)."""
    return query @ key.mT


def scaled_score(
    query: Float[Tensor, "*batch queries width"], key: Float[Tensor, "*batch keys width"]
) -> Float[Tensor, "*batch queries keys"]:
    """a(q, k) = qᵀk / √d, with variance 1 for independent entries of mean 0 and variance 1 (Zhao sec. 11)."""
    return dot_score(query, key) / sqrt(query.shape[-1])


def cosine_score(
    query: Float[Tensor, "*batch queries width"], key: Float[Tensor, "*batch keys width"]
) -> Float[Tensor, "*batch queries keys"]:
    """a(q, k) = qᵀk / (‖q‖ ‖k‖), between −1 and 1; 0 for the zero vector."""
    return dot_score(normalize(query, dim=-1), normalize(key, dim=-1))


def gaussian_score(
    query: Float[Tensor, "*batch queries width"], key: Float[Tensor, "*batch keys width"], *, sigma: float = 1.0
) -> Float[Tensor, "*batch queries keys"]:
    """a(q, k) = −‖q − k‖² / 2σ², the logarithm of the Gaussian kernel (book sec. 10.1.3, Zhao sec. 11).

    It is (qᵀk − ½‖k‖² − ½‖q‖²) / σ², where the last term cancels in a softmax.
    """
    check_positive(sigma=sigma)
    return -squared_distances(query, key) / (2 * sigma**2)


class MahalanobisScore(nn.Module):
    """a(q, k) = −½‖W (q − k)‖², the log of a Gaussian kernel with a learned metric (book sec. 10.1.3).

    W is initialised to the identity divided by `sigma`. A zero row of Wᵀ removes a coordinate.

    >>> MahalanobisScore(4)(torch.zeros(2, 4), torch.zeros(3, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(self, features: int, *, sigma: float = 1.0) -> None:
        super().__init__()
        check_positive(sigma=sigma)
        self.w = nn.Parameter(torch.eye(features) / sigma)

    def forward(
        self, query: Float[Tensor, "*batch queries features"], key: Float[Tensor, "*batch keys features"]
    ) -> Float[Tensor, "*batch queries keys"]:
        return gaussian_score(query @ self.w.mT, key @ self.w.mT)


class BilinearScore(nn.Module):
    """a(q, k) = qᵀ M k with a learned M; queries and keys may differ in width (Zhao sec. 11).

    The entries of M are sampled from N(0, 1/(d_q d_k)), so that the score of q and k with entries ±1 has variance 1.
    An attention head learns M = W_qᵀ W_k (book sec. 10.1.3); M = I/√d is `scaled_score`.

    >>> BilinearScore(4, 6)(torch.zeros(2, 4), torch.zeros(3, 6)).shape
    torch.Size([2, 3])
    """

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()
        if min(query_width, key_width) < 1:
            raise ValueError(f"widths must be at least 1; got {query_width=}, {key_width=}")
        self.m = nn.Parameter(torch.randn(query_width, key_width) / (query_width * key_width) ** 0.5)

    def forward(
        self, query: Float[Tensor, "*batch queries d_q"], key: Float[Tensor, "*batch keys d_k"]
    ) -> Float[Tensor, "*batch queries keys"]:
        return dot_score(query @ self.m, key)


class AdditiveScore(nn.Module):
    """a(q, k) = w_vᵀ tanh(W_q q + W_k k), so |a| ≤ ‖w_v‖₁ (Zhao sec. 11, Bahdanau et al. 2015).

    A network with one hidden layer and no biases on the concatenated query and key. The notes expect it to be cheaper
    than a product; but it stores `hidden` activations per pair where a product stores one.

    >>> AdditiveScore(4, 6, 8)(torch.zeros(2, 4), torch.zeros(3, 6)).shape
    torch.Size([2, 3])
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
