"""Bootstrap confidence intervals over seeds."""

import pytest
import torch

from parnassus.reinforcement.evaluation.bootstrap import bootstrap_interval
from parnassus.reinforcement.evaluation.episode_returns import interquartile_mean


def test_interval_of_the_mean_matches_normal_approximation() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(400, dtype=torch.float64, generator=generator)
    low, high = bootstrap_interval(scores, torch.mean, generator=generator)
    half_width = 1.96 * float(scores.std(unbiased=False)) / 20
    assert low == pytest.approx(float(scores.mean()) - half_width, abs=0.15 * half_width)
    assert high == pytest.approx(float(scores.mean()) + half_width, abs=0.15 * half_width)
    narrow = bootstrap_interval(scores, torch.mean, level=0.5, generator=generator)
    assert low < narrow[0] < narrow[1] < high


def test_interval_of_two_seeds_and_of_equal_scores() -> None:
    interval = bootstrap_interval(
        torch.tensor([0.0, 10.0]), interquartile_mean, generator=torch.Generator().manual_seed(0)
    )
    assert interval == (0.0, 10.0)  # each seed is drawn twice in a quarter of all resamples
    assert bootstrap_interval(torch.full((5,), 500.0, dtype=torch.float64), interquartile_mean) == (500.0, 500.0)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least two learners; got 1"):
        bootstrap_interval(torch.zeros(1), torch.mean)
    with pytest.raises(ValueError, match="between 0 and 1; got level=95"):
        bootstrap_interval(torch.zeros(2), torch.mean, level=95.0)
