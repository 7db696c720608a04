"""Tensor environments: agreement with gymnasium, automatic resets and restoring."""

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


def get_state(env: Any) -> torch.Tensor:
    """Internal state of a gymnasium environment."""
    return torch.from_numpy(np.array(env.unwrapped.state, dtype=np.float64))[None]


def random_actions(name: str, count: int) -> torch.Tensor:
    actions = TENSOR_ENVIRONMENTS[name].actions
    generator = torch.Generator().manual_seed(3)
    if isinstance(actions, Continuous):
        return torch.empty(count, actions.count).uniform_(-3, 3, generator=generator)
    return torch.randint(actions.count, (count,), generator=generator)


@pytest.mark.parametrize("name", sorted(TENSOR_ENVIRONMENTS))
def test_step_matches_gymnasium(name: str) -> None:
    dynamics = TENSOR_ENVIRONMENTS[name]
    env = make_gymnasium(name)
    for seed in range(3):
        env.reset(seed=seed)
        state = get_state(env)
        for action in random_actions(name, 60):
            bounded = action.clamp(-2, 2) if action.is_floating_point() else action
            observation, reward, expected_terminated, _, _ = env.step(bounded.numpy() if action.ndim else int(action))
            next_state, actual_reward, terminated = dynamics.step(state, bounded[None])
            assert float(actual_reward[0]) == pytest.approx(float(reward), abs=1e-6)
            assert bool(terminated[0]) == expected_terminated
            assert np.allclose(dynamics.observe(next_state)[0].numpy(), observation, atol=1e-6)
            state = get_state(env)
            assert torch.allclose(dynamics.observe(state), dynamics.observe(next_state), atol=1e-6)
            if expected_terminated:
                break


@pytest.mark.parametrize("name", sorted(TENSOR_ENVIRONMENTS))
def test_episode_matches_gymnasium(name: str) -> None:
    dynamics, env = TENSOR_ENVIRONMENTS[name], make_gymnasium(name)
    env.reset(seed=7)
    state = get_state(env)
    for action in random_actions(name, 25):
        bounded = action.clamp(-2, 2) if action.is_floating_point() else action
        _, _, terminated, _, _ = env.step(bounded.numpy() if action.ndim else int(action))
        state = dynamics.step(state, bounded[None]).state
        if terminated:
            break
    assert torch.allclose(dynamics.observe(state), dynamics.observe(get_state(env)), atol=1e-5)


def test_time_limit_truncates_and_resets() -> None:
    torch.manual_seed(0)
    envs = TensorEnvironments(MountainCar(max_episode_steps=5), 3)
    envs.reset()
    for step in range(1, 11):
        result = envs.step(torch.ones(3, dtype=torch.int64))
        assert result.truncated.tolist() == [step % 5 == 0] * 3
        assert not result.terminated.any()
        assert torch.equal(result.observation, result.next_observations) == (step % 5 != 0)


def test_terminated_episodes_are_not_truncated() -> None:
    torch.manual_seed(0)
    envs = TensorEnvironments(CartPole(max_episode_steps=1_000), 2)
    envs.reset()
    lengths = [0, 0]
    for _ in range(200):
        result = envs.step(torch.tensor([0, 1]))
        lengths = [length + 1 for length in lengths]
        assert not result.truncated.any()
        for env in result.terminated.nonzero()[:, 0].tolist():
            assert 7 <= lengths[env] <= 12  # the pole falls quickly under a constant action
            assert (
                float(result.next_observations[env, 2].abs())
                > CartPole.max_angle
                > float(result.observation[env, 2].abs())
            )
            lengths[env] = 0


def test_state_dict_round_trip_continues_identically() -> None:
    torch.manual_seed(0)
    envs, restored = TensorEnvironments(CartPole(), 4), TensorEnvironments(CartPole(), 4)
    envs.reset()
    envs.step(torch.tensor([0, 1, 0, 1]))
    restored.load_state_dict(envs.state_dict())
    for _ in range(30):
        torch.manual_seed(5)
        first = envs.step(torch.tensor([0, 1, 0, 1]))
        torch.manual_seed(5)
        second = restored.step(torch.tensor([0, 1, 0, 1]))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_zero_environments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="n_envs must be at least 1; got n_envs=0"):
        TensorEnvironments(CartPole(), 0)
