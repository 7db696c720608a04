"""All episodes of a small process: probabilities sum to one, means are values."""

import pytest
import torch

from parnassus.reinforcement.tabular.planning import value_iterates
from parnassus.reinforcement.tabular.trajectories import enumerate_trajectories
from parnassus.reinforcement.textbook.cat import cat_decision_process

RELAXED = torch.tensor([0.0, 0, 0, 1, 0, 0], dtype=torch.float64)


def test_paths_of_a_relaxed_cat_by_hand() -> None:
    paths = enumerate_trajectories(cat_decision_process(1.0), RELAXED, 2)
    listed = {
        (tuple(states), tuple(actions)): (round(float(chance), 12), rewards)
        for states, actions, rewards, chance in zip(
            paths.states.tolist(),
            paths.actions.tolist(),
            paths.rewards.tolist(),
            paths.environment_probability,
            strict=True,
        )
    }
    assert listed == {
        ((3, 4, 1), (1, 0)): (0.2, [2.0, 1.0]),  # talked to, confused, hungry
        ((3, 4, 3), (1, 0)): (0.8, [2.0, 1.0]),
        ((3, 5, 5), (2, 0)): (1.0, [2.0, 0.0]),  # stroked: asleep, and stays so
    }
    assert paths.live.sum(1).sort().values.tolist() == [1, 2, 2]


@pytest.mark.parametrize("horizon", [1, 3, 5])
def test_the_mean_over_paths_is_the_value_with_so_many_steps(horizon: int) -> None:
    process = cat_decision_process(0.9)
    policy, start = process.uniform_policy(), torch.tensor([0.1, 0.2, 0.3, 0.2, 0.2, 0], dtype=torch.float64)
    paths = enumerate_trajectories(process, start, horizon)
    probabilities = paths.probabilities(policy)
    torch.testing.assert_close(probabilities.sum(), torch.tensor(1.0, dtype=torch.float64))
    mean = probabilities @ paths.returns(0.9)[:, 0]
    torch.testing.assert_close(mean, process.reward_process(policy).iterates(horizon)[-1] @ start)
    assert float(mean) <= float(value_iterates(process, horizon)[-1] @ start)


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="horizon must be at least 1; got horizon=0"):
        enumerate_trajectories(cat_decision_process(), RELAXED, 0)
    with pytest.raises(ValueError, match="start"):
        enumerate_trajectories(cat_decision_process(), RELAXED * 0.5, 2)
