"""Synchronous Q-learning."""

import pytest
import torch

from parnassus.reinforcement.tabular.grid_world import GridWorld
from parnassus.reinforcement.tabular.step_sizes import constant_step_size
from parnassus.reinforcement.tabular.synchronous_q_learning import synchronous_q_learning
from parnassus.reinforcement.tabular.value_and_policy_iteration import value_iterates
from parnassus.reinforcement.textbook.cat import cat_decision_process


@pytest.mark.parametrize("sweeps", [1, 3, 10])
def test_deterministic_updates_with_step_size_one_are_value_iteration(sweeps: int) -> None:
    process = GridWorld("S..G/.#.X", slip_probability=0.0, gamma=0.9).process
    q = synchronous_q_learning(process, sweeps=sweeps, step_size=constant_step_size(1.0), num_learners=2)
    torch.testing.assert_close(q.amax(-1), value_iterates(process, sweeps)[-1].expand(2, -1))


def test_forbidden_actions_and_invalid_sweeps() -> None:
    q = synchronous_q_learning(cat_decision_process(), sweeps=5, step_size=constant_step_size(0.5))
    assert float(q[0, 3, 0]) == -torch.inf
    assert q[0, 5].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="got sweeps=0"):
        synchronous_q_learning(cat_decision_process(), sweeps=0, step_size=constant_step_size(0.5))
