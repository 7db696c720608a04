"""Learned values meet the solved ones, and equal a loop written out."""

import pytest
import torch

from parnassus.reinforcement.tabular.markov_reward_process import MarkovRewardProcess
from parnassus.reinforcement.tabular.prediction import monte_carlo_values, td_lambda
from parnassus.reinforcement.tabular.step_sizes import constant_step_size, polynomial_step_size
from parnassus.reinforcement.textbook.cat import cat_reward_process

ROAD = MarkovRewardProcess(
    torch.tensor([[0.0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1]], dtype=torch.float64),
    torch.tensor([1.0, 2.0, 4.0, 0.0], dtype=torch.float64),
    0.5,
)
"""Three states in a row, then the end: nothing is left to chance."""
FIRST = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)


def test_sampled_returns_meet_the_values() -> None:
    values, error = monte_carlo_values(
        cat_reward_process(), 2_000, steps=120, generator=torch.Generator().manual_seed(0)
    )
    gap = (values - cat_reward_process().values()).abs()
    assert bool((gap[:-1] <= 4 * error[:-1]).all())
    assert float(values[-1]) == 0
    assert float(error[0]) > 0.1
    exact, none = monte_carlo_values(ROAD, 2, steps=5)
    torch.testing.assert_close(exact, ROAD.values())
    assert none.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("decay", [0.0, 0.4, 1.0])
def test_td_by_hand(decay: float) -> None:
    """Two episodes of a road without chance, in plain floats."""
    values, trace = [0.0] * 4, [0.0] * 4
    for _ in range(2):
        trace = [0.0] * 4
        for s in range(3):
            delta = float(ROAD.reward[s]) + 0.5 * values[s + 1] - values[s]
            trace = [0.5 * decay * e for e in trace]
            trace[s] += 1
            values = [v + 0.3 * delta * e for v, e in zip(values, trace, strict=True)]
    learned = td_lambda(ROAD, FIRST, steps=6, step_size=constant_step_size(0.3), trace_decay=decay, num_learners=2)
    torch.testing.assert_close(learned, torch.tensor([values, values], dtype=torch.float64))


def test_the_whole_way_needs_one_episode() -> None:
    """With λ = 1 and the mean of what was seen, one episode without chance gives the values."""
    learned = td_lambda(ROAD, FIRST, steps=3, step_size=polynomial_step_size(1.0), trace_decay=1.0)
    torch.testing.assert_close(learned[0], ROAD.values())


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="at least two paths; got num_paths=1"):
        monte_carlo_values(ROAD, 1, steps=3)
    with pytest.raises(ValueError, match=r"0 ≤ λ ≤ 1; got 1\.1"):
        td_lambda(ROAD, FIRST, steps=3, step_size=constant_step_size(0.3), trace_decay=1.1)
    with pytest.raises(ValueError, match="got steps=0"):
        td_lambda(ROAD, FIRST, steps=0, step_size=constant_step_size(0.3))
