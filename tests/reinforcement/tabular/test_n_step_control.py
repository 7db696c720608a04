"""n = 1 is the plain rule; longer targets carry news further in one episode."""

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


@pytest.mark.parametrize("worth", [q_learning_value, sarsa_value, expected_sarsa_value])
def test_one_step_is_the_plain_rule(worth: NextValue) -> None:
    walks = partial(
        TabularLearners,
        cat_decision_process(),
        HUNGRY,
        steps=300,
        epsilon=0.3,
        step_size=polynomial_step_size(),
        num_learners=4,
    )
    plain = td_control(walks(generator=torch.Generator().manual_seed(0)), worth)
    one = n_step_td_control(walks(generator=torch.Generator().manual_seed(0)), worth, n_steps=1)
    torch.testing.assert_close(one.q, plain.q)
    torch.testing.assert_close(one.rewards, plain.rewards)


def test_news_of_the_goal_travels_n_cells() -> None:
    """A corridor where one can only go right in effect: after the first episode n cells know of the goal."""
    world = GridWorld("S....G", step_reward=0.0, slip=0.0)
    for horizon, known in ((1, 1), (3, 3), (5, 5)):
        source, steps = torch.Generator().manual_seed(1), 1
        while True:  # stop as soon as the first episode and its targets are over
            walks = TabularLearners(
                world.process,
                world.start,
                steps=steps,
                epsilon=1.0,
                step_size=constant_step_size(1.0),
                generator=source.manual_seed(1),
            )
            learned = n_step_td_control(walks, sarsa_value, n_steps=horizon)
            if bool(learned.ended[: steps - horizon + 1].any()):
                break
            steps += 1
        assert int((learned.q[0, :5].amax(-1) > 0).sum()) <= known
        assert float(learned.q[0, 4].max()) == 1


def test_a_target_by_hand() -> None:
    """From confused, two rewards: 1, then 2 and the end if the relaxed cat is stroked."""
    process, confused = cat_decision_process(0.5), torch.tensor([0.0, 0, 0, 0, 1, 0]).double()
    walks = partial(TabularLearners, process, confused, steps=2, epsilon=1.0, step_size=constant_step_size(1.0))
    learned = n_step_td_control(walks(num_learners=200), sarsa_value, n_steps=2)
    stroked = learned.ended[1]
    assert int(stroked.sum()) > 20
    torch.testing.assert_close(learned.q[stroked, 4, 0], torch.full((int(stroked.sum()),), 2.0).double())
    with pytest.raises(ValueError, match="n_steps must be at least 1; got n_steps=0"):
        n_step_td_control(walks(), sarsa_value, n_steps=0)
