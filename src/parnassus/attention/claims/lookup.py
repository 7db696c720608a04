"""Claims about softmax and lookups (Diehl sec. 2, Zhao sec. 11, book sec. 10.1.3)."""

from functools import partial
from math import e

import torch
from scipy.optimize import nnls
from torch import Tensor, nn
from torch.func import jacrev, vmap

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal, raises, runs
from parnassus.attention.core.dot_product import attention, masked_softmax
from parnassus.attention.core.lookup import (
    attention_pooling,
    average_pooling,
    hard_lookup,
    hardmax,
    linear_lookup,
    soft_lookup,
)
from parnassus.attention.core.masks import causal_mask
from parnassus.attention.core.scores import BilinearScore, cosine_score, dot_score, gaussian_score, scaled_score
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.efficient.neighbour_mixing import NeighbourMixing
from parnassus.attention.regression.kernels import similarity
from parnassus.losses.classification import softmax, softmax_jacobian
from parnassus.probability import standard_normal
from parnassus.recurrent.encoder import RecurrentEncoder

LAMBDAS = torch.tensor([0.0, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0], dtype=torch.float64)


@claim("D2.1.1", "C-03")
def softmax_has_the_properties_of_its_lemma() -> Evidence:
    """Entries in (0, 1], sum 1, invariance to shifts, softmax(λx)_i ≤ exp(λ(x_i − max x)) (Diehl lem. 2.1)."""
    x = standard_normal(50, 6)
    scaled = softmax(LAMBDAS[:, None, None] * x)
    top = x.amax(-1, keepdim=True)
    bound = (LAMBDAS[:, None, None] * (x - top)).exp()
    not_largest = x < top
    return all_of(
        positive=greater_equal(softmax(x), 1e-12),
        below_one=less_equal(softmax(x), 1 - 1e-6),
        single_entry=close(softmax(x[:, :1]), 1.0),
        sum_one=close(softmax(x).sum(-1), 1.0, atol=1e-14),
        shift=close(softmax(x + 37.0), softmax(x), atol=1e-13),
        bound=less_equal(scaled[:, not_largest], bound[:, not_largest] * (1 + 1e-12)),
        argmax_in_the_limit=close(softmax(1e4 * x), hardmax(x), atol=1e-10),
        uniform_at_zero=close(softmax(0 * x), 1 / 6, atol=1e-15),
    )


@claim("D2.1.1")
def the_limit_of_softmax_is_uniform_over_ties() -> Evidence:
    """If several entries are maximal, softmax(λx) tends to the uniform distribution over them (Diehl sec. 2.1)."""
    x = torch.tensor([[2.0, 5.0, 5.0, 1.0], [3.0, 3.0, 3.0, 3.0]], dtype=torch.float64)
    halves = torch.tensor([[0.0, 0.5, 0.5, 0.0], [0.25, 0.25, 0.25, 0.25]], dtype=torch.float64)
    return all_of(limit=close(softmax(100 * x), halves, atol=1e-15), hardmax=close(hardmax(x), halves))


@claim("D2.1.1")
def the_jacobian_of_softmax_subtracts_the_mean() -> Evidence:
    """∂softmax/∂x = diag(p) − p pᵀ, so that J y = p ⊙ (y − E_p[y]) (Diehl sec. 2.1)."""
    x, y = standard_normal(20, 5), standard_normal(20, 5, seed=1)
    p, jacobian = softmax(x), softmax_jacobian(x)
    return all_of(
        autograd=close(jacobian, vmap(jacrev(softmax))(x), atol=1e-14),
        centred=close((jacobian @ y[..., None])[..., 0], p * (y - (p * y).sum(-1, keepdim=True)), atol=1e-14),
    )


@claim("C-03")
def shifted_softmax_is_stable_for_inputs_of_any_size() -> Evidence:
    """With the largest entry subtracted first it equals torch's for inputs of any size (Diehl sec. 2.1)."""
    x = torch.cat([scale * standard_normal(20, 9, seed=seed) for seed, scale in enumerate((1.0, 1e3, 1e8))])
    naive = x.exp() / x.exp().sum(-1, keepdim=True)
    return all_of(
        library=close(softmax(x), x.softmax(-1), atol=1e-15),
        mask_of_all_true=close(masked_softmax(x, torch.ones_like(x, dtype=torch.bool)), x.softmax(-1)),
        without_the_shift_small_inputs=close(naive[:20], softmax(x[:20]), atol=1e-14),
        without_the_shift_large_inputs_are_nan=greater_equal(naive.isnan().any(-1)[20:].double().mean(), 0.5),
    )


