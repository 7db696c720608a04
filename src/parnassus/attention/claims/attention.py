"""Claims about dot-product attention: output, scaling and cost (Diehl sec. 2.2; book sec. 10.1)."""

from functools import partial
from math import exp

import torch
from torch import Tensor
from torch.func import jacrev, vmap
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, rate
from parnassus.attention.core.attention_maps import attention_entropy
from parnassus.attention.core.dot_product import attention, attention_weights, fused_attention
from parnassus.attention.core.masks import causal_mask
from parnassus.attention.core.multi_head import AttentionWidths, MultiHeadAttention
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.efficient.operation_counts import (
    count_multiplications,
    count_saved_numbers,
    longest_operation_chain,
    unfused_self_attention,
)
from parnassus.probability import standard_normal


def one_query() -> tuple[Tensor, Tensor, Tensor]:
    """Query of the last of six tokens, keys and values of all six; width 4."""
    tokens = standard_normal(6, 5)
    query, keys, values = (
        tokens @ standard_normal(4, 5, seed=s).mT / 3 + standard_normal(4, seed=9 + s) / 3 for s in (1, 2, 3)
    )
    return query[-1:], keys, values


def hull_violation(points: Tensor, corners: Tensor) -> Tensor:
    """Largest distance by which points exceed the range of the corners along 500 random directions."""
    directions = standard_normal(500, corners.shape[-1], seed=7)
    projections, corner_projections = points @ directions.mT, corners @ directions.mT
    return torch.maximum(projections - corner_projections.amax(0), corner_projections.amin(0) - projections).amax()


@claim("B10.1-4")
def attention_output_lies_in_the_convex_hull_of_the_values() -> Evidence:
    """The weights exp(qᵀk_t) / Σ_u exp(qᵀk_u) sum to 1; the output is in the values' hull (book eqs. 10.1-10.5)."""
    query, keys, values = one_query()
    output, weights = attention(query, keys, values, scale=1.0)
    exponentials = torch.tensor([exp(float(query[0] @ key)) for key in keys], dtype=torch.float64)
    return all_of(
        formula=close(weights[0], exponentials / exponentials.sum(), rtol=1e-12),
        sum_to_one=close(weights.sum(), 1.0, atol=1e-14),
        in_the_convex_hull=less_equal(hull_violation(output, values), 1e-12),
        invariant_to_score_shifts=close(attention_weights(query, keys + query, scale=1.0), weights, rtol=1e-9),
    )


@erratum("B10.1-4", printed="v = Σ_{k=0}^T α_t v_t", right="v = Σ_{t=0}^T α_t v_t")
def the_weighted_sum_runs_over_t() -> Correction:
    """Summed over k, all T + 1 terms are equal: the summand has no k, and t is undefined (book eq. 10.5)."""
    query, keys, values = one_query()
    output, weights = attention(query, keys, values, scale=1.0)
    printed_sum = sum(weights[0, -1] * values[-1] for _ in values)  # t keeps its last value
    expected = scaled_dot_product_attention(query, keys, values, scale=1.0)
    assert isinstance(printed_sum, Tensor)
    return Correction(
        printed=all_of(
            value=close(printed_sum, expected[0], rtol=1e-6),
            hull=less_equal(hull_violation(printed_sum[None], values), 1e-12),
        ),
        corrected=all_of(
            value=close(output, expected, rtol=1e-12), hull=less_equal(hull_violation(output, values), 1e-12)
        ),
    )


@claim("D2.2.3")
def attention_averages_projected_values() -> Evidence:
    """Each output is a weighted mean of rows of V W^V; a single key returns its value (Diehl sec. 2.2)."""
    targets, sources = standard_normal(5, 3), standard_normal(7, 4, seed=1)
    query, key, value = (
        targets @ standard_normal(3, 6, seed=2),
        sources @ standard_normal(4, 6, seed=3),
        sources @ standard_normal(4, 2, seed=4),
    )
    output, weights = attention(query, key, value, scale=1.0)
    return all_of(
        rows_sum_to_one=close(weights.sum(-1), 1.0, atol=1e-14),
        in_the_convex_hull=less_equal(hull_violation(output, value), 1e-12),
        one_key=close(attention(query, key[:1], value[:1]).output, value[:1].expand(5, 2), rtol=1e-14),
        library_without_scale=close(output, scaled_dot_product_attention(query, key, value, scale=1.0), rtol=1e-10),
        library_with_scale=close(
            attention(query, key, value).output, scaled_dot_product_attention(query, key, value), rtol=1e-10
        ),
    )


@claim("D2.2.3")
def attention_weights_are_not_elementwise() -> Evidence:
    """Every weight depends on every score: ∂α_i/∂a_j = α_i (δ_ij − α_j) ≠ 0, also off the diagonal."""
    scores = standard_normal(6)
    jacobian = jacrev(lambda a: a.softmax(-1))(scores)
    weights = scores.softmax(-1)
    off_diagonal = jacobian[~torch.eye(6, dtype=torch.bool)]
    return all_of(
        formula=close(jacobian, weights.diag() - weights.outer(weights), atol=1e-14),
        nonzero_off_the_diagonal=greater_equal(off_diagonal.abs().min(), 1e-4),
        elementwise_tanh_off_the_diagonal=close(jacrev(torch.tanh)(scores)[~torch.eye(6, dtype=torch.bool)], 0.0),
    )


