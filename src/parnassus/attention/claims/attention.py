"""Claims about attention itself: what it computes, why it is scaled, what it costs (Diehl sec. 2.2; book sec. 10.1)."""

from functools import partial
from math import exp

import torch
from torch import Tensor
from torch.func import jacrev, vmap
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum, rate
from parnassus.attention.dot_product import attend, attention, attention_weights
from parnassus.attention.experiments.scaled_or_not import longest_chain, multiplications, spelled_out
from parnassus.attention.maps import attention_entropy
from parnassus.attention.self_attention import SelfAttention


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def one_query() -> tuple[Tensor, Tensor, Tensor]:
    """A token among six, and what maps of width 4 make of them: its query, their keys and values."""
    tokens = normals(6, 5)
    query, keys, values = (tokens @ normals(4, 5, seed=s).mT / 3 + normals(4, seed=9 + s) / 3 for s in (1, 2, 3))
    return query[-1:], keys, values


def outside_hull(points: Tensor, corners: Tensor) -> Tensor:
    """By how much points leave the range of the corners in any of 500 directions."""
    directions = normals(500, corners.shape[-1], seed=7)
    along, range_of = points @ directions.mT, corners @ directions.mT
    return torch.maximum(along - range_of.amax(0), range_of.amin(0) - along).amax()


@claim("B10.1-4")
def one_query_mixes_the_values() -> Evidence:
    """The weights exp(qᵀk_t) / Σ_u exp(qᵀk_u) sum to 1, and the mixture lies among the values (book eqs. 10.1-10.5)."""
    query, keys, values = one_query()
    mixed, weights = attention(query, keys, values, scale=1.0)
    powers = torch.tensor([exp(float(query[0] @ key)) for key in keys], dtype=torch.float64)
    return all_of(
        as_written=close(weights[0], powers / powers.sum(), rtol=1e-12),
        sum_to_one=close(weights.sum(), 1.0, atol=1e-14),
        in_the_convex_hull=at_most(outside_hull(mixed, values), 1e-12),
        adding_to_all_scores_changes_nothing=close(
            attention_weights(query, keys + query, scale=1.0), weights, rtol=1e-9
        ),
    )


@erratum("B10.1-4", printed="v = Σ_{k=0}^T α_t v_t", right="v = Σ_{t=0}^T α_t v_t")
def the_last_sum_runs_over_t() -> Correction:
    """Summed over k, the terms are all alike: T + 1 times one value, for a t that nobody chose (book eq. 10.5)."""
    query, keys, values = one_query()
    mixed, weights = attention(query, keys, values, scale=1.0)
    last = sum(weights[0, -1] * values[-1] for _ in values)  # the t left over from the equation before
    expected = scaled_dot_product_attention(query, keys, values, scale=1.0)
    assert isinstance(last, Tensor)
    return Correction(
        printed=all_of(
            value=close(last, expected[0], rtol=1e-6), hull=at_most(outside_hull(last[None], values), 1e-12)
        ),
        corrected=all_of(value=close(mixed, expected, rtol=1e-12), hull=at_most(outside_hull(mixed, values), 1e-12)),
    )


@claim("D2.2.3")
def attention_averages_projected_values() -> Evidence:
    """Each row is a mean of rows of V W^V; one key gives its own value whatever is asked (Diehl sec. 2.2)."""
    asking, holding = normals(5, 3), normals(7, 4, seed=1)
    query, key, value = asking @ normals(3, 6, seed=2), holding @ normals(4, 6, seed=3), holding @ normals(4, 2, seed=4)
    mixed, weights = attention(query, key, value, scale=1.0)
    return all_of(
        rows_sum_to_one=close(weights.sum(-1), 1.0, atol=1e-14),
        in_the_convex_hull=at_most(outside_hull(mixed, value), 1e-12),
        one_key=close(attention(query, key[:1], value[:1]).output, value[:1].expand(5, 2), rtol=1e-14),
        library_without_scale=close(mixed, scaled_dot_product_attention(query, key, value, scale=1.0), rtol=1e-10),
        library_with_scale=close(
            attention(query, key, value).output, scaled_dot_product_attention(query, key, value), rtol=1e-10
        ),
    )


