"""Worlds in tensors give gymnasium's numbers, begin again by themselves and can be interrupted."""

from typing import Any

import numpy as np
import pytest
import torch

from parnassus.reinforcement.environments import (
    TENSOR_ENVIRONMENTS,
    CartPole,
    Continuous,
    MountainCar,
    TensorEnvironments,
)
from parnassus.reinforcement.environments.gymnasium_serial import make_gymnasium

pytest.importorskip("gymnasium")


def state_of(world: Any) -> torch.Tensor:
    """What gymnasium keeps inside."""
    return torch.from_numpy(np.array(world.unwrapped.state, dtype=np.float64))[None]


def drawn_actions(name: str, count: int) -> torch.Tensor:
    actions = TENSOR_ENVIRONMENTS[name].actions
    generator = torch.Generator().manual_seed(3)
    if isinstance(actions, Continuous):
        return torch.empty(count, actions.count).uniform_(-3, 3, generator=generator)
    return torch.randint(actions.count, (count,), generator=generator)


@pytest.mark.parametrize("name", sorted(TENSOR_ENVIRONMENTS))
def test_each_step_is_gymnasiums(name: str) -> None:
    physics = TENSOR_ENVIRONMENTS[name]
    world = make_gymnasium(name)
    for seed in range(3):
        world.reset(seed=seed)
        state = state_of(world)
        for action in drawn_actions(name, 60):
            bounded = action.clamp(-2, 2) if action.is_floating_point() else action
            seen, reward, over, _, _ = world.step(bounded.numpy() if action.ndim else int(action))
            moved, paid, ended = physics.move(state, bounded[None])
            assert float(paid[0]) == pytest.approx(float(reward), abs=1e-6)
            assert bool(ended[0]) == over
            assert np.allclose(physics.observe(moved)[0].numpy(), seen, atol=1e-6)
            state = state_of(world)
            assert torch.allclose(physics.observe(state), physics.observe(moved), atol=1e-6)
            if over:
                break


@pytest.mark.parametrize("name", sorted(TENSOR_ENVIRONMENTS))
def test_whole_episodes_stay_together(name: str) -> None:
    physics, world = TENSOR_ENVIRONMENTS[name], make_gymnasium(name)
    world.reset(seed=7)
    state = state_of(world)
    for action in drawn_actions(name, 25):
        bounded = action.clamp(-2, 2) if action.is_floating_point() else action
        _, _, over, _, _ = world.step(bounded.numpy() if action.ndim else int(action))
        state = physics.move(state, bounded[None]).state
        if over:
            break
    assert torch.allclose(physics.observe(state), physics.observe(state_of(world)), atol=1e-5)


def test_a_limit_of_time_truncates_and_a_new_episode_begins() -> None:
    torch.manual_seed(0)
    world = TensorEnvironments(MountainCar(max_episode_steps=5), 3)
    world.reset()
    for step in range(1, 11):
        seen = world.step(torch.ones(3, dtype=torch.int64))
        assert seen.truncated.tolist() == [step % 5 == 0] * 3
        assert not seen.terminated.any()
        assert torch.equal(seen.observation, seen.next_observations) == (step % 5 != 0)


def test_the_end_of_the_task_is_no_truncation() -> None:
    torch.manual_seed(0)
    world = TensorEnvironments(CartPole(max_episode_steps=1_000), 2)
    world.reset()
    lengths = [0, 0]
    for _ in range(200):
        seen = world.step(torch.tensor([0, 1]))
        lengths = [length + 1 for length in lengths]
        assert not seen.truncated.any()
        for copy in seen.terminated.nonzero()[:, 0].tolist():
            assert 7 <= lengths[copy] <= 12  # pushed one way only, the pole falls at once
            assert (
                float(seen.next_observations[copy, 2].abs())
                > CartPole.max_angle
                > float(seen.observation[copy, 2].abs())
            )
            lengths[copy] = 0


def test_it_goes_on_from_its_state() -> None:
    torch.manual_seed(0)
    world, other = TensorEnvironments(CartPole(), 4), TensorEnvironments(CartPole(), 4)
    world.reset()
    world.step(torch.tensor([0, 1, 0, 1]))
    other.load_state_dict(world.state_dict())
    for _ in range(30):
        torch.manual_seed(5)
        first = world.step(torch.tensor([0, 1, 0, 1]))
        torch.manual_seed(5)
        second = other.step(torch.tensor([0, 1, 0, 1]))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_no_copies_are_refused() -> None:
    with pytest.raises(ValueError, match="n_envs must be at least 1; got n_envs=0"):
        TensorEnvironments(CartPole(), 0)