@claim("D2.1.2")
def softmax_normalises_one_axis_only() -> Evidence:
    """Over the last axis of (b, n, c) all sums are 1, over the others they are not (Diehl sec. 2.1)."""
    tensor = standard_normal(3, 4, 5)
    p = softmax(tensor)
    row_by_row = torch.stack([torch.stack([softmax(row) for row in matrix]) for matrix in tensor])
    return all_of(
        last_axis=close(p.sum(-1), 1.0, atol=1e-15),
        row_by_row=close(p, row_by_row, atol=1e-16),
        middle_axis_is_not_normalised=greater_equal((p.sum(1) - 1).abs().max(), 0.1),
        first_axis_is_not_normalised=greater_equal((p.sum(0) - 1).abs().max(), 0.1),
    )


@erratum("D2.1.2", printed="Σ_{c′=1}^{c}, up to the entry's own index", right="Σ over all c′ of the axis")
def the_softmax_denominator_sums_over_the_whole_axis() -> Correction:
    """As printed, the sum ends at the entry's own index c, and the row does not sum to 1 (Diehl sec. 2.1)."""
    exponentials = standard_normal(3, 4, 5).exp()
    printed = exponentials / exponentials.cumsum(-1)
    corrected = exponentials / exponentials.sum(-1, keepdim=True)
    return Correction(
        printed=close(printed.sum(-1), 1.0, atol=1e-6), corrected=close(corrected.sum(-1), 1.0, atol=1e-14)
    )


@claim("D2.2.1")
def a_linear_lookup_is_linear_in_queries_and_values() -> Evidence:
    """lookup(e_3) = v_3, lookup(e_3 + 2e_5) = v_3 + 2v_5; linear in queries and in values (Diehl ex. 2.3)."""
    keys, values, other = torch.eye(8, dtype=torch.float64), standard_normal(8, 3), standard_normal(8, 3, seed=1)
    a, b = standard_normal(5, 8, seed=2), standard_normal(5, 8, seed=3)

    def lookup(query: Tensor, value: Tensor = values) -> Tensor:
        return linear_lookup(query, keys, value).output

    jacobian = vmap(jacrev(lambda q: lookup(q[None])[0]))(a)
    return all_of(
        value_of_the_third_key=close(lookup(keys[2:3]), values[2:3]),
        linear_combination=close(lookup((keys[2] + 2 * keys[4])[None]), (values[2] + 2 * values[4])[None], atol=1e-15),
        linear_in_the_query=close(lookup(2 * a - 3 * b), 2 * lookup(a) - 3 * lookup(b), atol=1e-13),
        linear_in_the_values=close(lookup(a, 2 * values - other), 2 * lookup(a) - lookup(a, other), atol=1e-13),
        differentiable=close(jacobian, values.mT.expand(5, 3, 8), atol=1e-15),
        coefficients_can_be_negative=less_equal(linear_lookup(a, keys, values).weights.min(), -1.0),
    )


@claim("D2.2.2", "B10.1.3-1")
def a_soft_lookup_sharpens_with_the_scale_of_the_query() -> Evidence:
    """For the query e_3, v_3 has weight e/(e + n − 1), 0.2797 for n = 8; for λe_3 it tends to 1 (Diehl ex. 2.3)."""
    sizes = [2, 8, 50]
    weights = [soft_lookup(eye[2 % n : 2 % n + 1], eye, eye).weights.max() for n in sizes for eye in [identity(n)]]
    basis, values = identity(8), standard_normal(8, 3)
    weight_by_scale = [soft_lookup(scale * basis[2:3], basis, values).weights[0, 2] for scale in LAMBDAS.tolist()]
    return all_of(
        weight=close(torch.stack(weights), torch.tensor([e / (e + n - 1) for n in sizes]), atol=1e-7),
        weight_with_eight_keys=close(weights[1], 0.2797, atol=5e-5),
        output_is_not_the_value=greater_equal((soft_lookup(basis[2:3], basis, values).output - values[2]).norm(), 0.1),
        weight_increases_with_scale=greater_equal(torch.stack(weight_by_scale).diff(), 0.0),
        limit_is_the_value=close(soft_lookup(100 * basis[2:3], basis, values).output, values[2:3], atol=1e-12),
        limit_is_the_hard_lookup=close(
            soft_lookup(3000 * standard_normal(9, 8), basis, values).output,
            hard_lookup(standard_normal(9, 8), basis, values).output,
            atol=1e-9,
        ),
        weights_sum_to_one=close(soft_lookup(standard_normal(9, 8), basis, values).weights.sum(-1), 1.0, atol=1e-14),
    )