@claim("B10.1-5", "D2.2.3")
def dot_products_have_variance_equal_to_the_width() -> Evidence:
    """Var(qᵀk) = d for independent entries of variance 1, and Var(qᵀk/√d) = 1 (book sec. 10.1)."""
    widths = (4, 64, 512)
    products = torch.stack(
        [(standard_normal(20_000, d, seed=d) * standard_normal(20_000, d, seed=d + 1)).sum(1) for d in widths]
    )
    size = torch.tensor(widths, dtype=torch.float64)
    return all_of(
        mean=close(products.mean(1) / size.sqrt(), 0.0, atol=0.03),
        variance=close(products.var(1) / size, 1.0, atol=0.05),
        scaled=close((products / size.sqrt()[:, None]).var(1), 1.0, atol=0.05),
        growth_exponent=rate(size, products.var(1), 1.0, atol=0.02),
    )


@claim("B10.1-5", "D2.2.3")
def softmax_saturates_without_the_scale() -> Evidence:
    """Without 1/√d the weights' entropy and Jacobian vanish as d grows; with it both remain (book sec. 10.1)."""
    widths = (4, 64, 1_024)
    entropy, jacobian_norm = torch.zeros(2, len(widths)), torch.zeros(2, len(widths))
    for column, d in enumerate(widths):
        query, keys = standard_normal(200, 1, d, seed=d), standard_normal(200, 16, d, seed=d + 1)
        for row, scale in enumerate((1.0, d**-0.5)):
            weights = attention_weights(query, keys, scale=scale)[:, 0]
            entropy[row, column] = attention_entropy(weights).mean()
            jacobian_norm[row, column] = vmap(lambda p: p.diag() - p.outer(p))(weights).flatten(1).norm(dim=1).mean()
    return all_of(
        unscaled_entropy_decreases=less_equal(entropy[0].diff(), -0.1),
        unscaled_entropy_is_near_zero=less_equal(entropy[0, -1], 0.12),
        unscaled_jacobian_vanishes=less_equal(jacobian_norm[0, -1], 0.25 * jacobian_norm[1, -1]),
        scaled_entropy_is_constant=close(entropy[1], float(entropy[1].mean()), rtol=0.06),
        scaled_jacobian_is_constant=close(jacobian_norm[1], float(jacobian_norm[1].mean()), rtol=0.1),
    )


@claim("Z11.10")
def attention_in_matrix_form_equals_a_loop_over_queries() -> Evidence:
    """softmax(QKᵀ/√d) V is a softmax and a weighted sum for each query and batch element (Zhao sec. 11)."""
    query, key, value = standard_normal(2, 3, 4), standard_normal(2, 5, 4, seed=1), standard_normal(2, 5, 6, seed=2)
    output, weights = attention(query, key, value)
    rows = torch.stack(
        [torch.stack([((k @ q) / 2).softmax(0) @ v for q in qs]) for qs, k, v in zip(query, key, value, strict=True)]
    )
    keys_order, query_order = torch.tensor([3, 0, 4, 1, 2]), torch.tensor([2, 0, 1])
    return all_of(
        loop=close(output, rows, rtol=1e-12),
        library=close(output, scaled_dot_product_attention(query, key, value), rtol=1e-10),
        fused=close(fused_attention(query, key, value), rows, rtol=1e-10),
        rows_sum_to_one=close(weights.sum(-1), 1.0, atol=1e-14),
        invariant_to_key_order=close(
            attention(query, key[:, keys_order], value[:, keys_order]).output, output, rtol=1e-10
        ),
        equivariant_to_query_order=close(attention(query[:, query_order], key, value).output, output[:, query_order]),
    )


@claim("D2.2.5", "B10.1-7")
def attention_cost_is_quadratic_in_the_length() -> Evidence:
    """n_q n_k (k + v) multiplications and n_q n_k stored weights: exponent 2 in the length (Diehl sec. 2.2)."""
    lengths = (32, 64, 128, 256)
    num_multiplications, num_weights = [], []
    for n in lengths:
        query, key, value = standard_normal(n, 8), standard_normal(n, 8, seed=1), standard_normal(n, 12, seed=2)
        with FlopCounterMode(display=False) as counter:
            weights = attention(query, key, value).weights
        num_multiplications.append(counter.get_total_flops() / 2)  # a multiplication and an addition count as two
        num_weights.append(float(weights.numel()))
    size = torch.tensor(lengths, dtype=torch.float64)
    return all_of(
        multiplications=close(torch.tensor(num_multiplications), (size.square() * (8 + 12)).float()),
        multiplications_exponent=rate(size, torch.tensor(num_multiplications), 2.0, atol=1e-6),
        weights_exponent=rate(size, torch.tensor(num_weights), 2.0, atol=1e-6),
    )


