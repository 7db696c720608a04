"""Attention pooling over key-value pairs: linear, soft, hard and average lookup (Zhao sec. 11).

The constraint on the weights determines the result: none gives the linear span of the values, non-negative weights
their cone, weights of sum 1 their convex hull, one-hot weights a database lookup, equal weights the mean. The number of
pairs is arbitrary, and so is their order.
"""

from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.attention.core.dot_product import AttentionOutput, masked_softmax
from parnassus.attention.core.scores import AttentionScore, dot_score


def attention_pooling(
    query: Float[Tensor, "*batch queries d_q"],
    key: Float[Tensor, "*batch keys d_k"],
    value: Float[Tensor, "*batch keys out"],
    weight: AttentionScore,
) -> AttentionOutput:
    """Attention(q, 𝒟) = Σ_i α(q, k_i) v_i over the pairs (k_i, v_i) of 𝒟, with arbitrary weights α (Zhao sec. 11)."""
    _check_pairs(key, value)
    weights = weight(query, key)
    return AttentionOutput(weights @ value, weights)


def linear_lookup(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    value: Float[Tensor, "*batch keys out"],
) -> AttentionOutput:
    """lookup(q) = Σ_i ⟨q, k_i⟩ v_i (Diehl ex. 2.3).

    With basis vectors as keys, lookup(e_3) = v_3 and lookup(e_3 + 2e_5) = v_3 + 2v_5.
    """
    return attention_pooling(query, key, value, dot_score)


def soft_lookup(
    query: Float[Tensor, "*batch queries d_q"],
    key: Float[Tensor, "*batch keys d_k"],
    value: Float[Tensor, "*batch keys out"],
    mask: Bool[Tensor, "*mask_batch _queries keys"] | None = None,
    *,
    score: AttentionScore = dot_score,
    temperature: float = 1.0,
) -> AttentionOutput:
    """lookup(q) = Σ_i softmax(a(q, k_•) / T)_i v_i, a convex combination of the values (Diehl ex. 2.3, Zhao sec. 11).

    T → ∞ is `average_pooling`, T → 0 is `hard_lookup` (book sec. 10.1.3). With n basis vectors as keys and
    T = 1, lookup(e_3) gives v_3 the weight e/(e + n − 1) only.
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be positive; got temperature={temperature} (T → 0 is hard_lookup)")
    return attention_pooling(query, key, value, lambda q, k: masked_softmax(score(q, k) / temperature, mask))


def hard_lookup(
    query: Float[Tensor, "*batch queries d_q"],
    key: Float[Tensor, "*batch keys d_k"],
    value: Float[Tensor, "*batch keys out"],
    *,
    score: AttentionScore = dot_score,
) -> AttentionOutput:
    """The value of the key with the largest score: lim_{T→0} of `soft_lookup` (book sec. 10.1.3).

    Keys with equal scores share the weight equally, as in the limit.
    """
    return attention_pooling(query, key, value, lambda q, k: hardmax(score(q, k)))


def average_pooling(
    query: Float[Tensor, "*batch queries d_q"],
    key: Float[Tensor, "*batch keys d_k"],
    value: Float[Tensor, "*batch keys out"],
) -> AttentionOutput:
    """1/m Σ_i v_i, independent of the query (Zhao sec. 11)."""
    equal = query.new_full((*query.shape[:-1], key.shape[-2]), 1 / max(1, key.shape[-2]))
    return attention_pooling(query, key, value, lambda _q, _k: equal)


def hardmax(scores: Float[Tensor, "*shape keys"]) -> Float[Tensor, "*shape keys"]:
    """lim_{λ→∞} softmax(λ a): one-hot at the largest entry; ties share the weight equally (Diehl lem. 2.1)."""
    is_max = (scores == scores.amax(-1, keepdim=True)).to(scores.dtype)
    return is_max / is_max.sum(-1, keepdim=True)


def _check_pairs(key: Tensor, value: Tensor) -> None:
    if key.shape[-2] == 0 or key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"at least one key is needed, and one value per key; got {key.shape[-2]} keys, {value.shape[-2]} values"
        )
