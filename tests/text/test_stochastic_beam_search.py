"""Draws without replacement against the law worked out by enumeration."""

from collections import Counter

import pytest
import torch
from scipy.stats import chisquare, kstest

from parnassus.text import (
    NGramModel,
    enumerate_continuations,
    inclusion_probabilities,
    stochastic_beam_search,
    without_replacement_probabilities,
)
from parnassus.text.stochastic_beam_search import sample_gumbel, sample_gumbel_given_maximum

TOKENS = torch.randint(3, (80,), generator=torch.Generator().manual_seed(0))
MODEL = NGramModel.fit_interpolated(TOKENS, 2, vocabulary=3, smoothing=0.5)
PROMPT = torch.tensor([1])
MANY = 6_000


def test_pairs_are_drawn_in_order_with_the_right_probability() -> None:
    every = enumerate_continuations(MODEL, PROMPT, length=3, stop=2)
    law = without_replacement_probabilities(every.log_probs.exp(), 2)
    number = {tuple(row): place for place, row in enumerate(every.tokens.tolist())}
    source = torch.Generator().manual_seed(0)
    draws = stochastic_beam_search(MODEL, PROMPT.expand(MANY, 1), width=2, length=3, stop=2, generator=source)
    counts: Counter[tuple[int, ...]] = Counter(
        (number[tuple(first)], number[tuple(second)]) for first, second in draws.tokens.tolist()
    )
    frequent = [pair for pair in law if law[pair] * MANY >= 5]
    observed = [counts[pair] for pair in frequent]
    expected = [MANY * law[pair] for pair in frequent]
    rest = MANY - sum(observed), MANY - sum(expected)
    assert set(counts) <= set(law)
    assert chisquare([*observed, rest[0]], [*expected, rest[1]]).pvalue > 1e-3
    torch.testing.assert_close(draws.log_probs[0, 0], every.log_probs[number[tuple(draws.tokens[0, 0].tolist())]])


def test_each_is_included_as_often_as_enumeration_says() -> None:
    every = enumerate_continuations(MODEL, PROMPT, length=3)
    included = inclusion_probabilities(every.log_probs.exp(), 3)
    source = torch.Generator().manual_seed(1)
    draws = stochastic_beam_search(MODEL, PROMPT.expand(MANY, 1), width=3, length=3, generator=source)
    code = draws.tokens @ torch.tensor([9, 3, 1])
    frequency = torch.bincount(code.flatten(), minlength=27).double() / MANY
    order = every.tokens @ torch.tensor([9, 3, 1])
    deviation = (included * (1 - included) / MANY).sqrt()
    assert float(((frequency[order] - included) / deviation).abs().max()) < 4
    assert all(len(set(row)) == 3 for row in code.tolist())


def test_wide_enough_it_finds_all_and_marks_what_is_not_there() -> None:
    draws = stochastic_beam_search(MODEL, PROMPT[None], width=40, length=3, stop=2)
    every = enumerate_continuations(MODEL, PROMPT, length=3, stop=2)
    there = draws.log_probs[0].isfinite()
    assert {tuple(row) for row in draws.tokens[0, there].tolist()} == {tuple(row) for row in every.tokens.tolist()}
    ones = torch.ones_like(draws.log_probs)
    torch.testing.assert_close(draws.mean(ones), torch.ones(1, dtype=torch.float64))


def test_the_estimate_of_a_mean_is_unbiased() -> None:
    every = enumerate_continuations(MODEL, PROMPT, length=3)
    mean = float((every.log_probs.exp() * every.tokens.sum(1)).sum())
    source = torch.Generator().manual_seed(2)
    draws = stochastic_beam_search(MODEL, PROMPT.expand(MANY, 1), width=5, length=3, generator=source)
    estimates = draws.mean(draws.tokens.sum(2).double())
    assert abs(float(estimates.mean()) - mean) < 4 * float(estimates.std()) / MANY**0.5


def test_gumbels_given_their_maximum_have_it_and_keep_their_law() -> None:
    """Drawn after a free maximum, each child is Gumbel again, as if nothing had been conditioned on."""
    source = torch.Generator().manual_seed(3)
    location = torch.tensor([0.2, 0.7, 0.1], dtype=torch.float64).log().expand(MANY, 3)
    maximum = sample_gumbel(torch.zeros(MANY, dtype=torch.float64), source)
    children = sample_gumbel_given_maximum(location, maximum, source)
    torch.testing.assert_close(children.max(1).values, maximum)
    for child in range(3):
        assert kstest((children - location)[:, child].numpy(), "gumbel_r").pvalue > 1e-3


def test_nothing_overflows_far_from_the_maximum() -> None:
    location = torch.tensor([[0.0, -1_000.0, -float("inf")]])
    moved = sample_gumbel_given_maximum(location, torch.tensor([-900.0]), torch.Generator().manual_seed(0))
    assert float(moved[0, 0]) == -900.0
    assert float(moved[0, 1]) < -900.0
    assert float(moved[0, 2]) == -float("inf")


def test_the_tree_does_not_repeat_what_has_ended() -> None:
    draws = stochastic_beam_search(MODEL, PROMPT[None], width=6, length=4, stop=2)
    nodes = draws.tree()
    assert all(node.parent is None or not nodes[node.parent].ended for node in nodes)


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="width and length must be at least 1; got width=0"):
        stochastic_beam_search(MODEL, PROMPT[None], width=0, length=1)
    with pytest.raises(ValueError, match="at least two samples, one of them for the threshold; got 1"):
        stochastic_beam_search(MODEL, PROMPT[None], width=1, length=1).mean(torch.ones(1, 1))
