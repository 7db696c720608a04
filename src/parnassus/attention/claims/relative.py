"""Claims about scores with a bias by distance: relative attention and ALiBi (book sec. 10.1)."""

from collections.abc import Callable

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, rate
from parnassus.attention.alibi import alibi_bias, alibi_slopes
from parnassus.attention.dot_product import attention, attention_weights
from parnassus.attention.masks import causal_mask
from parnassus.attention.relative import explicit_relative_scores, relative_scores, skew


def draw(places: int, heads: int = 2, width: int = 8, reach: int = 64) -> tuple[Tensor, Tensor]:
    """Queries and a table of distances."""
    torch.manual_seed(0)
    return (
        torch.randn(1, heads, places, width, dtype=torch.float64),
        torch.randn(heads, reach, width, dtype=torch.float64),
    )


@claim("B10.1-9")
def skewing_gives_the_scores_of_all_pairs() -> Evidence:
    """skew(Q Eᵀ)_{mn} = ⟨q_m, e_{m−n}⟩ for n ≤ m, clipped or not, with a cache or without (book sec. 10.1)."""
    query, table = draw(24)
    worst = [
        (relative_scores(part, rows, 24) - explicit_relative_scores(part, rows, 24)).abs().max()
        for part in (query, query[:, :, 20:], query[:, :, -1:])
        for rows in (table, table[:, :24], table[:, :5], table[:, :1])
    ]
    return close(torch.stack(worst), 0.0, atol=1e-12)


@claim("B10.1-9")
def skewing_saves_a_vector_for_each_pair() -> Evidence:
    """Numbers kept for the way back grow like T with skewing and like T² without (Huang et al. 2019, tab. 1)."""
    lengths = (64, 128, 256, 512)
    skewed, explicit = (
        torch.tensor([_kept(form, length) for length in lengths])
        for form in (relative_scores, explicit_relative_scores)
    )
    return all_of(
        skewed=rate(torch.tensor(lengths), skewed, 1.0, atol=0.1),
        explicit=rate(torch.tensor(lengths), explicit, 2.0, atol=0.1),
    )


@claim("B10.1-9")
def relative_attention_does_not_notice_a_shift() -> Evidence:
    """Moving all places by a constant gives the same output: only differences count (book sec. 10.1)."""
    query, table = draw(16, reach=10)
    key, value = torch.randn(2, 1, 2, 16, 8, dtype=torch.float64).unbind()
    mask = causal_mask(16)
    near = attention(query, key, value, mask, bias=relative_scores(query, table, 16))
    before = torch.randn(1, 2, 7, 8, dtype=torch.float64)  # seven places in front, which may not be seen
    shown = torch.cat([torch.zeros(16, 7, dtype=torch.bool), mask], 1)
    keys, values = torch.cat([before, key], 2), torch.cat([before, value], 2)
    far = attention(query, keys, values, shown, bias=relative_scores(query, table, 23))
    plain = attention(query, key, value, mask)
    return all_of(
        output=close(far.output, near.output, atol=1e-12),
        weights=close(far.weights[..., 7:], near.weights, atol=1e-12),
        but_distances_matter=at_least((near.output - plain.output).abs().max(), 0.1),
    )


@claim("B10.1-9")
def clipped_distances_are_alike() -> Evidence:
    """All distances of `reach` − 1 and beyond have one vector, so any length can be read (Shaw et al. 2018)."""
    query, table = draw(100, reach=6)
    scores = relative_scores(query, table, 100)
    last = (query * table[:, -1:]).sum(-1, keepdim=True)
    far = torch.ones(100, 100, dtype=torch.bool).tril(-5)
    return close(scores.masked_select(far), last.expand_as(scores).masked_select(far), atol=1e-12)


@claim("B10.1-9")
def skewing_moves_rows_to_the_left() -> Evidence:
    """skew(x)_{i,n} = x_{i, n + Q − 1 − i}: row i moves left by Q − 1 − i places (Huang et al. 2019, fig. 1)."""
    x = torch.arange(1.0, 31.0).view(5, 6)
    moved = torch.stack([torch.cat([x[i, 4 - i :], torch.zeros(4 - i)]) for i in range(5)])
    return close(skew(x), moved)


@claim("B10.1-9", "D3.3")
def alibi_is_a_bias_by_distance() -> Evidence:
    """−s(m − n) and s n give a causal head the same weights, and these do not notice a shift (Press et al. 2022)."""
    query, _ = draw(20)
    key = torch.randn(1, 2, 20, 8, dtype=torch.float64)
    slopes, mask = alibi_slopes(2).double() * 16, causal_mask(20)
    bias = alibi_bias(slopes, 20)
    by_key = (slopes[:, None, None] * torch.arange(20)).expand(2, 20, 20)
    weights = attention_weights(query, key, mask, bias=bias)
    return all_of(
        shift=close(alibi_bias(slopes, 20, 50)[..., 30:], bias),
        by_key_alone=close(attention_weights(query, key, mask, bias=by_key), weights, atol=1e-12),
        nearer_is_never_fined_more=at_least(bias.tril().diff(dim=-1).tril(-1), 0.0),
        and_it_is_seen=at_least((weights - attention_weights(query, key, mask)).abs().max(), 0.1),
        first_slopes=close(alibi_slopes(8), 2.0 ** -torch.arange(1.0, 9.0)),
        far_weight_vanishes=at_most(_equal_contents(slopes)[..., 0], 1e-3),
    )


def _equal_contents(slopes: Tensor) -> Tensor:
    """The weights of the last of 200 places when all contents are alike."""
    return alibi_bias(slopes, 1, 200).softmax(-1)


def _kept(form: Callable[[Tensor, Tensor, int], Tensor], length: int) -> float:
    """How many numbers autograd keeps for the backward pass."""
    query, table = draw(length, reach=length)
    counts = []

    def keep(x: Tensor) -> Tensor:
        if x.is_floating_point():
            counts.append(x.numel())
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        form(query.requires_grad_(), table.requires_grad_(), length)
    return float(sum(counts))
