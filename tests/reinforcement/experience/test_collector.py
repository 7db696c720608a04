"""Collected experience and episode returns of each learner."""

import pytest
import torch

from parnassus.reinforcement.environments import CartPole, TensorEnvironments
from parnassus.reinforcement.experience.collector import Collector


def test_returns_are_recorded_per_learner() -> None:
    torch.manual_seed(0)
    collector = Collector(TensorEnvironments(CartPole(max_episode_steps=30), 6), num_learners=2)
    weights = torch.tensor([0.0, 0.0, 1.0, 0.6])
    experience = collector.collect(
        lambda x: torch.stack([(x[0] @ weights > 0).long(), torch.zeros(3, dtype=torch.int64)]), 90
    )
    assert experience.observations.shape == (90, 2, 3, 4)
    assert torch.equal(
        experience.observations[1:][~(experience.terminated | experience.truncated)[:-1]],
        experience.next_observations[:-1][~(experience.terminated | experience.truncated)[:-1]],
    )
    assert experience.truncated[29, 0].all()
    assert not experience.terminated[:, 0].any()
    first_return, second_return = collector.recent_returns
    assert first_return == 30  # the time limit
    assert 7 < second_return < 13
    assert collector.steps == 270
    assert collector.episodes == int((experience.terminated | experience.truncated).sum())


def test_unfinished_episodes_have_no_return() -> None:
    collector = Collector(TensorEnvironments(CartPole(max_episode_steps=30), 2), num_learners=2)
    weights = torch.tensor([0.0, 0.0, 1.0, 0.6])
    for steps, expected in ((29, 0), (1, 2)):
        collector.collect(lambda x: (x @ weights > 0).long(), steps)
        assert len(collector.metrics) == expected
    assert collector.recent_returns == [30.0, 30.0]


def test_state_dict_round_trip_continues_identically() -> None:
    torch.manual_seed(0)
    first, second = (Collector(TensorEnvironments(CartPole(), 4), num_learners=2) for _ in range(2))

    def act(x: torch.Tensor) -> torch.Tensor:
        return (torch.rand(x.shape[:2]) < 0.5).long()

    first.collect(act, 25)
    second.load_state_dict(first.state_dict())
    torch.manual_seed(1)
    first_experience = first.collect(act, 40)
    torch.manual_seed(1)
    second_experience = second.collect(act, 40)
    assert torch.equal(first_experience.next_observations, second_experience.next_observations)
    assert first.recent_returns == second.recent_returns
    assert first.steps == second.steps == 130


def test_indivisible_number_of_environments_raises_value_error() -> None:
    with pytest.raises(ValueError, match="n_envs must be divisible by num_learners; got n_envs=5, num_learners=2"):
        Collector(TensorEnvironments(CartPole(), 5), num_learners=2)
