"""Attention: each query asks all keys, and gets a mixture of their values (book eqs. 10.4-10.5, Diehl sec. 2.2)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from parnassus.attention.masks import causal_mask


class Attended(NamedTuple):
    """What came out, and the weights with which each query mixed the values."""

    output: Float[Tensor, "*batch queries out"]
    weights: Float[Tensor, "*batch queries keys"]


def masked_softmax(
    scores: Float[Tensor, "*shape keys"], mask: Bool[Tensor, "*mask_shape keys"] | None = None
) -> Float[Tensor, "*shape keys"]:
    """α_j = exp(a_j) / Σ_i exp(a_i) over the keys whose mask is True; all others get weight 0 (Zhao sec. 11).

    A row without any visible key has no softmax. Its weights are 0 here, so it attends to nothing and is never NaN.
    """
    if mask is None:
        return scores.softmax(-1)
    hidden = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return hidden.softmax(-1).masked_fill(~mask, 0.0)


def without_hidden(
    x: Float[Tensor, "*batch keys width"], mask: Bool[Tensor, "*mask_batch _queries keys"]
) -> Float[Tensor, "*batch keys width"]:
    """Keys or values, 0 where no query looks: a weight of 0 alone does not stop a NaN in padding (Zhao sec. 11)."""
    return x.masked_fill(~mask.any(-2).unsqueeze(-1), 0.0)


def attention_weights(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    mask: Bool[Tensor, "*mask_batch _queries keys"] | None = None,
    *,
    scale: float | None = None,
    bias: Float[Tensor, "*bias_batch queries keys"] | None = None,
) -> Float[Tensor, "*batch queries keys"]:
    """softmax(Q Kᵀ · scale + bias) over the keys; scale is 1/√width unless told (book eq. 10.4).

    (Diehl sec. 2.2) and (book eq. 10.4) print no scale: that is scale = 1.
    """
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    key = key if mask is None else without_hidden(key, mask)
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
) -> Attended:
    """softmax(Q Kᵀ · scale + bias) V, with its weights to look at (book eq. 10.5, Diehl sec. 2.2)."""
    weights = attention_weights(query, key, mask, scale=scale, bias=bias)
    value = value if mask is None else without_hidden(value, mask)
    return Attended(weights @ value, weights)


def attend(
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
    """The output of `attention` by torch's fused kernels, which never hold the weights where they need not.

    `causal` hides what comes later: the queries are the last of the keys. `dropout` drops weights, as in training.
    """
    queries, keys = query.shape[-2], key.shape[-2]
    if causal and queries > 1:  # the newest place may see everything
        if mask is None and bias is None and queries == keys:
            return scaled_dot_product_attention(query, key, value, None, dropout, is_causal=True, scale=scale)
        past = causal_mask(queries, keys, device=query.device)
        mask = past if mask is None else past & mask
    if mask is None:
        return scaled_dot_product_attention(query, key, value, bias, dropout, scale=scale)
    key, value = without_hidden(key, mask), without_hidden(value, mask)
    sees = mask.any(-1, keepdim=True)
    visible = mask | ~sees  # a row that sees nothing is let see all, and its answer is dropped
    shown: Tensor = visible
    if bias is not None:
        shown = bias.masked_fill(~visible, -torch.inf)
    mixed = scaled_dot_product_attention(query, key, value, shown, dropout, scale=scale)
    return mixed.masked_fill(~sees, 0.0)
