"""Learned values meet the solved ones, and equal a loop written out."""

import pytest
import torch

from parnassus.reinforcement.cat import cat_rewards
from parnassus.reinforcement.markov_reward import MarkovRewardProcess
from parnassus.reinforcement.prediction import sampled_values, temporal_differences
from parnassus.reinforcement.step_sizes import constant, shrinking

ROAD = MarkovRewardProcess(
    torch.tensor([[0.0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1]], dtype=torch.float64),
    torch.tensor([1.0, 2.0, 4.0, 0.0], dtype=torch.float64),
    0.5,
)
"""Three states in a row, then the end: nothing is left to chance."""
FIRST = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)


def test_sampled_returns_meet_the_values() -> None:
    values, error = sampled_values(cat_rewards(), 2_000, steps=120, generator=torch.Generator().manual_seed(0))
    gap = (values - cat_rewards().values()).abs()
    assert bool((gap[:-1] <= 4 * error[:-1]).all())
    assert float(values[-1]) == 0
    assert float(error[0]) > 0.1
    exact, none = sampled_values(ROAD, 2, steps=5)
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
    learned = temporal_differences(ROAD, FIRST, steps=6, step_size=constant(0.3), decay=decay, learners=2)
    torch.testing.assert_close(learned, torch.tensor([values, values], dtype=torch.float64))


def test_the_whole_way_needs_one_episode() -> None:
    """With λ = 1 and the mean of what was seen, one episode without chance gives the values."""
    learned = temporal_differences(ROAD, FIRST, steps=3, step_size=shrinking(1.0), decay=1.0)
    torch.testing.assert_close(learned[0], ROAD.values())


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="at least two walks; got count=1"):
        sampled_values(ROAD, 1, steps=3)
    with pytest.raises(ValueError, match=r"0 ≤ λ ≤ 1; got decay=1\.1"):
        temporal_differences(ROAD, FIRST, steps=3, step_size=constant(0.3), decay=1.1)
    with pytest.raises(ValueError, match="got steps=0, learners=1"):
        temporal_differences(ROAD, FIRST, steps=0, step_size=constant(0.3))
