"""Claims about scores: distances, dot products, learned scores and their cost (Zhao sec. 11, book sec. 10.1.3)."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import normalize

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises
from parnassus.attention.core.dot_product import attention_weights
from parnassus.attention.core.masks import length_mask
from parnassus.attention.core.scores import (
    AdditiveScore,
    AttentionScore,
    BilinearScore,
    cosine_score,
    dot_score,
    gaussian_score,
    scaled_score,
)
from parnassus.attention.models.bahdanau import BahdanauDecoder
from parnassus.layers.dense import count_parameters
from parnassus.layers.normalisation import standardise
from parnassus.probability import points_on_sphere, standard_normal
from parnassus.train.timing import measure_seconds

WIDTHS = (4, 64, 512)


def weight_difference(query: Tensor, key: Tensor) -> Tensor:
    """Largest entry of |softmax(qᵀk) − softmax(−½‖q − k‖²)|."""
    return (dot_score(query, key).softmax(-1) - gaussian_score(query, key).softmax(-1)).abs().max()


@claim("Z11.6", "B10.1.3-2")
def softmax_weights_do_not_depend_on_the_query_norm() -> Evidence:
    """−½‖q − k‖² = qᵀk − ½‖k‖² − ½‖q‖², and without its last term the weights are the same (Zhao sec. 11)."""
    query, key = standard_normal(8, 5), standard_normal(12, 5, seed=1)
    direct = -(query[:, None] - key).square().sum(-1) / 2
    without_query_norm = dot_score(query, key) - key.square().sum(-1) / 2
    return all_of(
        identity=close(gaussian_score(query, key), direct, atol=1e-13),
        weights=close(without_query_norm.softmax(-1), direct.softmax(-1), atol=1e-15),
        key_norms_matter=greater_equal(weight_difference(query, key), 0.1),
        equal_key_norms_do_not=less_equal(weight_difference(query, 3 * normalize(key, dim=-1)), 1e-14),
    )


@erratum("Z11.6", printed="batch and layer norm give keys of constant length", right="layer norm only")
def batch_norm_does_not_equalise_key_norms() -> Correction:
    """After batch norm only the mean of ‖k‖² is d; after layer norm each ‖k‖² is (Zhao sec. 11)."""
    query, raw = standard_normal(20, 64), standard_normal(1_000, 64, seed=1) * standard_normal(64, seed=2).exp()
    batch, layer = standardise(raw, (0,), epsilon=0.0), standardise(raw, (-1,), epsilon=0.0)
    return Correction(
        printed=close(batch.square().sum(-1), 64.0, rtol=0.01),
        corrected=all_of(
            mean_of_squared_norms=close(batch.square().sum(-1).mean(), 64.0, rtol=1e-12),
            spread_of_norms=close(batch.norm(dim=-1).std(), 0.7, atol=0.1),
            weights_after_batch_norm_differ=greater_equal(weight_difference(query, batch), 0.1),
            layer_norm=close(layer.square().sum(-1), 64.0, rtol=1e-12),
            weights_after_layer_norm_agree=less_equal(weight_difference(query, layer), 1e-13),
        ),
    )


@claim("B10.1.3-3")
def distances_and_dot_products_of_unit_vectors_agree() -> Evidence:
    """−½‖q − k‖² = qᵀk − 1 for unit vectors; Gaussian weights with σ² = √d are scaled attention (book sec. 10.1.3)."""
    query, key = points_on_sphere(8, 16), points_on_sphere(12, 16, seed=1)
    off_sphere = standard_normal(8, 16)
    return all_of(
        identity=close(gaussian_score(query, key), dot_score(query, key) - 1, atol=1e-14),
        cosine=close(cosine_score(off_sphere, key), dot_score(query, key), atol=1e-14),
        any_sigma=close(
            gaussian_score(query, key, sigma=0.3).softmax(-1), (dot_score(query, key) / 0.09).softmax(-1), atol=1e-13
        ),
        usual_scale=close(
            gaussian_score(query, key, sigma=16**0.25).softmax(-1), attention_weights(query, key), atol=1e-15
        ),
        difference_off_the_sphere=greater_equal(
            (gaussian_score(off_sphere, key) - dot_score(off_sphere, key) + 1).abs().max(), 1.0
        ),
    )


@claim("Z11.7")
def scaled_dot_products_have_variance_one() -> Evidence:
    """With independent entries of variance 1, qᵀk has mean 0 and variance d, qᵀk/√d variance 1 (Zhao sec. 11)."""
    samples = {d: (standard_normal(20_000, 1, d), standard_normal(20_000, 1, d, seed=1)) for d in WIDTHS}
    plain = {d: dot_score(q, k).flatten() for d, (q, k) in samples.items()}
    scaled = {d: scaled_score(q, k).flatten() for d, (q, k) in samples.items()}
    self_scores = scaled_score(samples[64][0], samples[64][0])
    query, key = standard_normal(3, 64, seed=2), standard_normal(5, 64, seed=3)
    return all_of(
        weights=close(attention_weights(query, key), scaled_score(query, key).softmax(-1), atol=1e-14),
        mean=close(torch.stack([scores.mean() for scores in scaled.values()]), 0.0, atol=0.03),
        variance=close(torch.stack([scores.var() / d for d, scores in plain.items()]), 1.0, atol=0.05),
        scaled=close(torch.stack([scores.var() for scores in scaled.values()]), 1.0, atol=0.05),
        a_key_equal_to_the_query=close(self_scores.mean(), 8.0, rtol=0.01),
    )


@claim("Z11.7")
def unscaled_scores_saturate_the_softmax() -> Evidence:
    """Without 1/√d the weights' entropy and softmax Jacobian decrease with d; with it they do not (Zhao sec. 11)."""
    plain, scaled = ([entropy_and_jacobian_trace(score, d) for d in WIDTHS] for score in (dot_score, scaled_score))
    return all_of(
        entropy_decreases=less_equal(torch.stack([plain[1][0] / plain[0][0], plain[2][0] / plain[1][0]]), 0.5),
        jacobian_trace_decreases=less_equal(
            torch.stack([later[1] / earlier[1] for earlier, later in pairwise(plain)]), 0.6
        ),
        scaled_entropy_is_constant=close(torch.stack([entropy for entropy, _ in scaled]), 5.7, atol=0.05),
        scaled_jacobian_trace_is_constant=greater_equal(torch.stack([trace for _, trace in scaled]), 0.95),
    )


