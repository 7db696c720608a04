"""Claims about scores: distances, products, and what they cost (Zhao sec. 11, book sec. 10.1.3)."""

import time
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import normalize

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, raises
from parnassus.attention.bahdanau import BahdanauDecoder
from parnassus.attention.dot_product import attention_weights
from parnassus.attention.masks import length_mask
from parnassus.attention.scores import (
    AdditiveScore,
    BilinearScore,
    Score,
    cosine_score,
    dot_score,
    gaussian_score,
    scaled_score,
)
from parnassus.layers.dense import parameter_count
from parnassus.layers.normalisation import standardise

WIDTHS = (4, 64, 512)


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def weights_differ(query: Tensor, key: Tensor) -> Tensor:
    """How far softmax(qᵀk) is from softmax(−½‖q − k‖²), the largest entry."""
    return (dot_score(query, key).softmax(-1) - gaussian_score(query, key).softmax(-1)).abs().max()


@claim("Z11.6", "B10.1.3-2")
def a_softmax_does_not_see_the_length_of_the_query() -> Evidence:
    """−½‖q − k‖² = qᵀk − ½‖k‖² − ½‖q‖², and without its last term the weights are the same (Zhao sec. 11)."""
    query, key = normals(8, 5), normals(12, 5, seed=1)
    direct = -(query[:, None] - key).square().sum(-1) / 2
    without = dot_score(query, key) - key.square().sum(-1) / 2
    return all_of(
        identity=close(gaussian_score(query, key), direct, atol=1e-13),
        weights=close(without.softmax(-1), direct.softmax(-1), atol=1e-15),
        the_key_s_length_matters=at_least(weights_differ(query, key), 0.1),
        but_not_on_equal_lengths=at_most(weights_differ(query, 3 * normalize(key, dim=-1)), 1e-14),
    )


@erratum("Z11.6", printed="batch and layer norm give keys of constant length", right="layer norm only")
def batch_norm_leaves_keys_of_different_lengths() -> Correction:
    """After batch norm only the mean of ‖k‖² is d; after layer norm each is, and products will do (Zhao sec. 11)."""
    query, raw = normals(20, 64), normals(1_000, 64, seed=1) * normals(64, seed=2).exp()
    batch, layer = standardise(raw, (0,), epsilon=0.0), standardise(raw, (-1,), epsilon=0.0)
    return Correction(
        printed=close(batch.square().sum(-1), 64.0, rtol=0.01),
        corrected=all_of(
            in_the_mean_only=close(batch.square().sum(-1).mean(), 64.0, rtol=1e-12),
            spread_of_lengths=close(batch.norm(dim=-1).std(), 0.7, atol=0.1),
            weights_after_batch_norm_differ=at_least(weights_differ(query, batch), 0.1),
            layer_norm=close(layer.square().sum(-1), 64.0, rtol=1e-12),
            weights_after_layer_norm_agree=at_most(weights_differ(query, layer), 1e-13),
        ),
    )


@claim("B10.1.3-3")
def on_the_sphere_distance_and_product_agree() -> Evidence:
    """−½‖q − k‖² = qᵀk − 1 for unit vectors; Gaussian weights with σ² = √d are scaled attention (book sec. 10.1.3)."""
    query, key = normalize(normals(8, 16), dim=-1), normalize(normals(12, 16, seed=1), dim=-1)
    off_sphere = normals(8, 16)
    return all_of(
        identity=close(gaussian_score(query, key), dot_score(query, key) - 1, atol=1e-14),
        cosine=close(cosine_score(off_sphere, key), dot_score(query, key), atol=1e-14),
        any_width=close(
            gaussian_score(query, key, width=0.3).softmax(-1), (dot_score(query, key) / 0.09).softmax(-1), atol=1e-13
        ),
        usual_scale=close(
            gaussian_score(query, key, width=16**0.25).softmax(-1), attention_weights(query, key), atol=1e-15
        ),
        only_there=at_least((gaussian_score(off_sphere, key) - dot_score(off_sphere, key) + 1).abs().max(), 1.0),
    )