@claim("D2.2.3")
def attention_is_no_entrywise_nonlinearity() -> Evidence:
    """Every weight depends on every score: ∂α_i/∂a_j = α_i (δ_ij − α_j) is nowhere 0, not even off the diagonal."""
    scores = normals(6)
    jacobian = jacrev(lambda a: a.softmax(-1))(scores)
    weights = scores.softmax(-1)
    off_diagonal = jacobian[~torch.eye(6, dtype=torch.bool)]
    return all_of(
        formula=close(jacobian, weights.diag() - weights.outer(weights), atol=1e-14),
        all_depend_on_all=at_least(off_diagonal.abs().min(), 1e-4),
        entrywise_would_not=close(jacrev(torch.tanh)(scores)[~torch.eye(6, dtype=torch.bool)], 0.0),
    )


@claim("B10.1-5", "D2.2.3")
def scores_have_the_variance_of_the_width() -> Evidence:
    """Var(qᵀk) = d for independent entries of variance 1, and Var(qᵀk/√d) = 1 (book sec. 10.1)."""
    widths = (4, 64, 512)
    products = torch.stack([(normals(20_000, d, seed=d) * normals(20_000, d, seed=d + 1)).sum(1) for d in widths])
    size = torch.tensor(widths, dtype=torch.float64)
    return all_of(
        mean=close(products.mean(1) / size.sqrt(), 0.0, atol=0.03),
        variance=close(products.var(1) / size, 1.0, atol=0.05),
        scaled=close((products / size.sqrt()[:, None]).var(1), 1.0, atol=0.05),
        grows_like_d=rate(size, products.var(1), 1.0, atol=0.02),
    )


@claim("B10.1-5", "D2.2.3")
def without_the_scale_the_softmax_saturates() -> Evidence:
    """Unscaled, the weights sharpen to one key and their slopes die as d grows; 1/√d keeps both (book sec. 10.1)."""
    widths = (4, 64, 1_024)
    entropy, slope = torch.zeros(2, len(widths)), torch.zeros(2, len(widths))
    for column, d in enumerate(widths):
        query, keys = normals(200, 1, d, seed=d), normals(200, 16, d, seed=d + 1)
        for row, scale in enumerate((1.0, d**-0.5)):
            weights = attention_weights(query, keys, scale=scale)[:, 0]
            entropy[row, column] = attention_entropy(weights).mean()
            slope[row, column] = vmap(lambda p: p.diag() - p.outer(p))(weights).flatten(1).norm(dim=1).mean()
    return all_of(
        unscaled_entropy_falls=at_most(entropy[0].diff(), -0.1),
        unscaled_entropy_is_near_zero=at_most(entropy[0, -1], 0.12),
        unscaled_slope_dies=at_most(slope[0, -1], 0.25 * slope[1, -1]),
        scaled_entropy_stays=close(entropy[1], float(entropy[1].mean()), rtol=0.06),
        scaled_slope_stays=close(slope[1], float(slope[1].mean()), rtol=0.1),
    )


@claim("Z11.10")
def the_matrix_form_is_the_loop() -> Evidence:
    """The matrix form softmax(QKᵀ/√d) V is a softmax and a weighted sum for each query and batch (Zhao sec. 11)."""
    query, key, value = normals(2, 3, 4), normals(2, 5, 4, seed=1), normals(2, 5, 6, seed=2)
    mixed, weights = attention(query, key, value)
    rows = torch.stack(
        [torch.stack([((k @ q) / 2).softmax(0) @ v for q in qs]) for qs, k, v in zip(query, key, value, strict=True)]
    )
    keys_order, query_order = torch.tensor([3, 0, 4, 1, 2]), torch.tensor([2, 0, 1])
    return all_of(
        loop=close(mixed, rows, rtol=1e-12),
        library=close(mixed, scaled_dot_product_attention(query, key, value), rtol=1e-10),
        rows_sum_to_one=close(weights.sum(-1), 1.0, atol=1e-14),
        pairs_may_be_shuffled=close(
            attention(query, key[:, keys_order], value[:, keys_order]).output, mixed, rtol=1e-10
        ),
        answers_follow_queries=close(attention(query[:, query_order], key, value).output, mixed[:, query_order]),
    )


