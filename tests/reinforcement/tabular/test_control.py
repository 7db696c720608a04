"""One step of each rule by hand; where nothing is left to chance, the exact answer."""

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
from parnassus.reinforcement.tabular.planning import policy_iteration
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size
from parnassus.reinforcement.textbook.cat import cat_decision_process


def test_what_the_next_state_is_worth() -> None:
    ahead = NextStep(torch.tensor([[1.0, 4.0, -torch.inf]]), torch.tensor([[0.25, 0.75, 0.0]]), torch.tensor([0]))
    assert float(q_learning_value(ahead)) == 4
    assert float(sarsa_value(ahead)) == 1
    assert float(expected_sarsa_value(ahead)) == 3.25


@pytest.mark.parametrize("worth", [q_learning_value, sarsa_value, expected_sarsa_value])
def test_a_corridor_without_chance_is_learned_exactly(worth: NextValue) -> None:
    """Greedy in the end, where all three rules are one, and with α = 1 nothing of the beginning stays."""
    world = GridWorld("S..G", step_reward=-1.0, slip=0.0, rewards={"G": 0.0})
    walks = TabularLearners(
        world.process, world.start, steps=400, epsilon=0.0, step_size=constant_step_size(1.0), num_learners=5
    )
    learned = td_control(walks, worth)
    values = learned.q.amax(-1)
    torch.testing.assert_close(values, policy_iteration(world.process).values.expand(5, -1))
    assert bool((learned.rewards == -1).all())


def test_two_steps_by_hand() -> None:
    """Stroking pays 2 and ends the day: after n episodes with α = 0.5, Q = 2 (1 − 2⁻ⁿ)."""
    process, start = cat_decision_process(), torch.tensor([0.0, 0, 0, 1, 0, 0]).double()
    walks = TabularLearners(process, start, steps=40, epsilon=1.0, step_size=constant_step_size(0.5), num_learners=30)
    learned = td_control(walks, q_learning_value)
    stroked = ((learned.rewards == 2) & learned.ended).sum(0)
    torch.testing.assert_close(learned.q[:, 3, 2], 2 * (1 - 0.5 ** stroked.double()))
    assert bool((learned.q[:, 3, 0] == 0).all())  # one cannot wait
    assert bool((learned.q[:, 5] == 0).all())


def test_the_same_seed_gives_the_same_table() -> None:
    process, start = cat_decision_process(), torch.tensor([0.0, 1, 0, 0, 0, 0]).double()
    walks = partial(
        TabularLearners, process, start, steps=50, epsilon=0.2, step_size=polynomial_step_size(), num_learners=3
    )
    tables = [
        td_control(walks(generator=torch.Generator().manual_seed(seed)), q_learning_value).q for seed in (0, 0, 1)
    ]
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])


def test_what_cannot_work_gets_a_sentence() -> None:
    process, start = cat_decision_process(), torch.tensor([0.0, 1, 0, 0, 0, 0]).double()
    with pytest.raises(ValueError, match="got steps=0"):
        TabularLearners(process, start, steps=0, epsilon=0.1, step_size=polynomial_step_size())
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]; got epsilon=2"):
        td_control(
            TabularLearners(process, start, steps=1, epsilon=2.0, step_size=polynomial_step_size()), q_learning_value
        )