@claim("D2.2.5", "B10.1-7")
def fused_attention_memory_is_linear_in_the_length() -> Evidence:
    """Memory saved for the backward pass grows as n² with stored weights, as n with a fused kernel (book sec. 10.1)."""

    def saved_elements(n: int, *, fused: bool) -> float:
        query, key, value = (standard_normal(1, 1, n, 8, seed=s).float().requires_grad_() for s in (0, 1, 2))
        return count_saved_numbers(partial(fused_attention if fused else attention, query, key, value))

    lengths = (256, 512, 1_024)
    size = torch.tensor(lengths, dtype=torch.float64)
    return all_of(
        stored_weights=rate(size, torch.tensor([saved_elements(n, fused=False) for n in lengths]), 2.0, atol=0.1),
        fused=rate(size, torch.tensor([saved_elements(n, fused=True) for n in lengths]), 1.0, atol=0.1),
    )


@claim("C-13")
def attention_weight_on_matches_counts_them() -> Evidence:
    """If matches score λ and others 0, c matches of n get weight c·e^λ / (c·e^λ + n − c) (Diehl sec. 2.2).

    Solved for c, this counts the last letter: 2 in abbca, 3 in abbcb, 1 in bbbba.
    """

    def match_weight(word: str, match_score: float) -> Tensor:
        letters = torch.tensor([ord(letter) - ord("a") for letter in word])
        x = torch.nn.functional.one_hot(letters, 3).double()
        weights = attention_weights(x[-1:], x, scale=match_score)
        return (weights[0] * (letters == letters[-1])).sum()

    words, counts = ("abbca", "abbcb", "bbbba"), torch.tensor([2.0, 3.0, 1.0], dtype=torch.float64)
    weight = torch.stack([match_weight(word, 1.5) for word in words])
    odds = weight / (1 - weight) / exp(1.5)  # c / (n − c)
    layer = MultiHeadAttention(AttentionWidths(3, 3, 3, 3), 1, bias=False, scale=1.5).double()
    for part in (layer.query, layer.key, layer.value, layer.out_proj):
        part.weight.data = torch.eye(3, dtype=torch.float64)
    one_hot = torch.nn.functional.one_hot(torch.tensor([[0, 1, 1, 2, 1]]), 3).double()  # abbcb
    weights_by_count = torch.stack([match_weight("b" * (9 - c) + "a" * c, 1.5) for c in range(1, 10)])
    return all_of(
        formula=close(weight, counts * exp(1.5) / (counts * exp(1.5) + 5 - counts), rtol=1e-12),
        counts=close(5 * odds / (1 + odds), counts, rtol=1e-9),
        output_of_a_layer=close(layer(one_hot, one_hot, one_hot)[0, -1, 1], weight[1], rtol=1e-12),
        increases_with_the_count=greater_equal(weights_by_count.diff(), 0.01),
    )


@claim("B10.1.1-13")
def all_positions_are_computed_in_one_call() -> Evidence:
    """Causal attention of T queries at once equals T calls with one more key each (book sec. 10.1.1)."""
    query, key, value = (standard_normal(2, 3, 11, 4, seed=seed) for seed in range(3))
    steps = [
        fused_attention(query[:, :, t : t + 1], key[:, :, : t + 1], value[:, :, : t + 1], causal=True)
        for t in range(11)
    ]
    mask, bias = torch.rand(11, 11, generator=torch.Generator().manual_seed(0)) < 0.7, standard_normal(11, 11, seed=3)
    masked = fused_attention(query, key, value, mask, bias=bias, scale=0.3, causal=True)
    return all_of(
        one_call=close(fused_attention(query, key, value, causal=True), torch.cat(steps, 2), atol=1e-12),
        mask_and_bias=close(
            masked, attention(query, key, value, mask & causal_mask(11), bias=bias, scale=0.3).output, atol=1e-12
        ),
    )


@erratum(
    "B10.1.1-13",
    printed="the number of operations is constant",
    right="the number of sequential operations is constant; the total grows as T²",
)
def only_the_sequential_operations_are_constant() -> Correction:
    """The longest chain of dependent operations is independent of T; the total is of order T² d (book sec. 10.1.1)."""
    torch.manual_seed(0)
    layer, lengths = SelfAttention(8, 1), (256, 512, 1_024)
    multiplications = [
        count_multiplications(partial(unfused_self_attention, layer, torch.randn(1, n, 8))) for n in lengths
    ]
    chains = [float(longest_operation_chain(unfused_self_attention(layer, torch.randn(1, n, 8)))) for n in lengths]
    size = torch.tensor(lengths, dtype=torch.float64)
    return Correction(
        printed=rate(size, torch.tensor(multiplications), 0.0, atol=0.1),
        corrected=all_of(
            chain=rate(size, torch.tensor(chains), 0.0, atol=1e-6),
            work=rate(size, torch.tensor(multiplications), 2.0, atol=0.1),
        ),
    )
