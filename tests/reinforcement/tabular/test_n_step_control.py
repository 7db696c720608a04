"""n-step TD control."""

from functools import partial

import pytest
import torch

from parnassus.reinforcement.tabular.control import (
    NextValue,
    expected_sarsa_value,
    q_learning_value,
    sarsa_value,
    td_control,
)
from parnassus.reinforcement.tabular.epsilon_greedy_learners import TabularLearners
from parnassus.reinforcement.tabular.grid_world import GridWorld
from parnassus.reinforcement.tabular.n_step_control import n_step_td_control
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size
from parnassus.reinforcement.textbook.cat import cat_decision_process

HUNGRY = torch.tensor([0.0, 1, 0, 0, 0, 0], dtype=torch.float64)


@pytest.mark.parametrize("next_value", [q_learning_value, sarsa_value, expected_sarsa_value])
def test_one_step_matches_td_control(next_value: NextValue) -> None:
    learners = partial(
        TabularLearners,
        cat_decision_process(),
        HUNGRY,
        steps=300,
        epsilon=0.3,
        step_size=polynomial_step_size(),
        num_learners=4,
    )
    expected = td_control(learners(generator=torch.Generator().manual_seed(0)), next_value)
    actual = n_step_td_control(learners(generator=torch.Generator().manual_seed(0)), next_value, n_steps=1)
    torch.testing.assert_close(actual.q, expected.q)
    torch.testing.assert_close(actual.rewards, expected.rewards)


def test_reward_propagates_n_cells_per_episode() -> None:
    """After the first episode in a corridor at most n cells have a positive value."""
    env = GridWorld("S....G", step_reward=0.0, slip_probability=0.0)
    for horizon, num_cells in ((1, 1), (3, 3), (5, 5)):
        generator, steps = torch.Generator().manual_seed(1), 1
        while True:  # until the first episode and its targets are complete
            learners = TabularLearners(
                env.process,
                env.start,
                steps=steps,
                epsilon=1.0,
                step_size=constant_step_size(1.0),
                generator=generator.manual_seed(1),
            )
            record = n_step_td_control(learners, sarsa_value, n_steps=horizon)
            if bool(record.ended[: steps - horizon + 1].any()):
                break
            steps += 1
        assert int((record.q[0, :5].amax(-1) > 0).sum()) <= num_cells
        assert float(record.q[0, 4].max()) == 1


def test_two_step_target_matches_closed_form() -> None:
    """From confused, reward 1, then reward 2 and the end if the relaxed cat is stroked."""
    process, confused = cat_decision_process(0.5), torch.tensor([0.0, 0, 0, 0, 1, 0]).double()
    learners = partial(TabularLearners, process, confused, steps=2, epsilon=1.0, step_size=constant_step_size(1.0))
    record = n_step_td_control(learners(num_learners=200), sarsa_value, n_steps=2)
    stroked = record.ended[1]
    assert int(stroked.sum()) > 20
    torch.testing.assert_close(record.q[stroked, 4, 0], torch.full((int(stroked.sum()),), 2.0).double())
    with pytest.raises(ValueError, match="n_steps must be at least 1; got n_steps=0"):
        n_step_td_control(learners(), sarsa_value, n_steps=0)
