"""Environments of gymnasium: ends told apart, episodes played again, failures in a sentence; with workers the same."""

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
from parnassus.reinforcement.environments.gymnasium import UNUSED_ACTIONS
from parnassus.reinforcement.environments.gymnasium_serial import SerialEnvironments
from parnassus.reinforcement.environments.gymnasium_workers import WorkerEnvironments

gymnasium: Any = pytest.importorskip("gymnasium")


class Broken(gymnasium.Env):  # type: ignore[misc]  # an extra, not there for the type checker
    """Breaks, dies or returns what is not finite in its fourth step; some are broken from the beginning."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2, start=1)

    def __init__(self, how: str) -> None:
        self.how, self.age = how, 0
        self.asked: list[int] = []
        if how == "unmade":
            raise LookupError("no wheels")
        if how == "numbered":
            self.observation_space = gymnasium.spaces.Discrete(3, start=5)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.age = 0
        if self.how == "stillborn":
            raise RuntimeError
        return (5 if self.how == "numbered" else np.zeros(2, dtype=np.float32)), {"seed": seed}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.age += 1
        self.asked.append(int(action))
        if self.age == 4 and self.how == "crash":
            raise ZeroDivisionError("the wheel came off\nand rolled away")
        if self.age == 4 and self.how == "death":
            os.kill(os.getpid(), signal.SIGKILL)
        reward = float("nan") if self.age == 4 and self.how == "nan" else 1.0
        if self.how == "numbered":
            return 5 + self.age % 3, reward, False, False, {}
        lucky = self.np_random.random(2) if self.how != "forgetful" else np.random.default_rng().random(2)
        if self.age == 4 and self.how == "endless":
            lucky = np.array([0.5, np.inf])
        return np.float32(lucky), reward, self.age == 6, False, {"age": self.age}


@pytest.fixture
def broken() -> Iterator[Any]:
    names = []
    for how in ("crash", "nan", "endless", "forgetful", "fine", "numbered", "stillborn", "death", "unmade"):
        name = f"Broken-{how}-v0"
        gymnasium.register(name, entry_point=Broken, kwargs={"how": how}, max_episode_steps=5)
        names.append(name)
    yield lambda how: f"Broken-{how}-v0"
    for name in names:
        del gymnasium.registry[name]


def same(first: Step, second: Step) -> bool:
    return all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_what_acts_and_what_is_seen() -> None:
    assert GymnasiumEnvironments("CartPole-v1", 2).actions == Discrete(2)
    pendulum = GymnasiumEnvironments("Pendulum-v1", 2)
    assert (pendulum.actions, pendulum.features, pendulum.max_episode_steps) == (Continuous((-2.0,), (2.0,)), 3, 200)
    assert GymnasiumEnvironments("FrozenLake-v1", 1).reset().sum() == 1


def test_numbered_states_are_a_one_among_zeros(broken: Any) -> None:
    world = GymnasiumEnvironments(broken("numbered"), 2)
    assert world.reset().tolist() == [[1, 0, 0]] * 2
    assert world.step(torch.tensor([0, 1])).observation.tolist() == [[0, 1, 0]] * 2


def test_truncation_is_not_termination(broken: Any) -> None:
    world = GymnasiumEnvironments(broken("fine"), 2)
    world.reset()
    for step in range(1, 11):
        seen = world.step(torch.tensor([0, 1]))
        assert seen.truncated.tolist() == [step % 5 == 0] * 2
        assert not seen.terminated.any()
        assert bool((seen.observation == 0).all()) == (step % 5 == 0)
        assert bool((seen.next_observations > 0).all())
    assert isinstance(world.backend, SerialEnvironments)
    inner: Any = world.backend.envs[0].unwrapped
    assert inner.asked[0] == 1  # actions are counted from the space's start


def test_it_is_gymnasiums_own_vector_environment_step_by_step() -> None:
    """The same numbers as SyncVectorEnv gives, which resets what ended with the same seeds."""
    theirs: Any = gymnasium.make_vec(
        "CartPole-v1", num_envs=3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": "Disabled"}
    )
    torch.manual_seed(0)
    ours, actions, ended = GymnasiumEnvironments("CartPole-v1", 3), torch.randint(2, (120, 3)), 0
    shown = ours.reset()
    np.testing.assert_array_equal(shown.numpy(), theirs.reset(seed=list(ours.seeds))[0])
    for action in actions:
        step = ours.step(action)
        seen, reward, terminated, truncated, _ = theirs.step(action.numpy())
        np.testing.assert_array_equal(step.next_observations.numpy(), seen)
        np.testing.assert_array_equal(step.reward.numpy(), reward)
        np.testing.assert_array_equal(step.terminated.numpy(), terminated)
        over = terminated | truncated
        ended += int(over.sum())
        if over.any():
            seen, _ = theirs.reset(seed=list(ours.seeds), options={"reset_mask": over})
        np.testing.assert_array_equal(step.observation.numpy(), seen)
    assert ended > 3


def test_what_was_returned_stays_as_it_was(broken: Any) -> None:
    """Arrays are handed over, not lent; and an agent may use its own again."""
    world, action = GymnasiumEnvironments(broken("fine"), 1), torch.tensor([0])
    first = world.reset()
    steps = [world.step(action.fill_(step % 2)) for step in range(6)]
    assert first.tolist() == steps[4].observation.tolist() == [[0, 0]]
    assert all(float(step.next_observations.min()) > 0 for step in steps)
    assert len({float(step.next_observations[0, 0]) for step in steps}) == 6
    assert [int(asked[0]) for asked in world.past] == [1, 2] * 3


def test_actions_are_cut_off_at_their_bounds() -> None:
    worlds = [GymnasiumEnvironments("Pendulum-v1", 1) for _ in range(2)]
    for world, torque in zip(worlds, (2.0, 50.0), strict=True):
        torch.manual_seed(0)
        world.reset()
        world.step(torch.tensor([[torque]]))
    assert np.array_equal(worlds[0].observations, worlds[1].observations)


def test_old_actions_are_forgotten(broken: Any) -> None:
    world = GymnasiumEnvironments(broken("fine"), 2)
    world.reset()
    for _ in range(UNUSED_ACTIONS + 12):
        world.step(torch.tensor([0, 1]))
    assert len(world.past) < 20
    other = GymnasiumEnvironments(broken("fine"), 2)
    other.load_state_dict(world.state_dict())
    assert np.array_equal(other.observations, world.observations)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_episodes_are_played_again_when_a_run_goes_on(num_workers: int) -> None:
    torch.manual_seed(0)
    world, other = (
        GymnasiumEnvironments("LunarLander-v3", 2, num_workers=num_workers),
        GymnasiumEnvironments("LunarLander-v3", 2),
    )
    world.reset()
    for step in range(90):
        world.step(torch.tensor([step % 4, 0]))
    other.load_state_dict(world.state_dict())
    for step in range(20):
        torch.manual_seed(step)
        first = world.step(torch.tensor([2, 3]))
        torch.manual_seed(step)
        second = other.step(torch.tensor([2, 3]))
        assert same(first, second)
    world.load_state_dict(other.state_dict())
    world.close()


def test_a_state_before_the_first_step_is_one_too() -> None:
    torch.manual_seed(0)
    world, other = GymnasiumEnvironments("CartPole-v1", 2), GymnasiumEnvironments("CartPole-v1", 2)
    seen = world.reset()
    other.load_state_dict(world.state_dict())
    assert np.array_equal(other.observations, seen.numpy())


def test_an_environment_that_forgets_its_seed_is_told(broken: Any) -> None:
    world = GymnasiumEnvironments(broken("forgetful"), 1)
    world.reset()
    world.step(torch.tensor([0]))
    with pytest.raises(BrokenEnvironmentError, match="is not reproducible from its seed"):
        GymnasiumEnvironments(broken("forgetful"), 1).load_state_dict(world.state_dict())


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("crash", r"in step 4 of an episode \(seed \d+\): the wheel came off$"),
        ("nan", "returned the reward nan in step 4"),
        ("endless", "returned the observation .* inf.* in step 4"),
    ],
)
def test_failures_get_a_sentence(broken: Any, how: str, sentence: str, num_workers: int) -> None:
    world = GymnasiumEnvironments(broken(how), 2, num_workers=num_workers)
    world.reset()
    for _ in range(3):
        world.step(torch.tensor([0, 1]))
    with pytest.raises(BrokenEnvironmentError, match=sentence):
        world.step(torch.tensor([0, 1]))
    world.close()


@pytest.mark.parametrize("num_workers", [0, 2])
def test_one_that_cannot_begin_is_told(broken: Any, num_workers: int) -> None:
    world = GymnasiumEnvironments(broken("stillborn"), 2, num_workers=num_workers)
    with pytest.raises(BrokenEnvironmentError, match=r"failed at the beginning of an episode \(.*\): RuntimeError"):
        world.reset()
    world.close()


def test_an_environment_that_cannot_be_made_is_told(broken: Any) -> None:
    with pytest.raises(BrokenEnvironmentError, match="gymnasium cannot make 'Broken-unmade-v0': no wheels"):
        GymnasiumEnvironments(broken("unmade"), 1)
    with pytest.raises(BrokenEnvironmentError, match="gymnasium cannot make 'CatPole-v1'"):
        GymnasiumEnvironments("CatPole-v1", 1)


def test_copies_and_workers_are_counted() -> None:
    with pytest.raises(ValueError, match="n_envs must be at least 1; got n_envs=0"):
        GymnasiumEnvironments("CartPole-v1", 0)
    with pytest.raises(ValueError, match="got num_workers=-1"):
        GymnasiumEnvironments("CartPole-v1", 2, num_workers=-1)
    with pytest.raises(ValueError, match="n_envs must be divisible by num_workers; got n_envs=3, num_workers=2"):
        WorkerEnvironments(SerialEnvironments("CartPole-v1", [gymnasium.make("CartPole-v1")]), 3, num_workers=2)


@pytest.mark.parametrize(("name", "action"), [("CartPole-v1", torch.tensor(1)), ("Pendulum-v1", torch.tensor([0.5]))])
def test_workers_change_no_number(name: str, action: torch.Tensor) -> None:
    here, shared = (
        make_environments(name, 6, use_gymnasium=True),
        make_environments(name, 6, use_gymnasium=True, num_workers=4),
    )
    assert isinstance(shared, GymnasiumEnvironments)
    assert isinstance(shared.backend, WorkerEnvironments)
    assert shared.backend.num_workers == 3  # as many as share the copies alike
    for world in (here, shared):
        torch.manual_seed(0)
        world.reset()
    for step in range(40):  # poles fall, and new episodes begin
        torch.manual_seed(step)
        first = here.step(action.expand(6, *action.shape))
        torch.manual_seed(step)
        assert same(first, shared.step(action.expand(6, *action.shape)))
    shared.close()


def test_one_copy_needs_no_worker() -> None:
    assert isinstance(GymnasiumEnvironments("CartPole-v1", 1, num_workers=8).backend, SerialEnvironments)


def test_workers_end_with_their_environments() -> None:
    world = GymnasiumEnvironments("CartPole-v1", 2, num_workers=2)
    assert isinstance(world.backend, WorkerEnvironments)
    processes = world.backend.vector.processes
    world.reset()
    assert all(process.is_alive() for process in processes)
    del world
    assert not any(process.is_alive() for process in processes)


def test_a_worker_leaves_ctrl_c_to_the_one_that_learns() -> None:
    world = GymnasiumEnvironments("CartPole-v1", 2, num_workers=2)
    assert isinstance(world.backend, WorkerEnvironments)
    world.reset()
    for process in world.backend.vector.processes:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGINT)
    assert torch.isfinite(world.step(torch.tensor([0, 1])).observation).all()
    world.close()


def test_a_worker_that_dies_is_told(broken: Any) -> None:
    world = GymnasiumEnvironments(broken("death"), 4, num_workers=2)
    assert isinstance(world.backend, WorkerEnvironments)
    processes = world.backend.vector.processes
    world.reset()
    for _ in range(3):
        world.step(torch.tensor([0, 1, 0, 1]))
    with pytest.raises(BrokenEnvironmentError, match=r"a worker process of Broken-death-v0 ended \(exit code -9"):
        world.step(torch.tensor([0, 1, 0, 1]))
    assert not any(process.is_alive() for process in processes)
