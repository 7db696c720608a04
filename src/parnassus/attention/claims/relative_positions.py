"""Claims about scores with a bias by distance: relative positions and ALiBi (book sec. 10.1)."""

from collections.abc import Callable

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, rate
from parnassus.attention.core.dot_product import attention, attention_weights
from parnassus.attention.core.masks import causal_mask
from parnassus.attention.positions.alibi import alibi_bias, alibi_slopes
from parnassus.attention.positions.relative import explicit_relative_scores, relative_scores, skew


def normal_inputs(length: int, heads: int = 2, width: int = 8, reach: int = 64) -> tuple[Tensor, Tensor]:
    """Queries and a table of relative position vectors."""
    torch.manual_seed(0)
    return (
        torch.randn(1, heads, length, width, dtype=torch.float64),
        torch.randn(heads, reach, width, dtype=torch.float64),
    )


@claim("B10.1-9")
def skewing_gives_the_scores_of_all_pairs() -> Evidence:
    """skew(Q Eᵀ)_{mn} = ⟨q_m, e_{m−n}⟩ for n ≤ m, clipped or not, with a cache or without (book sec. 10.1)."""
    query, table = normal_inputs(24)
    errors = [
        (relative_scores(queries, rows, 24) - explicit_relative_scores(queries, rows, 24)).abs().max()
        for queries in (query, query[:, :, 20:], query[:, :, -1:])
        for rows in (table, table[:, :24], table[:, :5], table[:, :1])
    ]
    return close(torch.stack(errors), 0.0, atol=1e-12)


@claim("B10.1-9")
def skewing_reduces_saved_memory_to_linear() -> Evidence:
    """Elements saved for the backward pass grow as T with skewing and as T² without (Huang et al. 2019, tab. 1)."""
    lengths = (64, 128, 256, 512)
    skewed, explicit = (
        torch.tensor([_saved_elements(compute_scores, length) for length in lengths])
        for compute_scores in (relative_scores, explicit_relative_scores)
    )
    return all_of(
        skewed=rate(torch.tensor(lengths), skewed, 1.0, atol=0.1),
        explicit=rate(torch.tensor(lengths), explicit, 2.0, atol=0.1),
    )


@claim("B10.1-9")
def relative_attention_is_invariant_to_shifts() -> Evidence:
    """Shifting all positions by a constant gives the same output: only differences matter (book sec. 10.1)."""
    query, table = normal_inputs(16, reach=10)
    key, value = torch.randn(2, 1, 2, 16, 8, dtype=torch.float64).unbind()
    mask = causal_mask(16)
    original = attention(query, key, value, mask, bias=relative_scores(query, table, 16))
    prefix = torch.randn(1, 2, 7, 8, dtype=torch.float64)  # seven masked positions in front
    padded_mask = torch.cat([torch.zeros(16, 7, dtype=torch.bool), mask], 1)
    keys, values = torch.cat([prefix, key], 2), torch.cat([prefix, value], 2)
    shifted = attention(query, keys, values, padded_mask, bias=relative_scores(query, table, 23))
    without_bias = attention(query, key, value, mask)
    return all_of(
        output=close(shifted.output, original.output, atol=1e-12),
        weights=close(shifted.weights[..., 7:], original.weights, atol=1e-12),
        effect_of_the_bias=greater_equal((original.output - without_bias.output).abs().max(), 0.1),
    )


@claim("B10.1-9")
def clipped_distances_share_one_vector() -> Evidence:
    """All distances of `reach` − 1 and more share one vector, so any length is accepted (Shaw et al. 2018)."""
    query, table = normal_inputs(100, reach=6)
    scores = relative_scores(query, table, 100)
    last = (query * table[:, -1:]).sum(-1, keepdim=True)
    far = torch.ones(100, 100, dtype=torch.bool).tril(-5)
    return close(scores.masked_select(far), last.expand_as(scores).masked_select(far), atol=1e-12)


@claim("B10.1-9")
def skewing_shifts_rows_to_the_left() -> Evidence:
    """skew(x)_{i,n} = x_{i, n + Q − 1 − i}: row i shifts left by Q − 1 − i (Huang et al. 2019, fig. 1)."""
    x = torch.arange(1.0, 31.0).view(5, 6)
    shifted = torch.stack([torch.cat([x[i, 4 - i :], torch.zeros(4 - i)]) for i in range(5)])
    return close(skew(x), shifted)


@claim("B10.1-9", "D3.3")
def alibi_is_a_bias_by_distance() -> Evidence:
    """−s(m − n) and s n give a causal head the same weights, which are invariant to shifts (Press et al. 2022)."""
    query, _ = normal_inputs(20)
    key = torch.randn(1, 2, 20, 8, dtype=torch.float64)
    slopes, mask = alibi_slopes(2).double() * 16, causal_mask(20)
    bias = alibi_bias(slopes, 20)
    by_key = (slopes[:, None, None] * torch.arange(20)).expand(2, 20, 20)
    weights = attention_weights(query, key, mask, bias=bias)
    return all_of(
        shift=close(alibi_bias(slopes, 20, 50)[..., 30:], bias),
        bias_by_key_position=close(attention_weights(query, key, mask, bias=by_key), weights, atol=1e-12),
        bias_is_larger_for_nearer_keys=greater_equal(bias.tril().diff(dim=-1).tril(-1), 0.0),
        effect_of_the_bias=greater_equal((weights - attention_weights(query, key, mask)).abs().max(), 0.1),
        first_slopes=close(alibi_slopes(8), 2.0 ** -torch.arange(1.0, 9.0)),
        weight_at_large_distance_vanishes=less_equal(_weights_of_equal_contents(slopes)[..., 0], 1e-3),
    )


def _weights_of_equal_contents(slopes: Tensor) -> Tensor:
    """Weights of the last of 200 positions when all contents are equal."""
    return alibi_bias(slopes, 1, 200).softmax(-1)


def _saved_elements(compute_scores: Callable[[Tensor, Tensor, int], Tensor], length: int) -> float:
    """Number of floating-point elements that autograd saves for the backward pass."""
    query, table = normal_inputs(length, reach=length)
    counts = []

    def count(x: Tensor) -> Tensor:
        if x.is_floating_point():
            counts.append(x.numel())
        return x

    with torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
        compute_scores(query.requires_grad_(), table.requires_grad_(), length)
    return float(sum(counts))
