"""Scaled dot-product attention (book eqs. 10.4-10.5, Diehl sec. 2.2)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from parnassus.attention.core.masks import causal_mask, zero_masked


class AttentionOutput(NamedTuple):
    """The output of an attention layer and its attention weights.

    >>> AttentionOutput(torch.zeros(1, 2, 4), torch.full((1, 2, 3), 1 / 3)).weights.sum(-1)
    tensor([[1., 1.]])
    """

    output: Float[Tensor, "*batch queries out"]
    weights: Float[Tensor, "*batch queries keys"]


def masked_softmax(
    scores: Float[Tensor, "*shape keys"], mask: Bool[Tensor, "*mask_shape keys"] | None = None
) -> Float[Tensor, "*shape keys"]:
    """α_j = exp(a_j) / Σ_i exp(a_i) over the keys whose mask is True; all others get weight 0 (Zhao sec. 11).

    For a row whose keys are all masked the softmax is undefined; its weights are 0, never NaN.
    """
    if mask is None:
        return scores.softmax(-1)
    masked = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return masked.softmax(-1).masked_fill(~mask, 0.0)


def zero_masked_keys(
    x: Float[Tensor, "*batch keys width"], mask: Bool[Tensor, "*mask_batch _queries keys"]
) -> Float[Tensor, "*batch keys width"]:
    """Keys or values with 0 at the keys masked for all queries: a weight of 0 does not prevent NaN (Zhao sec. 11)."""
    return zero_masked(x, mask.any(-2))


def attention_weights(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    mask: Bool[Tensor, "*mask_batch _queries keys"] | None = None,
    *,
    scale: float | None = None,
    bias: Float[Tensor, "*bias_batch queries keys"] | None = None,
) -> Float[Tensor, "*batch queries keys"]:
    """softmax(Q Kᵀ · scale + bias) over the keys; scale is 1/√width by default (book eq. 10.4).

    (Diehl sec. 2.2) and (book eq. 10.4) print no scale, which is scale = 1.
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    key = key if mask is None else zero_masked_keys(key, mask)
    scores = query @ key.mT * scale
    return masked_softmax(scores if bias is None else scores + bias, mask)


def attention(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    value: Float[Tensor, "*batch keys out"],
    mask: Bool[Tensor, "*mask_batch _queries keys"] | None = None,
    *,
    scale: float | None = None,
    bias: Float[Tensor, "*bias_batch queries keys"] | None = None,
) -> AttentionOutput:
    """softmax(Q Kᵀ · scale + bias) V and its weights (book eq. 10.5, Diehl sec. 2.2)."""
    weights = attention_weights(query, key, mask, scale=scale, bias=bias)
    value = value if mask is None else zero_masked_keys(value, mask)
    return AttentionOutput(weights @ value, weights)


def fused_attention(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    value: Float[Tensor, "*batch keys out"],
    mask: Bool[Tensor, "*mask_batch _queries keys"] | None = None,
    *,
    scale: float | None = None,
    bias: Float[Tensor, "*bias_batch queries keys"] | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Float[Tensor, "*batch queries out"]:
    """The output of `attention` by torch's fused kernels, which avoid storing the weights where possible.

    `causal` masks later keys; the queries are aligned with the last keys. `dropout` is the dropout probability of the
    weights.
    """
    queries, keys = query.shape[-2], key.shape[-2]
    if causal and queries > 1:  # a single last query attends to all keys
        if mask is None and bias is None and queries == keys:
            return scaled_dot_product_attention(query, key, value, None, dropout, is_causal=True, scale=scale)
        past = causal_mask(queries, keys, device=query.device)
        mask = past if mask is None else past & mask
    if mask is None:
        return scaled_dot_product_attention(query, key, value, bias, dropout, scale=scale)
    key, value = zero_masked_keys(key, mask), zero_masked_keys(value, mask)
    has_keys = mask.any(-1, keepdim=True)
    visible = mask | ~has_keys  # a fully masked row attends to all keys, and its output is set to 0 below
    attn_mask: Tensor = visible
    if bias is not None:
        attn_mask = bias.masked_fill(~visible, -torch.inf)
    output = scaled_dot_product_attention(query, key, value, attn_mask, dropout, scale=scale)
    return output.masked_fill(~has_keys, 0.0)
