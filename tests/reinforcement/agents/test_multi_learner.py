"""The number of updates that fit into the requested environment steps."""

import pytest

from parnassus.reinforcement.agents.multi_learner import num_updates


def test_updates_are_rounded_down() -> None:
    assert num_updates(1_000, 8, 32) == 3
    assert num_updates(256, 8, 32) == 1


def test_fewer_steps_than_one_update_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"one update needs 16 environments × 1024 steps; got total_timesteps=2,000"):
        num_updates(2_000, 16, 1_024)
