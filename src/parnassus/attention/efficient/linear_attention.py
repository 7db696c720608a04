"""Linear attention: with the similarity ⟨φ(q), φ(k)⟩ all queries share one sum over the keys (Diehl sec. 4.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

from parnassus.attention.core.masks import zero_masked
from parnassus.errors import check_at_least_one

FeatureMap: TypeAlias = Callable[[Tensor], Tensor]
"""φ maps queries or keys (…, time, width) to features (…, time, features)."""
CHUNKS_PER_GROUP = {"cpu": 16, "cuda": 128}
"""Chunks whose sums are accumulated by one matrix product; sums of groups are accumulated recursively.

Larger groups do more arithmetic in fewer passes over memory, which is faster on a GPU.
"""


def elu_features(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """φ(x) = elu(x) + 1, entry by entry: x + 1 above zero, eˣ below, so always positive (Diehl sec. 4.1).

    Not computed as (eˣ − 1) + 1, which in single precision is 0 below x = −17.
    """
    if not (x.requires_grad and torch.is_grad_enabled()):
        return _EluFeatures.forward(x)
    features: Tensor = _EluFeatures.apply(x)  # type: ignore[no-untyped-call]  # apply is untyped in torch
    return features


class _EluFeatures(torch.autograd.Function):
    """φ(x) = min(max(x + 1, 1), eˣ) and φ′(x) = min(φ(x), 1), in half the passes over memory of autograd."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return torch.clamp(x + 1, x.new_ones(()), x.exp())

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:  # noqa: ARG004 - torch's signature
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (features,) = ctx.saved_tensors
        grad_input: Tensor = grad_output * features.clamp(max=1.0)
        return grad_input


def linear_attention_weights(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    features: FeatureMap,
    mask: Bool[Tensor, "*mask_batch queries keys"] | None = None,
) -> Float[Tensor, "*batch queries keys"]:
    """⟨φ(q_i), φ(k_j)⟩ / Z_i, the n × n weights that linear attention never forms; for inspection and tests."""
    kernel = features(query) @ features(key).mT
    kernel = kernel if mask is None else kernel.masked_fill(~mask, 0.0)
    return _normalise(kernel, kernel.sum(-1, keepdim=True))


def linear_attention(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    value: Float[Tensor, "*batch keys out"],
    features: FeatureMap = elu_features,
    *,
    visible: Bool[Tensor, "*mask_batch keys"] | None = None,
) -> Float[Tensor, "*batch queries out"]:
    """Full (bidirectional) linear attention in time and memory O(n · features) (Diehl sec. 4.1).

        r_i = φ(q_i)ᵀ S / Z_i,   S = Σ_j φ(k_j) v_jᵀ,   Z_i = φ(q_i)ᵀ Σ_j φ(k_j)

    Each query has its own normaliser Z_i. `visible` is False at padding.
    """
    return feature_attention(features(query), zero_masked(features(key), visible), zero_masked(value, visible))


def causal_linear_attention(
    query: Float[Tensor, "*batch time width"],
    key: Float[Tensor, "*batch time width"],
    value: Float[Tensor, "*batch time out"],
    features: FeatureMap = elu_features,
    *,
    visible: Bool[Tensor, "*mask_batch time"] | None = None,
    chunk: int = 64,
) -> Float[Tensor, "*batch time out"]:
    """Causal linear attention: the sums run over j ≤ i instead of all j."""
    return causal_feature_attention(
        features(query), zero_masked(features(key), visible), zero_masked(value, visible), chunk=chunk
    )[0]


def feature_attention(
    query_features: Float[Tensor, "*batch queries features"],
    key_features: Float[Tensor, "*batch keys features"],
    value: Float[Tensor, "*batch keys out"],
) -> Float[Tensor, "*batch queries out"]:
    """Linear attention from the features φ(q) and φ(k), which may come from different maps."""
    normaliser = query_features @ key_features.sum(-2).unsqueeze(-1)
    return _normalise(query_features @ (key_features.mT @ value), normaliser)


@dataclass(frozen=True)
class KeyValueSums:
    """The recurrent state of causal linear attention, of constant size (Diehl sec. 4.1).

    S_i = S_{i−1} + φ(k_i) v_iᵀ,   z_i = z_{i−1} + φ(k_i)

    >>> KeyValueSums(torch.zeros(4, 8), torch.zeros(4)).values.shape
    torch.Size([4, 8])
    """

    values: Float[Tensor, "*batch features out"]
    normaliser: Float[Tensor, "*batch features"]


