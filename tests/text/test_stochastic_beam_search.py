"""Stochastic beam search compared with the exact distribution by enumeration."""

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
NUM_DRAWS = 6_000


def test_ordered_pairs_follow_sampling_without_replacement() -> None:
    continuations = enumerate_continuations(MODEL, PROMPT, length=3, stop=2)
    distribution = without_replacement_probabilities(continuations.log_probs.exp(), 2)
    index_of = {tuple(row): index for index, row in enumerate(continuations.tokens.tolist())}
    generator = torch.Generator().manual_seed(0)
    draws = stochastic_beam_search(MODEL, PROMPT.expand(NUM_DRAWS, 1), width=2, length=3, stop=2, generator=generator)
    counts: Counter[tuple[int, ...]] = Counter(
        (index_of[tuple(first)], index_of[tuple(second)]) for first, second in draws.tokens.tolist()
    )
    frequent = [pair for pair in distribution if distribution[pair] * NUM_DRAWS >= 5]
    observed = [counts[pair] for pair in frequent]
    expected = [NUM_DRAWS * distribution[pair] for pair in frequent]
    others = NUM_DRAWS - sum(observed), NUM_DRAWS - sum(expected)
    assert set(counts) <= set(distribution)
    assert chisquare([*observed, others[0]], [*expected, others[1]]).pvalue > 1e-3
    torch.testing.assert_close(
        draws.log_probs[0, 0], continuations.log_probs[index_of[tuple(draws.tokens[0, 0].tolist())]]
    )


def test_inclusion_frequencies_match_exact_probabilities() -> None:
    continuations = enumerate_continuations(MODEL, PROMPT, length=3)
    included = inclusion_probabilities(continuations.log_probs.exp(), 3)
    generator = torch.Generator().manual_seed(1)
    draws = stochastic_beam_search(MODEL, PROMPT.expand(NUM_DRAWS, 1), width=3, length=3, generator=generator)
    ids = draws.tokens @ torch.tensor([9, 3, 1])
    frequency = torch.bincount(ids.flatten(), minlength=27).double() / NUM_DRAWS
    expected_ids = continuations.tokens @ torch.tensor([9, 3, 1])
    deviation = (included * (1 - included) / NUM_DRAWS).sqrt()
    assert float(((frequency[expected_ids] - included) / deviation).abs().max()) < 4
    assert all(len(set(row)) == 3 for row in ids.tolist())


def test_wide_beam_finds_all_continuations_and_marks_empty_slots() -> None:
    draws = stochastic_beam_search(MODEL, PROMPT[None], width=40, length=3, stop=2)
    continuations = enumerate_continuations(MODEL, PROMPT, length=3, stop=2)
    is_present = draws.log_probs[0].isfinite()
    assert {tuple(row) for row in draws.tokens[0, is_present].tolist()} == {
        tuple(row) for row in continuations.tokens.tolist()
    }
    ones = torch.ones_like(draws.log_probs)
    torch.testing.assert_close(draws.mean(ones), torch.ones(1, dtype=torch.float64))


def test_mean_estimator_is_unbiased() -> None:
    continuations = enumerate_continuations(MODEL, PROMPT, length=3)
    mean = float((continuations.log_probs.exp() * continuations.tokens.sum(1)).sum())
    generator = torch.Generator().manual_seed(2)
    draws = stochastic_beam_search(MODEL, PROMPT.expand(NUM_DRAWS, 1), width=5, length=3, generator=generator)
    estimates = draws.mean(draws.tokens.sum(2).double())
    assert abs(float(estimates.mean()) - mean) < 4 * float(estimates.std()) / NUM_DRAWS**0.5


def test_conditional_gumbels_have_the_given_maximum_and_the_gumbel_distribution() -> None:
    """For a maximum from its marginal distribution, each child has a Gumbel distribution."""
    generator = torch.Generator().manual_seed(3)
    location = torch.tensor([0.2, 0.7, 0.1], dtype=torch.float64).log().expand(NUM_DRAWS, 3)
    maximum = sample_gumbel(torch.zeros(NUM_DRAWS, dtype=torch.float64), generator)
    children = sample_gumbel_given_maximum(location, maximum, generator)
    torch.testing.assert_close(children.max(1).values, maximum)
    for child in range(3):
        assert kstest((children - location)[:, child].numpy(), "gumbel_r").pvalue > 1e-3


def test_conditional_gumbels_are_accurate_far_from_the_maximum() -> None:
    location = torch.tensor([[0.0, -1_000.0, -float("inf")]])
    samples = sample_gumbel_given_maximum(location, torch.tensor([-900.0]), torch.Generator().manual_seed(0))
    assert float(samples[0, 0]) == -900.0
    assert float(samples[0, 1]) < -900.0
    assert float(samples[0, 2]) == -float("inf")


def test_ended_prefixes_have_no_children_in_the_tree() -> None:
    draws = stochastic_beam_search(MODEL, PROMPT[None], width=6, length=4, stop=2)
    nodes = draws.tree()
    assert all(node.parent is None or not nodes[node.parent].is_complete for node in nodes)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="width and length must be at least 1; got width=0"):
        stochastic_beam_search(MODEL, PROMPT[None], width=0, length=1)
    with pytest.raises(ValueError, match="at least two samples, one of them for the threshold; got 1"):
        stochastic_beam_search(MODEL, PROMPT[None], width=1, length=1).mean(torch.ones(1, 1))
