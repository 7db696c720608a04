"""Looking things up: a query weighs the keys, and the values are added up with these weights (Zhao sec. 11).

Which weights makes the difference: any (a linear map), positive (the cone of the values), of sum 1 (their hull), a
single 1 (a data base), all alike (the mean). Any number of pairs will do, in any order.
"""

from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.attention.dot_product import Attended, masked_softmax
from parnassus.attention.scores import Score, dot_score


def pool(
    query: Float[Tensor, "*batch queries d_q"],
    key: Float[Tensor, "*batch keys d_k"],
    value: Float[Tensor, "*batch keys out"],
    weigh: Score,
) -> Attended:
    """Attention(q, 𝒟) = Σ_i α(q, k_i) v_i over the pairs (k_i, v_i) of 𝒟, with any weights α (Zhao sec. 11)."""
    _require_pairs(key, value)
    weights = weigh(query, key)
    return Attended(weights @ value, weights)


def linear_lookup(
    query: Float[Tensor, "*batch queries width"],
    key: Float[Tensor, "*batch keys width"],
    value: Float[Tensor, "*batch keys out"],
) -> Attended:
    """lookup(q) = Σ_i ⟨q, k_i⟩ v_i (Diehl ex. 2.3).

    With basis vectors as keys e_3 finds v_3, and e_3 + 2e_5 finds v_3 + 2v_5.
    """
    return pool(query, key, value, dot_score)


def soft_lookup(
    query: Float[Tensor, "*batch queries d_q"],
    key: Float[Tensor, "*batch keys d_k"],
    value: Float[Tensor, "*batch keys out"],
    mask: Bool[Tensor, "*mask_batch _queries keys"] | None = None,
    *,
    score: Score = dot_score,
    temperature: float = 1.0,
) -> Attended:
    """lookup(q) = Σ_i softmax(a(q, k_•) / T)_i v_i, a mixture of the values (Diehl ex. 2.3, Zhao sec. 11).

    T → ∞ is `average_pooling`, T → 0 is `hard_lookup` (book sec. 10.1.3). With n basis vectors as keys and T = 1 even
    e_3 finds v_3 with weight e/(e + n − 1) only.
    """
    if not temperature > 0:
        raise ValueError(f"the temperature must be positive; got temperature={temperature}; T → 0 is hard_lookup")
    return pool(query, key, value, lambda q, k: masked_softmax(score(q, k) / temperature, mask))


def hard_lookup(
    query: Float[Tensor, "*batch queries d_q"],
    key: Float[Tensor, "*batch keys d_k"],
    value: Float[Tensor, "*batch keys out"],
    *,
    score: Score = dot_score,
) -> Attended:
    """The value of the key that matches best: lim_{T→0} of `soft_lookup` (book sec. 10.1.3).

    Keys that match equally well share the answer, as they do in the limit.
    """
    return pool(query, key, value, lambda q, k: best_of(score(q, k)))


def average_pooling(
    query: Float[Tensor, "*batch queries d_q"],
    key: Float[Tensor, "*batch keys d_k"],
    value: Float[Tensor, "*batch keys out"],
) -> Attended:
    """1/m Σ_i v_i, whatever is asked (Zhao sec. 11)."""
    equal = query.new_full((*query.shape[:-1], key.shape[-2]), 1 / max(1, key.shape[-2]))
    return pool(query, key, value, lambda _q, _k: equal)


def best_of(scores: Float[Tensor, "*shape keys"]) -> Float[Tensor, "*shape keys"]:
    """lim_{λ→∞} softmax(λ a): 1 for the largest entry; several of them share it evenly (Diehl lem. 2.1)."""
    best = (scores == scores.amax(-1, keepdim=True)).to(scores.dtype)
    return best / best.sum(-1, keepdim=True)


def _require_pairs(key: Tensor, value: Tensor) -> None:
    if key.shape[-2] == 0 or key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"need at least one key, and a value for each; got {key.shape[-2]} keys and {value.shape[-2]} values"
        )