@claim("Z11.7")
def products_have_variance_d_and_scaled_ones_one() -> Evidence:
    """With independent entries of variance 1, qᵀk has mean 0 and variance d, qᵀk/√d variance 1 (Zhao sec. 11)."""
    drawn = {d: (normals(20_000, 1, d), normals(20_000, 1, d, seed=1)) for d in WIDTHS}
    plain = {d: dot_score(q, k).flatten() for d, (q, k) in drawn.items()}
    scaled = {d: scaled_score(q, k).flatten() for d, (q, k) in drawn.items()}
    with_itself = scaled_score(drawn[64][0], drawn[64][0])
    return all_of(
        mean=close(torch.stack([scores.mean() for scores in scaled.values()]), 0.0, atol=0.03),
        variance=close(torch.stack([scores.var() / d for d, scores in plain.items()]), 1.0, atol=0.05),
        scaled=close(torch.stack([scores.var() for scores in scaled.values()]), 1.0, atol=0.05),
        a_key_equal_to_the_query=close(with_itself.mean(), 8.0, rtol=0.01),
    )


@claim("Z11.7")
def unscaled_scores_saturate_the_softmax() -> Evidence:
    """Without 1/√d the weights' entropy and the softmax's slope die as d grows; with it they stay (Zhao sec. 11)."""
    plain, scaled = ([entropy_and_slope(score, d) for d in WIDTHS] for score in (dot_score, scaled_score))
    return all_of(
        entropy_falls=at_most(torch.stack([plain[1][0] / plain[0][0], plain[2][0] / plain[1][0]]), 0.5),
        slope_falls=at_most(torch.stack([later[1] / earlier[1] for earlier, later in pairwise(plain)]), 0.6),
        scaled_entropy_stays=close(torch.stack([entropy for entropy, _ in scaled]), 5.7, atol=0.05),
        scaled_slope_stays=at_least(torch.stack([slope for _, slope in scaled]), 0.95),
    )


def entropy_and_slope(score: Score, width: int) -> tuple[Tensor, Tensor]:
    """Of the weights over 500 keys: their entropy in nats, and the trace of the softmax's Jacobian."""
    weights = score(normals(200, width), normals(500, width, seed=1)).softmax(-1)
    entropy = torch.special.entr(weights).sum(-1).mean()
    return entropy, (weights * (1 - weights)).sum(-1).mean()


@claim("Z11.9")
def batches_of_products_are_products_of_batches() -> Evidence:
    """BMM(Q, K) = [Q_1 K_1, …, Q_n K_n] by a loop, by torch.bmm and by einsum (Zhao sec. 11)."""
    q, k = normals(3, 4, 5), normals(3, 5, 6, seed=1)
    loop = torch.stack([torch.stack([row @ k[n] for row in q[n]]) for n in range(3)])
    return all_of(
        bmm=close(torch.bmm(q, k), loop, atol=1e-13),
        einsum=close(torch.einsum("nab,nbc->nac", q, k), loop, atol=1e-13),
        score=close(dot_score(q, k.mT), loop, atol=1e-13),
        shape=close(torch.tensor(loop.shape), torch.tensor([3, 4, 6])),
    )


@erratum("Z11.9", printed="BMM computes the element-wise product", right="a matrix product for each element")
def a_batch_product_is_not_taken_entry_by_entry() -> Correction:
    """Entry by entry (n,a,b) and (n,b,c) need not even fit; for square ones the numbers differ (Zhao sec. 11)."""
    q, k = normals(3, 4, 4), normals(3, 4, 4, seed=1)
    product = torch.stack([a @ b for a, b in zip(q, k, strict=True)])
    return Correction(
        printed=close(q * k, product, atol=0.1),
        corrected=all_of(
            matrix_products=close(torch.bmm(q, k), product, atol=1e-13),
            entries_do_not_fit=raises(RuntimeError, lambda: normals(3, 4, 5) * normals(3, 5, 6)),
        ),
    )


@claim("Z11.11")
def a_bilinear_score_contains_the_scaled_product() -> Evidence:
    """qᵀ M k with M = 1/√d is qᵀk/√d; M joins queries and keys of different widths (Zhao sec. 11)."""
    score = BilinearScore(6, 6).double()
    score.m.data = torch.eye(6, dtype=torch.float64) / 6**0.5
    query, key = normals(3, 6), normals(4, 6, seed=1)
    uneven = BilinearScore(6, 9).double()
    by_hand = torch.einsum("qi,ij,kj->qk", query, uneven.m, normals(5, 9))
    return all_of(
        scaled=close(score(query, key), scaled_score(query, key), atol=1e-14),
        uneven=close(uneven(query, normals(5, 9)), by_hand, atol=1e-13),
        parameters=close(parameter_count(uneven), 6 * 9),
    )


