"""Gymnasium environments: termination, truncation, restoring, failures and worker processes."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from parnassus.reinforcement.environments import (
    BrokenEnvironmentError,
    Continuous,
    Discrete,
    GymnasiumEnvironments,
    Step,
    make_environments,
)
from parnassus.reinforcement.environments.gymnasium import MAX_UNUSED_ACTIONS
from parnassus.reinforcement.environments.gymnasium_serial import SerialEnvironments
from parnassus.reinforcement.environments.gymnasium_workers import WorkerEnvironments

gymnasium: Any = pytest.importorskip("gymnasium")


class FailingEnv(gymnasium.Env):  # type: ignore[misc]  # gymnasium is optional
    """Fails or returns a non-finite value in its fourth step, or fails on creation or reset."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2, start=1)

    def __init__(self, failure: str) -> None:
        self.failure, self.age = failure, 0
        self.received: list[int] = []
        if failure == "make":
            raise LookupError("missing file")
        if failure == "discrete":
            self.observation_space = gymnasium.spaces.Discrete(3, start=5)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.age = 0
        if self.failure == "reset":
            raise RuntimeError
        return (5 if self.failure == "discrete" else np.zeros(2, dtype=np.float32)), {"seed": seed}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.age += 1
        self.received.append(int(action))
        if self.age == 4 and self.failure == "crash":
            raise ZeroDivisionError("simulation failed\nsecond line")
        if self.age == 4 and self.failure == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        reward = float("nan") if self.age == 4 and self.failure == "nan" else 1.0
        if self.failure == "discrete":
            return 5 + self.age % 3, reward, False, False, {}
        observation = (
            self.np_random.random(2) if self.failure != "irreproducible" else np.random.default_rng().random(2)
        )
        if self.age == 4 and self.failure == "infinite":
            observation = np.array([0.5, np.inf])
        return np.float32(observation), reward, self.age == 6, False, {"age": self.age}


@pytest.fixture
def env_id() -> Iterator[Any]:
    names = []
    for failure in ("crash", "nan", "infinite", "irreproducible", "none", "discrete", "reset", "kill", "make"):
        name = f"Broken-{failure}-v0"
        gymnasium.register(name, entry_point=FailingEnv, kwargs={"failure": failure}, max_episode_steps=5)
        names.append(name)
    yield lambda failure: f"Broken-{failure}-v0"
    for name in names:
        del gymnasium.registry[name]


def steps_equal(first: Step, second: Step) -> bool:
    return all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_action_and_observation_spaces() -> None:
    assert GymnasiumEnvironments("CartPole-v1", 2).actions == Discrete(2)
    pendulum = GymnasiumEnvironments("Pendulum-v1", 2)
    assert (pendulum.actions, pendulum.features, pendulum.max_episode_steps) == (Continuous((-2.0,), (2.0,)), 3, 200)
    assert GymnasiumEnvironments("FrozenLake-v1", 1).reset().sum() == 1


def test_discrete_observations_are_one_hot(env_id: Any) -> None:
    envs = GymnasiumEnvironments(env_id("discrete"), 2)
    assert envs.reset().tolist() == [[1, 0, 0]] * 2
    assert envs.step(torch.tensor([0, 1])).observation.tolist() == [[0, 1, 0]] * 2


def test_truncation_is_not_termination(env_id: Any) -> None:
    envs = GymnasiumEnvironments(env_id("none"), 2)
    envs.reset()
    for step in range(1, 11):
        result = envs.step(torch.tensor([0, 1]))
        assert result.truncated.tolist() == [step % 5 == 0] * 2
        assert not result.terminated.any()
        assert bool((result.observation == 0).all()) == (step % 5 == 0)
        assert bool((result.next_observations > 0).all())
    assert isinstance(envs.backend, SerialEnvironments)
    env: Any = envs.backend.envs[0].unwrapped
    assert env.received[0] == 1  # actions are offset by the start of the space


