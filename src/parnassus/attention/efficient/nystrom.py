"""Nyströmformer: the n × n weights approximated from a few landmark queries and keys (Xiong et al. 2021)."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool1d

from parnassus.attention.core.dot_product import attention_weights, fused_attention
from parnassus.errors import check_non_negative


def landmarks(x: Float[Tensor, "*batch time width"], count: int) -> Float[Tensor, "*batch {count} width"]:
    """The means of `count` consecutive segments of nearly equal length (segment-means landmarks)."""
    if not 1 <= count <= x.shape[-2]:
        raise ValueError(f"count must lie between 1 and the length {x.shape[-2]}; got count={count}")
    rows = x.reshape(-1, *x.shape[-2:])
    return adaptive_avg_pool1d(rows.mT, count).mT.reshape(*x.shape[:-2], count, x.shape[-1])


def iterative_pseudo_inverse(matrix: Float[Tensor, "*batch n n"], *, steps: int = 6) -> Float[Tensor, "*batch n n"]:
    """A⁺ by matrix products only, faster on a GPU than a singular value decomposition (Razavi et al. 2014).

        Z ← ¼ Z (13 I − A Z (15 I − A Z (7 I − A Z))),   Z₀ = Aᵀ / (‖A‖₁ ‖A‖_∞)

    The convergence is cubic once the error is below 1; small singular values need many steps.
    """
    check_non_negative(steps=steps)
    absolute = matrix.abs()
    norms = absolute.sum(-1).amax(-1) * absolute.sum(-2).amax(-1)  # ‖A‖₁ ‖A‖_∞ ≥ the largest singular value squared
    inverse = matrix.mT / norms[..., None, None]
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    for _ in range(steps):
        product = matrix @ inverse
        inner = 15 * identity - product @ (7 * identity - product)
        inverse = inverse @ (13 * identity - product @ inner) / 4
    return inverse


def nystrom_attention(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    value: Float[Tensor, "*batch keys out"],
    *,
    num_landmarks: int = 32,
    steps: int = 6,
) -> Float[Tensor, "*batch queries out"]:
    """softmax(Q K̃ᵀ) softmax(Q̃ K̃ᵀ)⁺ softmax(Q̃ Kᵀ) V with landmarks Q̃, K̃: O(n · landmarks) (Diehl sec. 4.1).

    With a landmark at every position it is exact, S S⁺ S = S. Weights may be negative; there is no causal form, since
    the landmarks are means over past and future.
    """
    query_landmarks, key_landmarks = landmarks(query, num_landmarks), landmarks(key, num_landmarks)
    core = iterative_pseudo_inverse(attention_weights(query_landmarks, key_landmarks), steps=steps)
    return attention_weights(query, key_landmarks) @ (core @ fused_attention(query_landmarks, key, value))
