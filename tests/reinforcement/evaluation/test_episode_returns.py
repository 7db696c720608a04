"""Episode returns, their summary, bootstrap intervals and reward thresholds."""

import gymnasium
import pytest
import torch
from scipy.stats import trim_mean

from parnassus.reinforcement.environments import CartPole, MountainCar, TensorEnvironments
from parnassus.reinforcement.evaluation.episode_returns import (
    bootstrap_interval,
    episode_returns,
    interquartile_mean,
    summarise_returns,
)
from parnassus.reinforcement.evaluation.reward_thresholds import REWARD_THRESHOLDS, reward_threshold


def test_only_the_first_episode_of_each_environment_counts() -> None:
    torch.manual_seed(0)
    returns = episode_returns(
        TensorEnvironments(CartPole(), 40), lambda x: torch.zeros(x.shape[:2], dtype=torch.int64), 2
    )
    assert returns.shape == (2, 20)
    assert 7 < float(returns.min()) <= float(returns.max()) < 13
    idle = episode_returns(TensorEnvironments(MountainCar(), 4), lambda x: torch.ones(x.shape[:2], dtype=torch.int64))
    assert idle.tolist() == [[-200.0] * 4]  # one episode up to its time limit


def test_interquartile_mean_matches_scipy() -> None:
    scores = torch.randn(40, dtype=torch.float64)
    assert float(interquartile_mean(scores)) == pytest.approx(trim_mean(scores.numpy(), 0.25))
    assert float(interquartile_mean(torch.tensor([0.0, 1.0, 2.0]))) == pytest.approx(1.0)
    assert float(interquartile_mean(torch.tensor([1.0, 1.0, 1.0, 1.0, 100.0]))) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="at least one score; got none"):
        interquartile_mean(torch.zeros(0))


def test_summarise_returns() -> None:
    summary = summarise_returns(torch.tensor([[500.0, 500.0], [100.0, 300.0]]), 475.0)
    assert (summary["return_mean"], summary["return_worst"], summary["solved"]) == (350.0, 200.0, 0.5)
    assert summarise_returns(torch.tensor([[500.0]]), None)["solved"] == 0.0


@pytest.mark.parametrize("name", [*REWARD_THRESHOLDS, "MountainCarContinuous-v0", "FrozenLake-v1", "Blackjack-v1"])
def test_reward_threshold_matches_gymnasium(name: str) -> None:
    assert reward_threshold(name) == gymnasium.spec(name).reward_threshold


def test_reward_threshold_of_namespaced_and_unknown_names() -> None:
    assert reward_threshold("gymnasium.envs.toy_text:FrozenLake8x8-v1") == 0.85
    assert reward_threshold("Nowhere-v0") is None


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


def test_invalid_bootstrap_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least two learners; got 1"):
        bootstrap_interval(torch.zeros(1), torch.mean)
    with pytest.raises(ValueError, match="between 0 and 1; got level=95"):
        bootstrap_interval(torch.zeros(2), torch.mean, level=95.0)