def identity(size: int) -> Tensor:
    return torch.eye(size, dtype=torch.float64)


@claim("B10.1.3-1", "Z11.3")
def a_soft_lookup_tends_to_a_hard_one_at_low_temperature() -> Evidence:
    """softmax(a/T) tends to the best key as T → 0 and to uniform weights as T → ∞, for any score (book sec. 10.1.3)."""
    query, key, value = standard_normal(20, 6), standard_normal(30, 6, seed=1), standard_normal(30, 2, seed=2)
    scores = {"dot": dot_score, "scaled": scaled_score, "cosine": cosine_score, "gaussian": gaussian_score}
    parts = {}
    for name, score in scores.items():
        soft = partial(soft_lookup, query, key, value, score=score)
        hard, mean = hard_lookup(query, key, value, score=score), average_pooling(query, key, value)
        parts[f"{name}_low_temperature"] = close(soft(temperature=1e-5).output, hard.output, atol=1e-6)
        parts[f"{name}_high_temperature"] = close(soft(temperature=1e7).output, mean.output, atol=1e-6)
    weights = soft_lookup(query, key, value).weights
    return all_of(**parts, positive=greater_equal(weights, 1e-12), sum_one=close(weights.sum(-1), 1.0, atol=1e-14))


@claim("Z11.1", "B10.1.3-6")
def pooling_is_linear_in_the_values_and_invariant_to_order() -> Evidence:
    """Σ α(q, k_i) v_i is linear in the values and independent of the order of any number of pairs (Zhao sec. 11)."""
    query, key = standard_normal(4, 5), standard_normal(11, 5, seed=1)
    value, other = standard_normal(11, 3, seed=2), standard_normal(11, 3, seed=3)
    order = torch.randperm(11, generator=torch.Generator().manual_seed(0))
    parts = {}
    for name, weight_function in {"any": dot_score, "kernel": similarity}.items():
        output = attention_pooling(query, key, value, weight_function).output
        loop = torch.stack([sum(w * v for w, v in zip(row, value, strict=True)) for row in weight_function(query, key)])
        parts[f"{name}_loop"] = close(output, loop, atol=1e-13)
        mixed = attention_pooling(query, key, 3 * value - other, weight_function).output
        parts[f"{name}_linear"] = close(
            mixed, 3 * output - attention_pooling(query, key, other, weight_function).output, atol=1e-12
        )
        parts[f"{name}_order"] = close(
            attention_pooling(query, key[order], value[order], weight_function).output, output, atol=1e-13
        )
    lengths = [attention_pooling(query, key[:count], value[:count], similarity).output.shape[0] for count in (1, 5, 11)]
    return all_of(**parts, any_number_of_pairs=close(torch.tensor(lengths), 4))


@claim("Z11.2")
def constraints_on_weights_determine_the_range_of_outputs() -> Evidence:
    """Positive weights give the values' cone, convex ones their hull, one-hot ones a value, equal ones the mean."""
    query, key, value = standard_normal(6, 4), standard_normal(5, 4, seed=1), standard_normal(5, 9, seed=2)
    cone = attention_pooling(query, key, value, similarity).output
    hull = soft_lookup(query, key, value).output
    line = linear_lookup(query, key, value).output
    hard = hard_lookup(query, key, value)
    with_ones, hull_ones = torch.cat([value, torch.ones(5, 1)], 1), torch.cat([hull, torch.ones(6, 1)], 1)
    return all_of(
        cone=less_equal(max(cone_distance(row, value) for row in cone), 1e-8),
        hull=less_equal(max(cone_distance(row, with_ones) for row in hull_ones), 1e-8),
        within_the_extremes=less_equal(hull, value.amax(0)),
        unconstrained_weights_leave_the_cone=greater_equal(max(cone_distance(row, value) for row in line), 0.1),
        one_hot=close(hard.output, value[dot_score(query, key).argmax(-1)]),
        mean=close(average_pooling(query, key, value).output, value.mean(0).expand(6, 9), atol=1e-14),
    )


