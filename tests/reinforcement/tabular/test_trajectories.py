"""Enumerated trajectories of a small process."""

import pytest
import torch

from parnassus.reinforcement.tabular.trajectories import enumerate_trajectories
from parnassus.reinforcement.tabular.value_and_policy_iteration import value_iterates
from parnassus.reinforcement.textbook.cat import cat_decision_process

RELAXED = torch.tensor([0.0, 0, 0, 1, 0, 0], dtype=torch.float64)


def test_trajectories_of_a_relaxed_cat() -> None:
    trajectories = enumerate_trajectories(cat_decision_process(1.0), RELAXED, 2)
    actual = {
        (tuple(states), tuple(actions)): (round(float(probability), 12), rewards)
        for states, actions, rewards, probability in zip(
            trajectories.states.tolist(),
            trajectories.actions.tolist(),
            trajectories.rewards.tolist(),
            trajectories.environment_probability,
            strict=True,
        )
    }
    assert actual == {
        ((3, 4, 1), (1, 0)): (0.2, [2.0, 1.0]),  # talked to, confused, hungry
        ((3, 4, 3), (1, 0)): (0.8, [2.0, 1.0]),
        ((3, 5, 5), (2, 0)): (1.0, [2.0, 0.0]),  # stroked, asleep, asleep
    }
    assert trajectories.active.sum(1).sort().values.tolist() == [1, 2, 2]


@pytest.mark.parametrize("horizon", [1, 3, 5])
def test_mean_return_matches_the_finite_horizon_value(horizon: int) -> None:
    process = cat_decision_process(0.9)
    policy, start = process.uniform_policy(), torch.tensor([0.1, 0.2, 0.3, 0.2, 0.2, 0], dtype=torch.float64)
    trajectories = enumerate_trajectories(process, start, horizon)
    probabilities = trajectories.probabilities(policy)
    torch.testing.assert_close(probabilities.sum(), torch.tensor(1.0, dtype=torch.float64))
    mean = probabilities @ trajectories.returns(0.9)[:, 0]
    torch.testing.assert_close(mean, process.reward_process(policy).iterates(horizon)[-1] @ start)
    assert float(mean) <= float(value_iterates(process, horizon)[-1] @ start)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="horizon must be at least 1; got horizon=0"):
        enumerate_trajectories(cat_decision_process(), RELAXED, 0)
    with pytest.raises(ValueError, match="start"):
        enumerate_trajectories(cat_decision_process(), RELAXED * 0.5, 2)
