"""Settings that suit an environment, and how often a budget suffices."""

import pytest

from parnassus.reinforcement.agents.settings import num_updates


def test_a_budget_is_spent_in_whole_updates() -> None:
    assert num_updates(1_000, 8, 32) == 3
    assert num_updates(256, 8, 32) == 1


def test_a_budget_below_one_update_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one update needs 16 environments × 1024 steps; got total_timesteps=2,000"):
        num_updates(2_000, 16, 1_024)