def entropy_and_jacobian_trace(score: AttentionScore, width: int) -> tuple[Tensor, Tensor]:
    """Entropy in nats of the weights over 500 keys, and the trace of the softmax's Jacobian."""
    weights = score(standard_normal(200, width), standard_normal(500, width, seed=1)).softmax(-1)
    entropy = torch.special.entr(weights).sum(-1).mean()
    return entropy, (weights * (1 - weights)).sum(-1).mean()


@claim("Z11.9")
def batch_matrix_multiplication_equals_a_loop() -> Evidence:
    """BMM(Q, K) = [Q_1 K_1, …, Q_n K_n] by a loop, by torch.bmm and by einsum (Zhao sec. 11)."""
    q, k = standard_normal(3, 4, 5), standard_normal(3, 5, 6, seed=1)
    loop = torch.stack([torch.stack([row @ k[n] for row in q[n]]) for n in range(3)])
    return all_of(
        bmm=close(torch.bmm(q, k), loop, atol=1e-13),
        einsum=close(torch.einsum("nab,nbc->nac", q, k), loop, atol=1e-13),
        score=close(dot_score(q, k.mT), loop, atol=1e-13),
        shape=close(torch.tensor(loop.shape), torch.tensor([3, 4, 6])),
    )


@erratum("Z11.9", printed="BMM computes the element-wise product", right="a matrix product for each element")
def batch_matrix_multiplication_is_not_elementwise() -> Correction:
    """Elementwise, shapes (n,a,b) and (n,b,c) need not match; for square matrices the values differ (Zhao sec. 11)."""
    q, k = standard_normal(3, 4, 4), standard_normal(3, 4, 4, seed=1)
    product = torch.stack([a @ b for a, b in zip(q, k, strict=True)])
    return Correction(
        printed=close(q * k, product, atol=0.1),
        corrected=all_of(
            matrix_products=close(torch.bmm(q, k), product, atol=1e-13),
            elementwise_shapes_do_not_match=raises(
                RuntimeError, lambda: standard_normal(3, 4, 5) * standard_normal(3, 5, 6)
            ),
        ),
    )


@claim("Z11.11")
def a_bilinear_score_contains_the_scaled_dot_product() -> Evidence:
    """qᵀ M k with M = 1/√d is qᵀk/√d; M joins queries and keys of different widths (Zhao sec. 11)."""
    score = BilinearScore(6, 6).double()
    score.m.data = torch.eye(6, dtype=torch.float64) / 6**0.5
    query, key = standard_normal(3, 6), standard_normal(4, 6, seed=1)
    rectangular = BilinearScore(6, 9).double()
    by_hand = torch.einsum("qi,ij,kj->qk", query, rectangular.m, standard_normal(5, 9))
    return all_of(
        scaled=close(score(query, key), scaled_score(query, key), atol=1e-14),
        different_widths=close(rectangular(query, standard_normal(5, 9)), by_hand, atol=1e-13),
        parameters=close(count_parameters(rectangular), 6 * 9),
    )


