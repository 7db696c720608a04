"""Intervals over seeds: they hold the truth about as often as they say, and one seed has none."""

import pytest
import torch

from parnassus.reinforcement.evaluation.bootstrap import bootstrap_interval
from parnassus.reinforcement.evaluation.episode_returns import interquartile_mean


def test_the_interval_of_a_mean_is_that_of_the_normal_law() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(400, dtype=torch.float64, generator=generator)
    low, high = bootstrap_interval(scores, torch.mean, generator=generator)
    reach = 1.96 * float(scores.std(unbiased=False)) / 20
    assert low == pytest.approx(float(scores.mean()) - reach, abs=0.15 * reach)
    assert high == pytest.approx(float(scores.mean()) + reach, abs=0.15 * reach)
    narrow = bootstrap_interval(scores, torch.mean, level=0.5, generator=generator)
    assert low < narrow[0] < narrow[1] < high


def test_two_seeds_can_be_drawn_in_three_ways() -> None:
    found = bootstrap_interval(
        torch.tensor([0.0, 10.0]), interquartile_mean, generator=torch.Generator().manual_seed(0)
    )
    assert found == (0.0, 10.0)  # each is drawn twice in a quarter of all cases
    assert bootstrap_interval(torch.full((5,), 500.0, dtype=torch.float64), interquartile_mean) == (500.0, 500.0)


def test_what_has_no_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two learners; got 1"):
        bootstrap_interval(torch.zeros(1), torch.mean)
    with pytest.raises(ValueError, match="between 0 and 1; got level=95"):
        bootstrap_interval(torch.zeros(2), torch.mean, level=95.0)