def causal_feature_attention(
    query_features: Float[Tensor, "*batch time features"],
    key_features: Float[Tensor, "*batch time features"],
    value: Float[Tensor, "*batch time out"],
    past: KeyValueSums | None = None,
    *,
    chunk: int = 64,
) -> tuple[Float[Tensor, "*batch time out"], KeyValueSums]:
    """φ(q_i)ᵀ S_i / φ(q_i)ᵀ z_i for each new token, continuing from `past`, and the updated sums.

    Chunked: tokens attend to their own chunk by a small masked product, and to earlier chunks through their sums.
    Memory is O(time · (chunk + features · out / chunk)); storing every S_i would take O(time · features · out).
    """
    check_at_least_one(chunk=chunk)
    time, out = value.shape[-2:]
    chunk = min(chunk, max(time, 1))
    augmented = append_ones(value)  # the weighted sum of the ones is the normaliser
    q, k, v = (_split_into_chunks(x, chunk) for x in (query_features, key_features, augmented))
    sums = k.mT @ v  # of each chunk
    before = _exclusive_cumsum(sums.flatten(-2)).view_as(sums)
    dtype = torch.promote_types(sums.dtype, torch.float32)  # long sums in half precision would stagnate
    after = before[..., -1, :, :].to(dtype) + sums[..., -1, :, :]
    if past is not None:
        initial = torch.cat([past.values, past.normaliser.unsqueeze(-1)], -1)
        initial = pad(initial, (0, sums.shape[-1] - out - 1))
        before, after = (before + initial.unsqueeze(-3)).to(q.dtype), after + initial
    scores = (q @ k.mT).tril_()
    within, q, before = (x.flatten(0, -3) for x in (scores @ v, q, before))
    mixed = within.baddbmm_(q, before).view(v.shape)  # in place, to avoid a copy
    values, normaliser, _ = mixed.split([out, 1, mixed.shape[-1] - out - 1], -1)
    return _normalise(values, normaliser).flatten(-3, -2)[..., :time, :], KeyValueSums(
        after[..., :out], after[..., out]
    )


def append_ones(x: Float[Tensor, "*batch width"]) -> Float[Tensor, "*batch wider"]:
    """Append a column of ones, and more until a row is a multiple of 16 bytes, for faster matrix products on a GPU.

    Padding is several times faster on a GPU than concatenation.
    """
    return pad(x, (0, 1 + _padding_columns(x)), value=1.0)


def append_column(
    x: Float[Tensor, "*batch width"], column: Float[Tensor, "*#batch 1"]
) -> Float[Tensor, "*batch wider"]:
    """Append the given column, and columns of zeros until a row is a multiple of 16 bytes."""
    return torch.cat(
        [x, column.expand(*x.shape[:-1], 1), x.new_zeros(1).expand(*x.shape[:-1], _padding_columns(x))], -1
    )


def _padding_columns(x: Tensor) -> int:
    """Columns to add after one more column, so that a row is a multiple of 16 bytes."""
    return -(x.shape[-1] + 1) % (16 // x.element_size())


def _split_into_chunks(
    x: Float[Tensor, "*batch time width"], chunk: int
) -> Float[Tensor, "*batch chunks {chunk} width"]:
    """At least one chunk; the last is padded with zeros."""
    chunks = max(1, -(-x.shape[-2] // chunk))
    missing = chunks * chunk - x.shape[-2]
    padded = pad(x, (0, 0, 0, missing)) if missing else x  # padding by 0 would copy
    parts: Tensor = padded.unflatten(-2, (chunks, chunk))
    return parts


def _exclusive_cumsum(sums: Float[Tensor, "*batch chunks entries"]) -> Float[Tensor, "*batch chunks entries"]:
    """Σ_{j < i} of the sums of chunks, by products with a strictly lower triangular matrix of ones.

    Matrix products accumulate in single precision or better for every dtype. A cumsum would need a single-precision
    copy, a shift and a cast back, and four more passes in the backward pass.
    """
    chunks = sums.shape[-2]
    if chunks == 1:
        return torch.zeros_like(sums)
    group = CHUNKS_PER_GROUP.get(sums.device.type, 16)
    grouped = _split_into_chunks(sums, min(chunks, group))
    earlier = sums.new_ones(grouped.shape[-2], grouped.shape[-2]).tril(-1)
    within = earlier @ grouped
    if chunks > group:
        within += _exclusive_cumsum(within[..., -1, :] + grouped[..., -1, :]).unsqueeze(-2)
    return within.flatten(-3, -2)[..., :chunks, :]


def _normalise(
    values: Float[Tensor, "*batch out"], normaliser: Float[Tensor, "*batch 1"]
) -> Float[Tensor, "*batch out"]:
    """The quotient, and 0 where the normaliser is 0 because no key is visible."""
    inverse: Tensor = normaliser.masked_fill(normaliser == 0, 1.0).reciprocal()  # cheaper gradient than a division
    return values * inverse