def test_steps_match_gymnasium_sync_vector_env() -> None:
    """SyncVectorEnv with episodes reset to the same seeds gives the same values."""
    reference: Any = gymnasium.make_vec(
        "CartPole-v1", num_envs=3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": "Disabled"}
    )
    torch.manual_seed(0)
    envs, actions, num_ended = GymnasiumEnvironments("CartPole-v1", 3), torch.randint(2, (120, 3)), 0
    observation = envs.reset()
    np.testing.assert_array_equal(observation.numpy(), reference.reset(seed=list(envs.seeds))[0])
    for action in actions:
        step = envs.step(action)
        expected, reward, terminated, truncated, _ = reference.step(action.numpy())
        np.testing.assert_array_equal(step.next_observations.numpy(), expected)
        np.testing.assert_array_equal(step.reward.numpy(), reward)
        np.testing.assert_array_equal(step.terminated.numpy(), terminated)
        done = terminated | truncated
        num_ended += int(done.sum())
        if done.any():
            expected, _ = reference.reset(seed=list(envs.seeds), options={"reset_mask": done})
        np.testing.assert_array_equal(step.observation.numpy(), expected)
    assert num_ended > 3


def test_returned_arrays_are_not_overwritten(env_id: Any) -> None:
    """Returned arrays are copies, and the caller may reuse its action tensor."""
    envs, action = GymnasiumEnvironments(env_id("none"), 1), torch.tensor([0])
    first = envs.reset()
    steps = [envs.step(action.fill_(step % 2)) for step in range(6)]
    assert first.tolist() == steps[4].observation.tolist() == [[0, 0]]
    assert all(float(step.next_observations.min()) > 0 for step in steps)
    assert len({float(step.next_observations[0, 0]) for step in steps}) == 6
    assert [int(received[0]) for received in envs.past] == [1, 2] * 3


def test_actions_are_clipped_to_their_bounds() -> None:
    copies = [GymnasiumEnvironments("Pendulum-v1", 1) for _ in range(2)]
    for envs, torque in zip(copies, (2.0, 50.0), strict=True):
        torch.manual_seed(0)
        envs.reset()
        envs.step(torch.tensor([[torque]]))
    assert np.array_equal(copies[0].observations, copies[1].observations)


def test_past_actions_are_pruned(env_id: Any) -> None:
    envs = GymnasiumEnvironments(env_id("none"), 2)
    envs.reset()
    for _ in range(MAX_UNUSED_ACTIONS + 12):
        envs.step(torch.tensor([0, 1]))
    assert len(envs.past) < 20
    restored = GymnasiumEnvironments(env_id("none"), 2)
    restored.load_state_dict(envs.state_dict())
    assert np.array_equal(restored.observations, envs.observations)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_state_dict_round_trip_continues_identically(num_workers: int) -> None:
    torch.manual_seed(0)
    envs, restored = (
        GymnasiumEnvironments("LunarLander-v3", 2, num_workers=num_workers),
        GymnasiumEnvironments("LunarLander-v3", 2),
    )
    envs.reset()
    for step in range(90):
        envs.step(torch.tensor([step % 4, 0]))
    restored.load_state_dict(envs.state_dict())
    for step in range(20):
        torch.manual_seed(step)
        first = envs.step(torch.tensor([2, 3]))
        torch.manual_seed(step)
        second = restored.step(torch.tensor([2, 3]))
        assert steps_equal(first, second)
    envs.load_state_dict(restored.state_dict())
    envs.close()


def test_state_dict_before_the_first_step() -> None:
    torch.manual_seed(0)
    envs, restored = GymnasiumEnvironments("CartPole-v1", 2), GymnasiumEnvironments("CartPole-v1", 2)
    observations = envs.reset()
    restored.load_state_dict(envs.state_dict())
    assert np.array_equal(restored.observations, observations.numpy())


def test_irreproducible_environment_raises_on_restore(env_id: Any) -> None:
    envs = GymnasiumEnvironments(env_id("irreproducible"), 1)
    envs.reset()
    envs.step(torch.tensor([0]))
    with pytest.raises(BrokenEnvironmentError, match="is not reproducible from its seed"):
        GymnasiumEnvironments(env_id("irreproducible"), 1).load_state_dict(envs.state_dict())


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ("crash", r"in step 4 of an episode \(seed \d+\): simulation failed$"),
        ("nan", "returned the reward nan in step 4"),
        ("infinite", "returned the observation .* inf.* in step 4"),
    ],
)
def test_failures_in_a_step_raise_broken_environment_error(
    env_id: Any, failure: str, message: str, num_workers: int
) -> None:
    envs = GymnasiumEnvironments(env_id(failure), 2, num_workers=num_workers)
    envs.reset()
    for _ in range(3):
        envs.step(torch.tensor([0, 1]))
    with pytest.raises(BrokenEnvironmentError, match=message):
        envs.step(torch.tensor([0, 1]))
    envs.close()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_failure_in_reset_raises_broken_environment_error(env_id: Any, num_workers: int) -> None:
    envs = GymnasiumEnvironments(env_id("reset"), 2, num_workers=num_workers)
    with pytest.raises(BrokenEnvironmentError, match=r"failed at the beginning of an episode \(.*\): RuntimeError"):
        envs.reset()
    envs.close()


