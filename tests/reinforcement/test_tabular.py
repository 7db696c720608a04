"""One step of each rule by hand; where nothing is left to chance, the exact answer."""

from functools import partial

import pytest
import torch

from parnassus.reinforcement.cat import cat_decisions
from parnassus.reinforcement.grid_world import GridWorld
from parnassus.reinforcement.planning import policy_iteration
from parnassus.reinforcement.step_sizes import constant, shrinking
from parnassus.reinforcement.tabular import Ahead, Worth, best_next, drawn_next, expected_next, learn
from parnassus.reinforcement.walks import Walks


def test_what_the_next_state_is_worth() -> None:
    ahead = Ahead(torch.tensor([[1.0, 4.0, -torch.inf]]), torch.tensor([[0.25, 0.75, 0.0]]), torch.tensor([0]))
    assert float(best_next(ahead)) == 4
    assert float(drawn_next(ahead)) == 1
    assert float(expected_next(ahead)) == 3.25


@pytest.mark.parametrize("worth", [best_next, drawn_next, expected_next])
def test_a_corridor_without_chance_is_learned_exactly(worth: Worth) -> None:
    """Greedy in the end, where all three rules are one, and with α = 1 nothing of the beginning stays."""
    world = GridWorld("S..G", living=-1.0, slip=0.0, pays={"G": 0.0})
    walks = Walks(world.process, world.start, steps=400, epsilon=0.0, step_size=constant(1.0), learners=5)
    learned = learn(walks, worth)
    values = learned.q.amax(-1)
    torch.testing.assert_close(values, policy_iteration(world.process).values.expand(5, -1))
    assert bool((learned.rewards == -1).all())


def test_two_steps_by_hand() -> None:
    """Stroking pays 2 and ends the day: after n episodes with α = 0.5, Q = 2 (1 − 2⁻ⁿ)."""
    process, start = cat_decisions(), torch.tensor([0.0, 0, 0, 1, 0, 0]).double()
    walks = Walks(process, start, steps=40, epsilon=1.0, step_size=constant(0.5), learners=30)
    learned = learn(walks, best_next)
    stroked = ((learned.rewards == 2) & learned.ended).sum(0)
    torch.testing.assert_close(learned.q[:, 3, 2], 2 * (1 - 0.5 ** stroked.double()))
    assert bool((learned.q[:, 3, 0] == 0).all())  # one cannot wait
    assert bool((learned.q[:, 5] == 0).all())


def test_the_same_seed_gives_the_same_table() -> None:
    process, start = cat_decisions(), torch.tensor([0.0, 1, 0, 0, 0, 0]).double()
    walks = partial(Walks, process, start, steps=50, epsilon=0.2, step_size=shrinking(), learners=3)
    tables = [learn(walks(generator=torch.Generator().manual_seed(seed)), best_next).q for seed in (0, 0, 1)]
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])


def test_what_cannot_work_gets_a_sentence() -> None:
    process, start = cat_decisions(), torch.tensor([0.0, 1, 0, 0, 0, 0]).double()
    with pytest.raises(ValueError, match="got steps=0, learners=1"):
        Walks(process, start, steps=0, epsilon=0.1, step_size=shrinking())
    with pytest.raises(ValueError, match="ε is a probability; got epsilon=2"):
        learn(Walks(process, start, steps=1, epsilon=2.0, step_size=shrinking()), best_next)
