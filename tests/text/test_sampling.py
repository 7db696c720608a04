"""Greedy, temperature, top-k and top-p sampling."""

from math import inf

import pytest
import torch
from scipy.stats import chisquare

from parnassus.probability import standard_normal
from parnassus.text import (
    apply_temperature,
    greedy,
    keep_top_k,
    keep_top_p,
    sample_tokens,
    skip_special_tokens,
    token_sampler,
)

LOGITS = torch.tensor([[0.5, 0.1, 0.1, 0.3], [0.25, 0.25, 0.25, 0.25]], dtype=torch.float64).log()


def test_greedy_selects_the_first_most_likely_token() -> None:
    assert greedy(LOGITS).tolist() == [0, 0]


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_temperature_raises_probabilities_to_a_power(temperature: float) -> None:
    expected = LOGITS.exp() ** (1 / temperature)
    torch.testing.assert_close(
        apply_temperature(LOGITS, temperature).softmax(-1), expected / expected.sum(-1, keepdim=True)
    )


def test_top_k_keeps_exactly_k_tokens_with_ties() -> None:
    for count in range(1, 5):
        assert (keep_top_k(LOGITS, count) > -inf).sum(-1).tolist() == [count, count]
    assert keep_top_k(LOGITS, 3)[0].tolist() == [*LOGITS[0, :2].tolist(), -inf, LOGITS[0, 3]]
    torch.testing.assert_close(keep_top_k(LOGITS, 99), LOGITS)


@pytest.mark.parametrize(
    ("top_p", "num_kept"), [(0.01, 1), (0.5, 1), (0.51, 2), (0.79, 2), (0.85, 3), (0.95, 4), (1.0, 4)]
)
def test_top_p_keeps_the_smallest_set_with_probability_p(top_p: float, num_kept: int) -> None:
    filtered = keep_top_p(LOGITS, top_p)[0]
    assert int((filtered > -inf).sum()) == num_kept
    assert float(LOGITS[0].exp()[filtered > -inf].sum()) >= top_p - 1e-12


def test_nucleus_size_matches_exhaustive_search() -> None:
    logits = standard_normal(50, 9)
    for row in logits:
        sorted_probabilities = row.softmax(0).sort(descending=True).values
        smallest = next(size for size in range(1, 10) if float(sorted_probabilities[:size].sum()) >= 0.7)
        assert int((keep_top_p(row, 0.7) > -inf).sum()) == smallest


def test_samples_follow_the_distribution() -> None:
    generator = torch.Generator().manual_seed(0)
    samples = sample_tokens(LOGITS[:1].expand(4_000, -1), generator)
    counts = torch.bincount(samples, minlength=4).numpy()
    assert chisquare(counts, 4_000 * LOGITS[0].exp().numpy()).pvalue > 1e-3


def test_temperature_is_applied_before_top_k_and_top_k_before_top_p() -> None:
    """At temperature 0.5 p ∝ 25, 1, 1, 9: top-k keeps 25, 1 and 9, and 25/35 < 0.75, so top-p keeps two tokens."""
    sampler = token_sampler(temperature=0.5, top_k=3, top_p=0.75, generator=torch.Generator().manual_seed(0))
    samples = sampler(LOGITS[:1].expand(2_000, -1))
    counts = torch.bincount(samples, minlength=4).numpy()
    assert counts[1] == counts[2] == 0
    assert chisquare(counts[[0, 3]], [2_000 * 25 / 34, 2_000 * 9 / 34]).pvalue > 1e-3


def test_temperature_zero_is_greedy() -> None:
    assert token_sampler(temperature=0.0) is greedy


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="temperature must be positive and finite; got temperature=-1"):
        token_sampler(temperature=-1.0)
    with pytest.raises(ValueError, match=r"top_k must be at least 1; got top_k=0"):
        token_sampler(temperature=0.0, top_k=0)  # validated for greedy decoding as well
    with pytest.raises(ValueError, match=r"top_p must lie in \(0, 1\]; got top_p=1\.5"):
        token_sampler(top_p=1.5)


def test_special_tokens_are_never_selected() -> None:
    logits = torch.tensor([[9.0, 8.0, 1.0, 2.0], [9.0, 8.0, 2.0, 1.0]])
    assert skip_special_tokens(greedy, 2)(logits).tolist() == [3, 2]
    assert skip_special_tokens(greedy, 0)(logits).tolist() == [0, 0]
