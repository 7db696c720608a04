"""Environments of gymnasium: ends told apart, episodes played again, failures in a sentence."""

from typing import Any

import numpy as np
import pytest
import torch

from parnassus.reinforcement.environments import BrokenEnvironmentError, Continuous, Discrete, Gymnasium

gymnasium: Any = pytest.importorskip("gymnasium")


class Broken(gymnasium.Env):  # type: ignore[misc]  # an extra, not there for the type checker
    """Breaks, or returns NaN, in its fourth step."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2, start=1)

    def __init__(self, how: str) -> None:
        self.how, self.age = how, 0
        self.asked: list[int] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.age = 0
        return np.zeros(2, dtype=np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.age += 1
        self.asked.append(int(action))
        if self.age == 4 and self.how == "crash":
            raise ZeroDivisionError("the wheel came off")
        reward = float("nan") if self.age == 4 and self.how == "nan" else 1.0
        lucky = self.np_random.random(2) if self.how != "forgetful" else np.random.default_rng().random(2)
        return np.float32(lucky), reward, self.age == 6, False, {}


@pytest.fixture
def broken() -> Any:
    names = []
    for how in ("crash", "nan", "forgetful", "fine"):
        name = f"Broken-{how}-v0"
        gymnasium.register(name, entry_point=Broken, kwargs={"how": how}, max_episode_steps=5)
        names.append(name)
    yield lambda how: f"Broken-{how}-v0"
    for name in names:
        del gymnasium.registry[name]


def test_what_acts_and_what_is_seen() -> None:
    assert Gymnasium("CartPole-v1", 2).actions == Discrete(2)
    pendulum = Gymnasium("Pendulum-v1", 2)
    assert (pendulum.actions, pendulum.features, pendulum.longest) == (Continuous((-2.0,), (2.0,)), 3, 200)
    assert Gymnasium("FrozenLake-v1", 1).reset().sum() == 1


def test_truncation_is_not_termination(broken: Any) -> None:
    world = Gymnasium(broken("fine"), 2)
    world.reset()
    for step in range(1, 11):
        seen = world.step(torch.tensor([0, 1]))
        assert seen.truncated.tolist() == [step % 5 == 0] * 2
        assert not seen.terminated.any()
        assert bool((seen.observation == 0).all()) == (step % 5 == 0)
        assert bool((seen.led_to > 0).all())
    inner: Any = world.worlds[0].unwrapped
    assert inner.asked[0] == 1  # actions are counted from the space's start


def test_episodes_are_played_again_when_a_run_goes_on() -> None:
    torch.manual_seed(0)
    world, other = Gymnasium("LunarLander-v3", 2), Gymnasium("LunarLander-v3", 2)
    world.reset()
    for step in range(90):
        world.step(torch.tensor([step % 4, 0]))
    other.load_state_dict(world.state_dict())
    for step in range(20):
        torch.manual_seed(step)
        first = world.step(torch.tensor([2, 3]))
        torch.manual_seed(step)
        second = other.step(torch.tensor([2, 3]))
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_an_environment_that_forgets_its_seed_is_told(broken: Any) -> None:
    world = Gymnasium(broken("forgetful"), 1)
    world.reset()
    world.step(torch.tensor([0]))
    with pytest.raises(BrokenEnvironmentError, match="does not repeat itself from its seed"):
        Gymnasium(broken("forgetful"), 1).load_state_dict(world.state_dict())


@pytest.mark.parametrize(
    ("how", "sentence"),
    [("crash", "in step 4 of an episode .* the wheel came off"), ("nan", "the reward nan in step 4")],
)
def test_failures_get_a_sentence(broken: Any, how: str, sentence: str) -> None:
    world = Gymnasium(broken(how), 2)
    world.reset()
    for _ in range(3):
        world.step(torch.tensor([0, 1]))
    with pytest.raises(BrokenEnvironmentError, match=sentence):
        world.step(torch.tensor([0, 1]))


def test_an_unknown_environment_is_told() -> None:
    with pytest.raises(BrokenEnvironmentError, match="gymnasium cannot make 'CatPole-v1'"):
        Gymnasium("CatPole-v1", 1)