@claim("D2.2.5", "B10.1-7")
def the_cost_is_the_square_of_the_length() -> Evidence:
    """Exactly n_q n_k (k + v) multiplications, and n_q n_k weights to hold; slope 2 in the length (Diehl sec. 2.2)."""
    lengths = (32, 64, 128, 256)
    work, held = [], []
    for n in lengths:
        query, key, value = normals(n, 8), normals(n, 8, seed=1), normals(n, 12, seed=2)
        with FlopCounterMode(display=False) as counter:
            weights = attention(query, key, value).weights
        work.append(counter.get_total_flops() / 2)  # it counts a multiplication and an addition
        held.append(float(weights.numel()))
    size = torch.tensor(lengths, dtype=torch.float64)
    return all_of(
        multiplications=close(torch.tensor(work), (size.square() * (8 + 12)).float()),
        slope_of_work=rate(size, torch.tensor(work), 2.0, atol=1e-6),
        slope_of_weights=rate(size, torch.tensor(held), 2.0, atol=1e-6),
    )


@claim("D2.2.5", "B10.1-7")
def the_square_need_not_be_held() -> Evidence:
    """What is kept for the way back grows as n² where weights are kept, as n with a fused kernel (book sec. 10.1)."""

    def kept(n: int, *, fused: bool) -> float:
        """How many numbers autograd keeps."""
        sizes: dict[int, int] = {}

        def count(x: Tensor) -> Tensor:
            sizes[x.data_ptr()] = x.numel()
            return x

        query, key, value = (normals(1, 1, n, 8, seed=s).float().requires_grad_() for s in (0, 1, 2))
        with torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
            attend(query, key, value) if fused else attention(query, key, value)
        return float(sum(sizes.values()))

    lengths = (256, 512, 1_024)
    size = torch.tensor(lengths, dtype=torch.float64)
    return all_of(
        weights_kept=rate(size, torch.tensor([kept(n, fused=False) for n in lengths]), 2.0, atol=0.1),
        fused=rate(size, torch.tensor([kept(n, fused=True) for n in lengths]), 1.0, atol=0.1),
    )


@claim("C-13")
def the_weight_on_matches_tells_how_many_there_are() -> Evidence:
    """Where a match scores λ and others 0, c matches of n get c·e^λ / (c·e^λ + n − c), growing with c (Diehl sec. 2.2).

    Turned round it counts: abbca has 2 of its last letter, abbcb 3, bbbba 1.
    """

    def matched(word: str, strength: float) -> Tensor:
        letters = torch.tensor([ord(letter) - ord("a") for letter in word])
        x = torch.nn.functional.one_hot(letters, 3).double()
        weights = attention_weights(x[-1:], x, scale=strength)
        return (weights[0] * (letters == letters[-1])).sum()

    words, counts = ("abbca", "abbcb", "bbbba"), torch.tensor([2.0, 3.0, 1.0], dtype=torch.float64)
    found = torch.stack([matched(word, 1.5) for word in words])
    odds = found / (1 - found) / exp(1.5)  # c / (n − c)
    sizes = torch.stack([matched("b" * (9 - c) + "a" * c, 1.5) for c in range(1, 10)])
    return all_of(
        law=close(found, counts * exp(1.5) / (counts * exp(1.5) + 5 - counts), rtol=1e-12),
        counts=close(5 * odds / (1 + odds), counts, rtol=1e-9),
        grows_with_the_count=at_least(sizes.diff(), 0.01),
    )


@erratum(
    "B10.1.1-13",
    printed="the number of operations is constant",
    right="the number of sequential operations is constant; the total grows as T²",
)
def only_the_sequential_operations_are_constant() -> Correction:
    """However long the sequence, the same chain of operations; but their work is of order T² d (book sec. 10.1.1)."""
    torch.manual_seed(0)
    layer, lengths = SelfAttention(8, 1), (256, 512, 1_024)
    work = [multiplications(partial(spelled_out, layer, torch.randn(1, n, 8))) for n in lengths]
    chains = [float(longest_chain(spelled_out(layer, torch.randn(1, n, 8)))) for n in lengths]
    size = torch.tensor(lengths, dtype=torch.float64)
    return Correction(
        printed=rate(size, torch.tensor(work), 0.0, atol=0.1),
        corrected=all_of(
            chain=rate(size, torch.tensor(chains), 0.0, atol=1e-6), work=rate(size, torch.tensor(work), 2.0, atol=0.1)
        ),
    )
