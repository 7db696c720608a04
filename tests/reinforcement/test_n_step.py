"""n = 1 is the plain rule; longer targets carry news further in one episode."""

from functools import partial

import pytest
import torch

from parnassus.reinforcement.cat import cat_decisions
from parnassus.reinforcement.grid_world import GridWorld
from parnassus.reinforcement.n_step import learn_n_steps
from parnassus.reinforcement.step_sizes import constant, shrinking
from parnassus.reinforcement.tabular import Worth, best_next, drawn_next, expected_next, learn
from parnassus.reinforcement.walks import Walks

HUNGRY = torch.tensor([0.0, 1, 0, 0, 0, 0], dtype=torch.float64)


@pytest.mark.parametrize("worth", [best_next, drawn_next, expected_next])
def test_one_step_is_the_plain_rule(worth: Worth) -> None:
    walks = partial(Walks, cat_decisions(), HUNGRY, steps=300, epsilon=0.3, step_size=shrinking(), learners=4)
    plain = learn(walks(generator=torch.Generator().manual_seed(0)), worth)
    one = learn_n_steps(walks(generator=torch.Generator().manual_seed(0)), worth, horizon=1)
    torch.testing.assert_close(one.q, plain.q)
    torch.testing.assert_close(one.rewards, plain.rewards)


def test_news_of_the_goal_travels_n_cells() -> None:
    """A corridor where one can only go right in effect: after the first episode n cells know of the goal."""
    world = GridWorld("S....G", living=0.0, slip=0.0)
    for horizon, known in ((1, 1), (3, 3), (5, 5)):
        source, steps = torch.Generator().manual_seed(1), 1
        while True:  # stop as soon as the first episode and its targets are over
            walks = Walks(
                world.process,
                world.start,
                steps=steps,
                epsilon=1.0,
                step_size=constant(1.0),
                generator=source.manual_seed(1),
            )
            learned = learn_n_steps(walks, drawn_next, horizon=horizon)
            if bool(learned.ended[: steps - horizon + 1].any()):
                break
            steps += 1
        assert int((learned.q[0, :5].amax(-1) > 0).sum()) <= known
        assert float(learned.q[0, 4].max()) == 1


def test_a_target_by_hand() -> None:
    """From confused, two rewards: 1, then 2 and the end if the relaxed cat is stroked."""
    process, confused = cat_decisions(0.5), torch.tensor([0.0, 0, 0, 0, 1, 0]).double()
    walks = partial(Walks, process, confused, steps=2, epsilon=1.0, step_size=constant(1.0))
    learned = learn_n_steps(walks(learners=200), drawn_next, horizon=2)
    stroked = learned.ended[1]
    assert int(stroked.sum()) > 20
    torch.testing.assert_close(learned.q[stroked, 4, 0], torch.full((int(stroked.sum()),), 2.0).double())
    with pytest.raises(ValueError, match="at least one reward; got horizon=0"):
        learn_n_steps(walks(), drawn_next, horizon=0)