def cone_distance(target: Tensor, generators: Tensor) -> float:
    """Distance of a point from the cone of these rows, by non-negative least squares."""
    return float(nnls(generators.mT.numpy(), target.numpy())[1])


@claim("C-11")
def values_of_different_magnitudes_show_the_weights_as_digits() -> Evidence:
    """In softmax(Q Kᵀ) V with values 10, 1000 and 10⁶ the digits of the output show the weights (Diehl sec. 2.2)."""
    query, key = 0.5 * standard_normal(1, 3, 4), 0.5 * standard_normal(1, 3, 4, seed=1)
    value = torch.tensor([1.0, 100.0, 100_000.0], dtype=torch.float64)[None, :, None] * 10 * torch.ones(1, 3, 4)
    output, weights = attention(query, key, value, scale=1.0)
    expected = torch.zeros(3, 4, dtype=torch.float64)
    for i in range(3):
        exponentials = torch.stack([(query[0, i] * key[0, j]).sum().exp() for j in range(3)])
        expected[i] = sum(exponentials[j] / exponentials.sum() * value[0, j] for j in range(3))
    return all_of(
        loop=close(output[0], expected, rtol=1e-13),
        soft_lookup=close(soft_lookup(query[0], key[0], value[0]).output, expected, rtol=1e-13),
        columns_are_equal=close(output, output[..., :1].expand_as(output), rtol=1e-14),
        leading_digits_are_the_last_weight=close(output[..., 0] / 1e6, weights[..., 2], atol=2e-3),
    )


@claim("B10.1.3-6")
def attention_has_the_properties_of_a_database_lookup() -> Evidence:
    """Any number of pairs, queries of another type, self-attention weights as a Markov chain (book sec. 10.1.3)."""
    torch.manual_seed(0)
    layer = SelfAttention(8, 2).double()
    transition_matrices = [layer.weights(standard_normal(1, length, 8)) for length in (1, 7, 40)]
    repeated = [
        soft_lookup(
            standard_normal(3, 4),
            *(t.repeat(n, 1) for t in (standard_normal(6, 4, seed=1), standard_normal(6, 2, seed=2))),
        )
        for n in (1, 3)
    ]
    image_text_scores = BilinearScore(12, 5).double()(standard_normal(2, 12), standard_normal(9, 5))
    causal_weights = masked_softmax(standard_normal(6, 6), causal_mask(6))
    return all_of(
        rows_sum_to_one=close(torch.cat([matrix.sum(-1).flatten() for matrix in transition_matrices]), 1.0, atol=1e-13),
        non_negative=greater_equal(torch.stack([matrix.min() for matrix in transition_matrices]), 0.0),
        products_of_weights_sum_to_one=close(
            (transition_matrices[1] @ transition_matrices[1]).sum(-1), 1.0, atol=1e-13
        ),
        duplicated_pairs_change_nothing=close(repeated[1].output, repeated[0].output, atol=1e-13),
        queries_and_keys_of_different_types=close(torch.tensor(image_text_scores.shape), torch.tensor([2, 9])),
        causal_weights_are_triangular=close(causal_weights.triu(1), 0.0),
        heads_differ=greater_equal((transition_matrices[1][:, 0] - transition_matrices[1][:, 1]).abs().max(), 1e-2),
    )


@erratum("B10.1.3-6", printed="CNN and RNN require an input of fixed size", right="neither does; dense layers do")
def recurrent_and_convolutional_networks_take_any_length() -> Correction:
    """A recurrent and a fully convolutional network accept 5 and 50 steps with the same weights (book sec. 10.1.3)."""
    torch.manual_seed(0)
    recurrent, convolution, dense = RecurrentEncoder(7, width=4), NeighbourMixing(3, 2), nn.Linear(15, 4)

    def run_both_lengths() -> None:
        for length in (5, 50):
            recurrent(torch.ones(1, length, dtype=torch.int64))
            convolution(torch.zeros(1, length, 3))

    return Correction(
        printed=raises(RuntimeError, run_both_lengths),
        corrected=all_of(
            any_length=runs(run_both_lengths, unless=RuntimeError),
            dense_layer_fails=raises(RuntimeError, lambda: dense(torch.zeros(1, 150))),
        ),
    )
