"""Nyströmformer: the n × n weights rebuilt from what a few landmarks see and are seen by (Xiong et al. 2021)."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool1d

from parnassus.attention.dot_product import attend, attention_weights


def landmarks(x: Float[Tensor, "*batch time width"], count: int) -> Float[Tensor, "*batch {count} width"]:
    """The means of `count` stretches that cover the sequence and are as equal in length as may be."""
    if not 1 <= count <= x.shape[-2]:
        raise ValueError(f"landmarks must number between 1 and the {x.shape[-2]} places; got count={count}")
    rows = x.reshape(-1, *x.shape[-2:])
    return adaptive_avg_pool1d(rows.mT, count).mT.reshape(*x.shape[:-2], count, x.shape[-1])


def pseudo_inverse(matrix: Float[Tensor, "*batch n n"], *, steps: int = 6) -> Float[Tensor, "*batch n n"]:
    """A⁺ by products alone, which a GPU does faster than a singular value decomposition (Razavi et al. 2014).

        Z ← ¼ Z (13 I − A Z (15 I − A Z (7 I − A Z))),   Z₀ = Aᵀ / (‖A‖₁ ‖A‖_∞)

    The error is raised to its third power at every step, once it is below 1; small singular values need many steps.
    """
    if steps < 0:
        raise ValueError(f"steps must not be negative; got steps={steps}")
    size = matrix.abs()
    widest = size.sum(-1).amax(-1) * size.sum(-2).amax(-1)  # both norms, which bound the largest singular value
    inverse = matrix.mT / widest[..., None, None]
    one = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    for _ in range(steps):
        near = matrix @ inverse
        inverse = inverse @ (13 * one - near @ (15 * one - near @ (7 * one - near))) / 4
    return inverse


def nystrom_attention(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    value: Float[Tensor, "*batch keys out"],
    *,
    count: int = 32,
    steps: int = 6,
) -> Float[Tensor, "*batch queries out"]:
    """softmax(Q K̃ᵀ) softmax(Q̃ K̃ᵀ)⁺ softmax(Q̃ Kᵀ) V with `count` landmarks Q̃, K̃: O(n · count) (Diehl sec. 4.1).

    With a landmark at every place it is exact, S S⁺ S = S. Weights may be negative; there is no causal form, for the
    landmarks are means over past and future.
    """
    asked, offered = landmarks(query, count), landmarks(key, count)
    core = pseudo_inverse(attention_weights(asked, offered), steps=steps)
    return attention_weights(query, offered) @ (core @ attend(asked, key, value))
