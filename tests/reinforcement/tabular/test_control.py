"""TD control: update targets and convergence in deterministic environments."""

from functools import partial

import pytest
import torch

from parnassus.reinforcement.tabular.control import (
    NextStep,
    NextValue,
    expected_sarsa_value,
    q_learning_value,
    sarsa_value,
    td_control,
)
from parnassus.reinforcement.tabular.epsilon_greedy_learners import TabularLearners
from parnassus.reinforcement.tabular.grid_world import GridWorld
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size
from parnassus.reinforcement.tabular.value_and_policy_iteration import policy_iteration
from parnassus.reinforcement.textbook.cat import cat_decision_process


def test_next_values_of_each_method() -> None:
    next_step = NextStep(torch.tensor([[1.0, 4.0, -torch.inf]]), torch.tensor([[0.25, 0.75, 0.0]]), torch.tensor([0]))
    assert float(q_learning_value(next_step)) == 4
    assert float(sarsa_value(next_step)) == 1
    assert float(expected_sarsa_value(next_step)) == 3.25


@pytest.mark.parametrize("next_value", [q_learning_value, sarsa_value, expected_sarsa_value])
def test_deterministic_corridor_is_learned_exactly(next_value: NextValue) -> None:
    """The three methods coincide for a greedy policy, and α = 1 removes the initial values."""
    env = GridWorld("S..G", step_reward=-1.0, slip_probability=0.0, rewards={"G": 0.0})
    learners = TabularLearners(
        env.process, env.start, steps=400, epsilon=0.0, step_size=constant_step_size(1.0), num_learners=5
    )
    record = td_control(learners, next_value)
    values = record.q.amax(-1)
    torch.testing.assert_close(values, policy_iteration(env.process).values.expand(5, -1))
    assert bool((record.rewards == -1).all())


def test_q_learning_matches_closed_form() -> None:
    """Stroking has reward 2 and ends the episode: after n episodes with α = 0.5, Q = 2 (1 − 2⁻ⁿ)."""
    process, start = cat_decision_process(), torch.tensor([0.0, 0, 0, 1, 0, 0]).double()
    learners = TabularLearners(
        process, start, steps=40, epsilon=1.0, step_size=constant_step_size(0.5), num_learners=30
    )
    record = td_control(learners, q_learning_value)
    num_stroked = ((record.rewards == 2) & record.ended).sum(0)
    torch.testing.assert_close(record.q[:, 3, 2], 2 * (1 - 0.5 ** num_stroked.double()))
    assert bool((record.q[:, 3, 0] == 0).all())  # waiting is not allowed
    assert bool((record.q[:, 5] == 0).all())


def test_equal_seeds_give_equal_tables() -> None:
    process, start = cat_decision_process(), torch.tensor([0.0, 1, 0, 0, 0, 0]).double()
    learners = partial(
        TabularLearners, process, start, steps=50, epsilon=0.2, step_size=polynomial_step_size(), num_learners=3
    )
    tables = [
        td_control(learners(generator=torch.Generator().manual_seed(seed)), q_learning_value).q for seed in (0, 0, 1)
    ]
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])


def test_invalid_arguments_raise_value_error() -> None:
    process, start = cat_decision_process(), torch.tensor([0.0, 1, 0, 0, 0, 0]).double()
    with pytest.raises(ValueError, match="got steps=0"):
        TabularLearners(process, start, steps=0, epsilon=0.1, step_size=polynomial_step_size())
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]; got epsilon=2"):
        td_control(
            TabularLearners(process, start, steps=1, epsilon=2.0, step_size=polynomial_step_size()), q_learning_value
        )
