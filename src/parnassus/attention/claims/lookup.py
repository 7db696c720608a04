"""Claims about softmax and about looking things up (Diehl sec. 2, Zhao sec. 11, book sec. 10.1.3)."""

from functools import partial
from math import e

import torch
from scipy.optimize import nnls
from torch import Tensor, nn
from torch.func import jacrev, vmap

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, raises, runs
from parnassus.attention.dot_product import attention, masked_softmax
from parnassus.attention.kernels import similarity
from parnassus.attention.lookup import average_pooling, best_of, hard_lookup, linear_lookup, pool, soft_lookup
from parnassus.attention.masks import causal_mask
from parnassus.attention.scores import BilinearScore, cosine_score, dot_score, gaussian_score, scaled_score
from parnassus.attention.self_attention import SelfAttention
from parnassus.losses.classification import softmax, softmax_jacobian

LAMBDAS = torch.tensor([0.0, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0], dtype=torch.float64)


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@claim("D2.1.1", "C-03")
def softmax_obeys_its_lemma() -> Evidence:
    """Entries in (0, 1], sum 1, blind to shifts, softmax(λx)_i ≤ exp(λ(x_i − max x)) (Diehl lem. 2.1)."""
    x = normals(50, 6)
    scaled = softmax(LAMBDAS[:, None, None] * x)
    top = x.amax(-1, keepdim=True)
    bound = (LAMBDAS[:, None, None] * (x - top)).exp()
    others = x < top
    return all_of(
        positive=at_least(softmax(x), 1e-12),
        below_one=at_most(softmax(x), 1 - 1e-6),
        one_if_alone=close(softmax(x[:, :1]), 1.0),
        sum_one=close(softmax(x).sum(-1), 1.0, atol=1e-14),
        shift=close(softmax(x + 37.0), softmax(x), atol=1e-13),
        bound=at_most(scaled[:, others], bound[:, others] * (1 + 1e-12)),
        argmax_in_the_limit=close(softmax(1e4 * x), best_of(x), atol=1e-10),
        without_exponentials_at_zero=close(softmax(0 * x), 1 / 6, atol=1e-15),
    )


@claim("D2.1.1")
def ties_share_the_limit() -> Evidence:
    """If several entries are largest, softmax(λx) tends to the even distribution over them (Diehl sec. 2.1)."""
    x = torch.tensor([[2.0, 5.0, 5.0, 1.0], [3.0, 3.0, 3.0, 3.0]], dtype=torch.float64)
    halves = torch.tensor([[0.0, 0.5, 0.5, 0.0], [0.25, 0.25, 0.25, 0.25]], dtype=torch.float64)
    return all_of(limit=close(softmax(100 * x), halves, atol=1e-15), named=close(best_of(x), halves))


@claim("D2.1.1")
def the_jacobian_of_softmax_pulls_the_mean_off() -> Evidence:
    """∂softmax/∂x = diag(p) − p pᵀ, so that J y = p ⊙ (y − E_p[y]) (Diehl sec. 2.1)."""
    x, y = normals(20, 5), normals(20, 5, seed=1)
    p, jacobian = softmax(x), softmax_jacobian(x)
    return all_of(
        autograd=close(jacobian, vmap(jacrev(softmax))(x), atol=1e-14),
        centred=close((jacobian @ y[..., None])[..., 0], p * (y - (p * y).sum(-1, keepdim=True)), atol=1e-14),
    )


@claim("C-03")
def softmax_by_hand_is_the_library_s_for_any_size_of_input() -> Evidence:
    """With the largest entry taken off first it equals torch's for inputs of any size (Diehl sec. 2.1)."""
    x = torch.cat([scale * normals(20, 9, seed=seed) for seed, scale in enumerate((1.0, 1e3, 1e8))])
    naive = x.exp() / x.exp().sum(-1, keepdim=True)
    return all_of(
        library=close(softmax(x), x.softmax(-1), atol=1e-15),
        masked_with_nothing_hidden=close(masked_softmax(x, torch.ones_like(x, dtype=torch.bool)), x.softmax(-1)),
        without_the_shift_only_small_inputs=close(naive[:20], softmax(x[:20]), atol=1e-14),
        others_are_nan=at_least(naive.isnan().any(-1)[20:].double().mean(), 0.5),
    )


