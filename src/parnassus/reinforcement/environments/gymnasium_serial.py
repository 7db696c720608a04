"""Gymnasium environments in one process, stepped one after the other."""

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from parnassus.reinforcement.environments.interface import Actions, BrokenEnvironmentError, Continuous, Discrete

if TYPE_CHECKING:
    import gymnasium
    from gymnasium.envs.registration import EnvSpec


class EpisodeState(NamedTuple):
    """An episode that can be replayed: its seed, and the actions so far."""

    seed: int
    actions: NDArray[Any] | None = None


class StepArrays(NamedTuple):
    """The results of one action in every environment."""

    next_observations: NDArray[np.float32]
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


class SerialEnvironments:
    """Copies of an environment, stepped one after the other."""

    def __init__(self, name: str, envs: "Sequence[gymnasium.Env[Any, Any]]") -> None:
        first = envs[0]
        self.name, self.envs, self.steps = name, envs, [env.step for env in envs]
        self.features = count_features(first, name)
        self.is_discrete = isinstance(read_actions(first, name), Discrete)
        self.first_state: int | None = getattr(first.observation_space, "start", None)  # of a Discrete space
        self.shape = first.observation_space.shape or ()
        self.seeds, self.started, self.clock = [0] * len(envs), [0] * len(envs), 0
        self.observations = np.zeros((len(envs), self.features), dtype=np.float32)

    def start_episodes(self, episodes: Sequence[EpisodeState | None]) -> NDArray[np.float32]:
        """Start or replay the given episodes that are not None; return the current observations of all environments."""
        self.observations = self.observations.copy()
        for index, episode in enumerate(episodes):
            if episode is not None:
                self.observations[index] = self._start_episode(index, episode)
        return self.observations

    def step(self, actions: NDArray[Any]) -> StepArrays:
        """Take one action in every environment."""
        n_envs, index = len(self.envs), 0
        observations = self._buffer(n_envs)
        rewards: list[SupportsFloat] = [0.0] * n_envs
        terminated, truncated = [False] * n_envs, [False] * n_envs
        self.clock += 1
        try:
            for index, (step, action) in enumerate(zip(self.steps, self._to_native_actions(actions), strict=True)):
                observations[index], rewards[index], terminated[index], truncated[index], _ = step(action)
        except Exception as error:
            self._fail(index, f"failed in step {self.clock - self.started[index]}", error)
        encoded, reward = self._encode(observations), np.array(rewards, dtype=np.float32).reshape(n_envs)
        finite = np.count_nonzero(np.isfinite(encoded)) == encoded.size
        if not (finite and np.count_nonzero(np.isfinite(reward)) == n_envs):
            self._fail_not_finite(encoded, reward)
        self.observations = encoded
        return StepArrays(encoded, reward, np.array(terminated, dtype=bool), np.array(truncated, dtype=bool))

    def close(self) -> None:
        for env in self.envs:
            env.close()

    def _start_episode(self, index: int, episode: EpisodeState) -> NDArray[np.float32]:
        past = [] if episode.actions is None else list(self._to_native_actions(episode.actions))
        self.seeds[index], self.started[index] = episode.seed, self.clock - len(past)
        observation, when = self._buffer(1), "at the beginning"
        try:
            observation[0], _ = self.envs[index].reset(seed=episode.seed)
            for step, action in enumerate(past, 1):
                when = f"in step {step}"
                observation[0] = self.steps[index](action)[0]
        except Exception as error:
            self._fail(index, f"failed {when}", error)
        encoded: NDArray[np.float32] = self._encode(observation)[0]
        if not np.isfinite(encoded).all():
            self._fail(index, f"returned the observation {encoded} {when}")
        return encoded

    def _to_native_actions(self, actions: NDArray[Any]) -> Iterable[Any]:
        """Discrete actions as Python integers, which environments validate faster than numpy's."""
        return actions.tolist() if self.is_discrete else actions

    def _buffer(self, n_envs: int) -> NDArray[Any]:
        return np.empty((n_envs, *self.shape), dtype=np.float32 if self.first_state is None else np.int64)

    def _encode(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Observations as flat rows; a discrete state is one-hot encoded."""
        if self.first_state is None:
            return observations.reshape(len(observations), -1)
        rows = np.zeros((len(observations), self.features), dtype=np.float32)
        rows[np.arange(len(observations)), observations - self.first_state] = 1
        return rows

    def _fail(self, index: int, what: str, error: Exception | None = None) -> NoReturn:
        reason = "" if error is None else f": {_reason(error)}"
        raise BrokenEnvironmentError(f"{self.name} {what} of an episode (seed {self.seeds[index]}){reason}") from error

    def _fail_not_finite(self, observations: NDArray[np.float32], rewards: NDArray[np.float32]) -> NoReturn:
        bad = int(np.flatnonzero(~(np.isfinite(observations).all(1) & np.isfinite(rewards)))[0])
        is_reward = not math.isfinite(rewards[bad])
        what = f"the reward {rewards[bad]}" if is_reward else f"the observation {observations[bad]}"
        self._fail(bad, f"returned {what} in step {self.clock - self.started[bad]}")


def make_gymnasium(which: "str | EnvSpec", *, render: bool = False) -> "gymnasium.Env[Any, Any]":
    """One Gymnasium environment, by id or registered spec; with `render` it returns frames as arrays."""
    name = which if isinstance(which, str) else which.id
    try:
        import gymnasium
    except ModuleNotFoundError:
        raise BrokenEnvironmentError(f"{name} needs gymnasium: pip install 'parnassus[gym]'") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its dependencies, about themselves
            options: dict[str, Any] = {"render_mode": "rgb_array"} if render else {}  # not all environments accept it
            return gymnasium.make(which, disable_env_checker=True, **options)
    except Exception as error:
        raise BrokenEnvironmentError(f"gymnasium cannot make {name!r}: {_reason(error)}") from error


def count_features(env: "gymnasium.Env[Any, Any]", name: str) -> int:
    """The size of an encoded observation."""
    from gymnasium import spaces

    space = env.observation_space
    if isinstance(space, spaces.Box):
        return int(np.prod(space.shape))
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    raise BrokenEnvironmentError(f"{name} has the observation space {space}: only Box and Discrete are supported")


def read_actions(env: "gymnasium.Env[Any, Any]", name: str) -> Actions:
    """The action space of an environment."""
    from gymnasium import spaces

    space = env.action_space
    if isinstance(space, spaces.Discrete):
        return Discrete(int(space.n))
    if isinstance(space, spaces.Box):
        return Continuous(
            tuple(float(bound) for bound in space.low.ravel()), tuple(float(bound) for bound in space.high.ravel())
        )
    raise BrokenEnvironmentError(f"{name} has the action space {space}: only Discrete and Box are supported")


def _reason(error: Exception) -> str:
    """The first line of an error's message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