def test_failure_in_make_raises_broken_environment_error(env_id: Any) -> None:
    with pytest.raises(BrokenEnvironmentError, match="gymnasium cannot make 'Broken-make-v0': missing file"):
        GymnasiumEnvironments(env_id("make"), 1)
    with pytest.raises(BrokenEnvironmentError, match="gymnasium cannot make 'CatPole-v1'"):
        GymnasiumEnvironments("CatPole-v1", 1)


def test_invalid_counts_raise_value_error() -> None:
    with pytest.raises(ValueError, match="n_envs must be at least 1; got n_envs=0"):
        GymnasiumEnvironments("CartPole-v1", 0)
    with pytest.raises(ValueError, match="got num_workers=-1"):
        GymnasiumEnvironments("CartPole-v1", 2, num_workers=-1)
    with pytest.raises(ValueError, match="n_envs must be divisible by num_workers; got n_envs=3, num_workers=2"):
        WorkerEnvironments(SerialEnvironments("CartPole-v1", [gymnasium.make("CartPole-v1")]), 3, num_workers=2)


@pytest.mark.parametrize(("name", "action"), [("CartPole-v1", torch.tensor(1)), ("Pendulum-v1", torch.tensor([0.5]))])
def test_results_do_not_depend_on_the_number_of_workers(name: str, action: torch.Tensor) -> None:
    serial, parallel = (
        make_environments(name, 6, use_gymnasium=True),
        make_environments(name, 6, use_gymnasium=True, num_workers=4),
    )
    assert isinstance(parallel, GymnasiumEnvironments)
    assert isinstance(parallel.backend, WorkerEnvironments)
    assert parallel.backend.num_workers == 3  # the largest number of workers that divides 6
    for envs in (serial, parallel):
        torch.manual_seed(0)
        envs.reset()
    for step in range(40):  # includes resets
        torch.manual_seed(step)
        first = serial.step(action.expand(6, *action.shape))
        torch.manual_seed(step)
        assert steps_equal(first, parallel.step(action.expand(6, *action.shape)))
    parallel.close()


def test_single_environment_uses_no_worker() -> None:
    assert isinstance(GymnasiumEnvironments("CartPole-v1", 1, num_workers=8).backend, SerialEnvironments)


def test_workers_stop_when_environments_are_deleted() -> None:
    envs = GymnasiumEnvironments("CartPole-v1", 2, num_workers=2)
    assert isinstance(envs.backend, WorkerEnvironments)
    processes = envs.backend.vector.processes
    envs.reset()
    assert all(process.is_alive() for process in processes)
    del envs
    assert not any(process.is_alive() for process in processes)


def test_workers_ignore_sigint() -> None:
    envs = GymnasiumEnvironments("CartPole-v1", 2, num_workers=2)
    assert isinstance(envs.backend, WorkerEnvironments)
    envs.reset()
    for process in envs.backend.vector.processes:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGINT)
    assert torch.isfinite(envs.step(torch.tensor([0, 1])).observation).all()
    envs.close()


def test_killed_worker_raises_broken_environment_error(env_id: Any) -> None:
    envs = GymnasiumEnvironments(env_id("kill"), 4, num_workers=2)
    assert isinstance(envs.backend, WorkerEnvironments)
    processes = envs.backend.vector.processes
    envs.reset()
    for _ in range(3):
        envs.step(torch.tensor([0, 1, 0, 1]))
    with pytest.raises(BrokenEnvironmentError, match=r"a worker process of Broken-kill-v0 ended \(exit code -9"):
        envs.step(torch.tensor([0, 1, 0, 1]))
    assert not any(process.is_alive() for process in processes)