@claim("D2.1.2")
def softmax_along_an_axis_sums_to_one_there_only() -> Evidence:
    """Over the last axis of (b, n, c) all sums are 1, over the others they are not (Diehl sec. 2.1)."""
    tensor = normals(3, 4, 5)
    p = softmax(tensor)
    alone = torch.stack([torch.stack([softmax(row) for row in matrix]) for matrix in tensor])
    return all_of(
        last_axis=close(p.sum(-1), 1.0, atol=1e-15),
        row_by_row=close(p, alone, atol=1e-16),
        not_the_middle_one=at_least((p.sum(1) - 1).abs().max(), 0.1),
        not_the_first=at_least((p.sum(0) - 1).abs().max(), 0.1),
    )


@erratum("D2.1.2", printed="Σ_{c′=1}^{c}, up to the entry's own index", right="Σ over all c′ of the axis")
def the_sum_below_runs_over_the_whole_axis() -> Correction:
    """Read as printed the sum ends at the index c of the entry itself, and the row has another sum (Diehl sec. 2.1)."""
    exponentials = normals(3, 4, 5).exp()
    literal = exponentials / exponentials.cumsum(-1)
    whole = exponentials / exponentials.sum(-1, keepdim=True)
    return Correction(printed=close(literal.sum(-1), 1.0, atol=1e-6), corrected=close(whole.sum(-1), 1.0, atol=1e-14))


@claim("D2.2.1")
def a_linear_lookup_finds_what_the_basis_names() -> Evidence:
    """lookup(e_3) = v_3, lookup(e_3 + 2e_5) = v_3 + 2v_5; linear in queries and in values (Diehl ex. 2.3)."""
    basis, values, other = torch.eye(8, dtype=torch.float64), normals(8, 3), normals(8, 3, seed=1)
    a, b = normals(5, 8, seed=2), normals(5, 8, seed=3)

    def lookup(query: Tensor, value: Tensor = values) -> Tensor:
        return linear_lookup(query, basis, value).output

    slope = vmap(jacrev(lambda q: lookup(q[None])[0]))(a)
    return all_of(
        third=close(lookup(basis[2:3]), values[2:3]),
        mixture=close(lookup((basis[2] + 2 * basis[4])[None]), (values[2] + 2 * values[4])[None], atol=1e-15),
        linear_in_the_query=close(lookup(2 * a - 3 * b), 2 * lookup(a) - 3 * lookup(b), atol=1e-13),
        linear_in_the_values=close(lookup(a, 2 * values - other), 2 * lookup(a) - lookup(a, other), atol=1e-13),
        differentiable=close(slope, values.mT.expand(5, 3, 8), atol=1e-15),
        any_coefficient=at_most(linear_lookup(a, basis, values).weights.min(), -1.0),
    )


@claim("D2.2.2", "B10.1.3-1")
def a_soft_lookup_blurs_and_sharpens_with_the_query() -> Evidence:
    """Asked for e_3, v_3 has weight e/(e + n − 1), 0.2797 for n = 8; asked for λe_3 it tends to 1 (Diehl ex. 2.3)."""
    sizes = [2, 8, 50]
    weights = [soft_lookup(eye[2 % n : 2 % n + 1], eye, eye).weights.max() for n in sizes for eye in [eyes(n)]]
    basis, values = eyes(8), normals(8, 3)
    sharp = [soft_lookup(scale * basis[2:3], basis, values).weights[0, 2] for scale in LAMBDAS.tolist()]
    return all_of(
        weight=close(torch.stack(weights), torch.tensor([e / (e + n - 1) for n in sizes]), atol=1e-7),
        of_eight=close(weights[1], 0.2797, atol=5e-5),
        not_the_value=at_least((soft_lookup(basis[2:3], basis, values).output - values[2]).norm(), 0.1),
        sharpens=at_least(torch.stack(sharp).diff(), 0.0),
        to_the_value=close(soft_lookup(100 * basis[2:3], basis, values).output, values[2:3], atol=1e-12),
        a_distribution=close(soft_lookup(normals(9, 8), basis, values).weights.sum(-1), 1.0, atol=1e-14),
    )