@claim("Z11.12")
def an_additive_score_is_a_small_network() -> Evidence:
    """w_vᵀ tanh(W_q q + W_k k) is a network on [q, k] without biases, at most ‖w_v‖₁ in size (Zhao sec. 11)."""
    torch.manual_seed(0)
    score = AdditiveScore(6, 9, 10).double()
    query, key = normals(3, 6), normals(5, 9, seed=1)
    first = torch.cat([score.query.weight, score.key.weight], 1)
    joined = torch.cat([query[:, None].expand(3, 5, 6), key[None].expand(3, 5, 9)], -1)
    return all_of(
        network=close(score(query, key), (joined @ first.mT).tanh() @ score.value.weight[0], atol=1e-14),
        bounded=at_most(score(100 * query, 100 * key).abs(), score.value.weight.abs().sum()),
        parameters=close(parameter_count(score), 10 * (6 + 9 + 1)),
    )


@claim("Z11.12")
def an_additive_score_saves_weights_and_not_time() -> Evidence:
    """With 64 hidden units for widths of 64 the additive score takes many times the bilinear one's time (Zhao sec. 11).

    The notes hope for savings; what is saved, for few hidden units, is weights.
    """
    query, key = normals(256, 64).float(), normals(256, 64, seed=1).float()
    additive, bilinear = AdditiveScore(64, 64, 64), BilinearScore(64, 64)
    ratio = seconds(lambda: additive(query, key)) / seconds(lambda: bilinear(query, key))
    few = parameter_count(AdditiveScore(64, 64, 16)) / parameter_count(bilinear)
    return all_of(time=at_least(ratio, 3.0), weights_with_16_hidden_units=close(few, 16 * 129 / 64**2))


@claim("Z11.6")
def distances_cost_more_than_products() -> Evidence:
    """Pair by pair a distance costs many products; expanded into a product it costs far less (Zhao sec. 11)."""
    query, key = normals(512, 64).float(), normals(512, 64, seed=1).float()
    product = seconds(lambda: dot_score(query, key))
    by_pairs = seconds(lambda: (query[:, None] - key).square().sum(-1))
    return all_of(
        by_pairs=at_least(by_pairs / product, 2.0),
        expanded=at_most(seconds(lambda: gaussian_score(query, key)) / by_pairs, 0.8),
    )


@torch.no_grad()
def seconds(action: Callable[[], object]) -> float:
    """The quickest of seven turns."""
    turns = []
    for _ in range(7):
        start = time.perf_counter()
        action()
        turns.append(time.perf_counter() - start)
    return min(turns)


@claim("Z11.13", "B10.1-3")
def a_decoder_s_context_is_a_mixture_of_what_was_read() -> Evidence:
    """The context Σ_τ α(s, h_τ) h_τ mixes the visible states by weights of sum 1, whatever the score (Zhao sec. 11)."""
    torch.manual_seed(0)
    memory, state = normals(4, 6, 5), normals(4, 7, seed=1)
    mask = length_mask(torch.tensor([6, 3, 1, 6]), 6)
    additive = BahdanauDecoder(11, 7, 5).double()
    product = BahdanauDecoder(11, 7, 5, score=BilinearScore(7, 5).double()).double()
    parts = {}
    for name, decoder in {"additive": additive, "product": product}.items():
        found = decoder.context(state, memory, mask)
        by_hand = torch.stack([(w[:, None] * h).sum(0) for w, h in zip(found.weights, memory, strict=True)])
        parts[f"{name}_context"] = close(found.output, by_hand, atol=1e-14)
        parts[f"{name}_sum_one"] = close(found.weights.sum(-1), 1.0, atol=1e-14)
        parts[f"{name}_padding"] = close(found.weights.masked_select(~mask[:, 0]), 0.0)
        parts[f"{name}_only_one_visible"] = close(found.output[2], memory[2, 0], atol=1e-14)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    moved = additive.context(state, memory[:, order]).output
    return all_of(**parts, order_of_reading=close(moved, additive.context(state, memory).output, atol=1e-14))