@claim("Z11.12")
def an_additive_score_is_a_small_network() -> Evidence:
    """w_vᵀ tanh(W_q q + W_k k) is a network on [q, k] without biases, bounded by ‖w_v‖₁ (Zhao sec. 11)."""
    torch.manual_seed(0)
    score = AdditiveScore(6, 9, 10).double()
    query, key = standard_normal(3, 6), standard_normal(5, 9, seed=1)
    first = torch.cat([score.query.weight, score.key.weight], 1)
    joined = torch.cat([query[:, None].expand(3, 5, 6), key[None].expand(3, 5, 9)], -1)
    return all_of(
        network=close(score(query, key), (joined @ first.mT).tanh() @ score.value.weight[0], atol=1e-14),
        bounded=less_equal(score(100 * query, 100 * key).abs(), score.value.weight.abs().sum()),
        parameters=close(count_parameters(score), 10 * (6 + 9 + 1)),
    )


@claim("Z11.12")
def an_additive_score_saves_parameters_but_not_time() -> Evidence:
    """At widths and hidden units of 64 the additive score is several times slower than the bilinear (Zhao sec. 11).

    The notes expect savings; with few hidden units the additive score saves parameters only.
    """
    query, key = standard_normal(256, 64).float(), standard_normal(256, 64, seed=1).float()
    additive, bilinear = AdditiveScore(64, 64, 64), BilinearScore(64, 64)
    ratio = minimum_runtime(lambda: additive(query, key)) / minimum_runtime(lambda: bilinear(query, key))
    parameter_ratio = count_parameters(AdditiveScore(64, 64, 16)) / count_parameters(bilinear)
    return all_of(
        time=greater_equal(ratio, 3.0),
        parameters_with_16_hidden_units=close(parameter_ratio, 16 * 129 / 64**2),
    )


@claim("Z11.6")
def distances_cost_more_than_dot_products() -> Evidence:
    """Pairwise distances cost far more than dot products; expanded into products they cost less (Zhao sec. 11)."""
    query, key = standard_normal(512, 64).float(), standard_normal(512, 64, seed=1).float()
    product = minimum_runtime(lambda: dot_score(query, key))
    by_pairs = minimum_runtime(lambda: (query[:, None] - key).square().sum(-1))
    return all_of(
        by_pairs=greater_equal(by_pairs / product, 2.0),
        expanded=less_equal(minimum_runtime(lambda: gaussian_score(query, key)) / by_pairs, 0.8),
    )


@torch.no_grad()
def minimum_runtime(action: Callable[[], object]) -> float:
    """Seconds of the fastest of seven runs."""
    return measure_seconds(action, torch.device("cpu"), repeats=7)


@claim("Z11.13", "B10.1-3")
def the_context_of_a_decoder_is_a_weighted_mean_of_encoder_states() -> Evidence:
    """The context Σ_τ α(s, h_τ) h_τ is a weighted mean of unmasked states for any score (Zhao sec. 11)."""
    torch.manual_seed(0)
    memory, state = standard_normal(4, 6, 5), standard_normal(4, 7, seed=1)
    mask = length_mask(torch.tensor([6, 3, 1, 6]), 6)
    additive = BahdanauDecoder(11, 7, 5).double()
    product = BahdanauDecoder(11, 7, 5, score=BilinearScore(7, 5).double()).double()
    parts = {}
    for name, decoder in {"additive": additive, "product": product}.items():
        result = decoder.context(state, memory, mask)
        by_hand = torch.stack([(w[:, None] * h).sum(0) for w, h in zip(result.weights, memory, strict=True)])
        parts[f"{name}_context"] = close(result.output, by_hand, atol=1e-14)
        parts[f"{name}_sum_one"] = close(result.weights.sum(-1), 1.0, atol=1e-14)
        parts[f"{name}_padding"] = close(result.weights.masked_select(~mask[:, 0]), 0.0)
        parts[f"{name}_single_unmasked_state"] = close(result.output[2], memory[2, 0], atol=1e-14)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    permuted = additive.context(state, memory[:, order]).output
    return all_of(**parts, order_of_states=close(permuted, additive.context(state, memory).output, atol=1e-14))