def eyes(size: int) -> Tensor:
    return torch.eye(size, dtype=torch.float64)


@claim("B10.1.3-1", "Z11.3")
def cooling_turns_a_soft_lookup_into_a_hard_one() -> Evidence:
    """softmax(a/T) tends to the best key as T → 0 and to equal weights as T → ∞, for any score (book sec. 10.1.3)."""
    query, key, value = normals(20, 6), normals(30, 6, seed=1), normals(30, 2, seed=2)
    scores = {"dot": dot_score, "scaled": scaled_score, "cosine": cosine_score, "gaussian": gaussian_score}
    parts = {}
    for name, score in scores.items():
        soft = partial(soft_lookup, query, key, value, score=score)
        hard, mean = hard_lookup(query, key, value, score=score), average_pooling(query, key, value)
        parts[f"{name}_cold"] = close(soft(temperature=1e-5).output, hard.output, atol=1e-6)
        parts[f"{name}_hot"] = close(soft(temperature=1e7).output, mean.output, atol=1e-6)
    weights = soft_lookup(query, key, value).weights
    return all_of(**parts, positive=at_least(weights, 1e-12), sum_one=close(weights.sum(-1), 1.0, atol=1e-14))


@claim("Z11.1", "B10.1.3-6")
def pooling_is_linear_in_the_values_and_blind_to_order() -> Evidence:
    """Σ α(q, k_i) v_i is linear in the values, and the pairs may come in any order and number (Zhao sec. 11)."""
    query, key = normals(4, 5), normals(11, 5, seed=1)
    value, other = normals(11, 3, seed=2), normals(11, 3, seed=3)
    order = torch.randperm(11, generator=torch.Generator().manual_seed(0))
    parts = {}
    for name, weigh in {"any": dot_score, "kernel": similarity}.items():
        answer = pool(query, key, value, weigh).output
        loop = torch.stack([sum(w * v for w, v in zip(row, value, strict=True)) for row in weigh(query, key)])
        parts[f"{name}_loop"] = close(answer, loop, atol=1e-13)
        mixed = pool(query, key, 3 * value - other, weigh).output
        parts[f"{name}_linear"] = close(mixed, 3 * answer - pool(query, key, other, weigh).output, atol=1e-12)
        parts[f"{name}_order"] = close(pool(query, key[order], value[order], weigh).output, answer, atol=1e-13)
    lengths = [pool(query, key[:count], value[:count], similarity).output.shape[0] for count in (1, 5, 11)]
    return all_of(**parts, any_number_of_pairs=close(torch.tensor(lengths), 4))


@claim("Z11.2")
def four_kinds_of_weights_reach_four_sets() -> Evidence:
    """Positive weights reach the values' cone, convex ones their hull, a single 1 one of them, equal ones the mean."""
    query, key, value = normals(6, 4), normals(5, 4, seed=1), normals(5, 9, seed=2)
    cone = pool(query, key, value, similarity).output
    hull = soft_lookup(query, key, value).output
    line = linear_lookup(query, key, value).output
    hard = hard_lookup(query, key, value)
    with_ones, hull_ones = torch.cat([value, torch.ones(5, 1)], 1), torch.cat([hull, torch.ones(6, 1)], 1)
    return all_of(
        cone=at_most(max(residual(row, value) for row in cone), 1e-8),
        hull=at_most(max(residual(row, with_ones) for row in hull_ones), 1e-8),
        within_the_extremes=at_most(hull, value.amax(0)),
        any_weights_leave_the_cone=at_least(max(residual(row, value) for row in line), 0.1),
        look_up=close(hard.output, value[dot_score(query, key).argmax(-1)]),
        mean=close(average_pooling(query, key, value).output, value.mean(0).expand(6, 9), atol=1e-14),
    )


