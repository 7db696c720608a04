"""Tabular rollouts: consecutive states, termination, truncation and resets."""

import pytest
import torch

from parnassus.reinforcement.tabular.rollout import rollout
from parnassus.reinforcement.textbook.cat import cat_decision_process, constant_policy

HUNGRY = torch.tensor([0.0, 1, 0, 0, 0, 0], dtype=torch.float64)


def test_steps_are_consecutive_and_terminations_marked() -> None:
    process = cat_decision_process()
    steps = rollout(
        process, constant_policy("stroke"), HUNGRY, steps=200, n_envs=20, generator=torch.Generator().manual_seed(0)
    )
    done = steps.terminated | steps.truncated
    expected = torch.where(done[:-1], torch.ones_like(steps.states[1:]), steps.next_states[:-1])
    assert torch.equal(steps.states[1:], expected)
    assert torch.equal(steps.terminated, process.terminal[steps.next_states])
    assert not bool(steps.truncated.any())
    assert bool(process.allowed[steps.states, steps.actions].all())
    assert bool((process.transition[steps.states, steps.actions, steps.next_states] > 0).all())
    assert not bool(process.terminal[steps.states].any())


def test_long_episodes_are_truncated() -> None:
    steps = rollout(cat_decision_process(), constant_policy("talk"), HUNGRY, steps=100, n_envs=30, max_episode_steps=4)
    both = steps.terminated & steps.truncated
    assert not bool(both.any())
    assert bool(steps.truncated.any())
    lengths = torch.zeros(30, dtype=torch.int64)
    for terminated, truncated in zip(steps.terminated, steps.truncated, strict=True):
        lengths += 1
        assert bool((lengths <= 4).all())
        assert torch.equal(truncated, (lengths == 4) & ~terminated)
        lengths[terminated | truncated] = 0


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must be at least 1; got max_episode_steps=0"):
        rollout(cat_decision_process(), constant_policy("talk"), HUNGRY, steps=1, n_envs=1, max_episode_steps=0)
    with pytest.raises(ValueError, match="a policy must choose allowed actions only"):
        rollout(cat_decision_process(), torch.full((6, 3), 1 / 3, dtype=torch.float64), HUNGRY, steps=1, n_envs=1)
