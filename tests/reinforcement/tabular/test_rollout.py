"""Rollouts: one step follows the other, ends and cuts are marked, and a new episode begins."""

import pytest
import torch

from parnassus.reinforcement.tabular.rollout import rollout
from parnassus.reinforcement.textbook.cat import cat_decision_process, constant_policy

HUNGRY = torch.tensor([0.0, 1, 0, 0, 0, 0], dtype=torch.float64)


def test_steps_join_and_ends_are_marked() -> None:
    process = cat_decision_process()
    seen = rollout(
        process, constant_policy("stroke"), HUNGRY, steps=200, n_envs=20, generator=torch.Generator().manual_seed(0)
    )
    over = seen.terminated | seen.truncated
    joined = torch.where(over[:-1], torch.ones_like(seen.states[1:]), seen.next_states[:-1])
    assert torch.equal(seen.states[1:], joined)
    assert torch.equal(seen.terminated, process.terminal[seen.next_states])
    assert not bool(seen.truncated.any())
    assert bool(process.allowed[seen.states, seen.actions].all())
    assert bool((process.transition[seen.states, seen.actions, seen.next_states] > 0).all())
    assert not bool(process.terminal[seen.states].any())


def test_long_episodes_are_cut() -> None:
    seen = rollout(cat_decision_process(), constant_policy("talk"), HUNGRY, steps=100, n_envs=30, max_episode_steps=4)
    both = seen.terminated & seen.truncated
    assert not bool(both.any())
    assert bool(seen.truncated.any())
    ages = torch.zeros(30, dtype=torch.int64)
    for over, cut in zip(seen.terminated, seen.truncated, strict=True):
        ages += 1
        assert bool((ages <= 4).all())
        assert torch.equal(cut, (ages == 4) & ~over)
        ages[over | cut] = 0


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="must be at least 1; got max_episode_steps=0"):
        rollout(cat_decision_process(), constant_policy("talk"), HUNGRY, steps=1, n_envs=1, max_episode_steps=0)
    with pytest.raises(ValueError, match="a policy must choose allowed actions only"):
        rollout(cat_decision_process(), torch.full((6, 3), 1 / 3, dtype=torch.float64), HUNGRY, steps=1, n_envs=1)