def residual(target: Tensor, generators: Tensor) -> float:
    """How far a point is from the cone of these rows, by non-negative least squares."""
    return float(nnls(generators.mT.numpy(), target.numpy())[1])


@claim("C-11")
def values_of_far_apart_sizes_spell_out_the_weights() -> Evidence:
    """In softmax(Q Kᵀ) V with values 10, 1000 and 10⁶ the digits spell out the weights (Diehl sec. 2.2)."""
    query, key = 0.5 * normals(1, 3, 4), 0.5 * normals(1, 3, 4, seed=1)
    value = torch.tensor([1.0, 100.0, 100_000.0], dtype=torch.float64)[None, :, None] * 10 * torch.ones(1, 3, 4)
    output, weights = attention(query, key, value, scale=1.0)
    by_hand = torch.zeros(3, 4, dtype=torch.float64)
    for i in range(3):
        matches = torch.stack([(query[0, i] * key[0, j]).sum().exp() for j in range(3)])
        by_hand[i] = sum(matches[j] / matches.sum() * value[0, j] for j in range(3))
    return all_of(
        by_hand=close(output[0], by_hand, rtol=1e-13),
        all_columns_alike=close(output, output[..., :1].expand_as(output), rtol=1e-14),
        leading_digits_are_the_last_weight=close(output[..., 0] / 1e6, weights[..., 2], atol=2e-3),
    )


@claim("B10.1.3-6")
def the_data_base_view_holds_for_attention() -> Evidence:
    """Any number of pairs will do, kinds may differ, and self-attention is a random walk (book sec. 10.1.3)."""
    torch.manual_seed(0)
    layer = SelfAttention(8, 2).double()
    walks = [layer.weights(normals(1, length, 8)) for length in (1, 7, 40)]
    twice = [
        soft_lookup(normals(3, 4), *(t.repeat(n, 1) for t in (normals(6, 4, seed=1), normals(6, 2, seed=2))))
        for n in (1, 3)
    ]
    image_asks_text = BilinearScore(12, 5).double()(normals(2, 12), normals(9, 5))
    past = masked_softmax(normals(6, 6), causal_mask(6))
    return all_of(
        rows_sum_to_one=close(torch.cat([walk.sum(-1).flatten() for walk in walks]), 1.0, atol=1e-13),
        no_negative_step=at_least(torch.stack([walk.min() for walk in walks]), 0.0),
        two_steps_are_a_walk_too=close((walks[1] @ walks[1]).sum(-1), 1.0, atol=1e-13),
        copies_change_nothing=close(twice[1].output, twice[0].output, atol=1e-13),
        other_kinds_of_queries=close(torch.tensor(image_asks_text.shape), torch.tensor([2, 9])),
        a_causal_walk_never_goes_on=close(past.triu(1), 0.0),
        heads_answer_differently=at_least((walks[1][:, 0] - walks[1][:, 1]).abs().max(), 1e-2),
    )


@erratum("B10.1.3-6", printed="CNN and RNN require an input of fixed size", right="neither does; dense layers do")
def recurrent_and_convolutional_networks_take_any_length() -> Correction:
    """A recurrent and a fully convolutional network read 5 steps and 50 with the same weights (book sec. 10.1.3)."""
    torch.manual_seed(0)
    recurrent, convolution, dense = nn.GRU(3, 4, batch_first=True), nn.Conv1d(3, 4, 3), nn.Linear(15, 4)

    def read_both_lengths() -> None:
        for length in (5, 50):
            recurrent(torch.zeros(1, length, 3))
            convolution(torch.zeros(1, 3, length))

    return Correction(
        printed=raises(RuntimeError, read_both_lengths),
        corrected=all_of(
            any_length=runs(read_both_lengths, unless=RuntimeError),
            not_a_dense_layer=raises(RuntimeError, lambda: dense(torch.zeros(1, 150))),
        ),
    )
