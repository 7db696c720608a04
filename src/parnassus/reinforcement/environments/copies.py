"""Worlds of gymnasium in one process: made by their id, stepped one after the other, their failures told."""

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


class Episode(NamedTuple):
    """Where an episode stands, whatever its world keeps inside: its seed, and the actions so far."""

    seed: int
    actions: NDArray[Any] | None = None


class Moved(NamedTuple):
    """Where actions led, what they paid, and whose episode that ended: by itself, or by a limit of time."""

    led_to: NDArray[np.float32]
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


class Copies:
    """Several worlds alike, stepped one after the other."""

    def __init__(self, name: str, worlds: "Sequence[gymnasium.Env[Any, Any]]") -> None:
        first = worlds[0]
        self.name, self.worlds, self.steps = name, worlds, [world.step for world in worlds]
        self.features = features_of(first, name)
        self.discrete = isinstance(actions_of(first, name), Discrete)
        self.numbered: int | None = getattr(first.observation_space, "start", None)  # the first of numbered states
        self.shape = first.observation_space.shape or ()
        self.seeds, self.begun, self.clock = [0] * len(worlds), [0] * len(worlds), 0
        self.seen = np.zeros((len(worlds), self.features), dtype=np.float32)

    def begin(self, episodes: Sequence[Episode | None]) -> NDArray[np.float32]:
        """New episodes where there are some, up to where they stood; what is then seen everywhere."""
        self.seen = self.seen.copy()
        for copy, episode in enumerate(episodes):
            if episode is not None:
                self.seen[copy] = self._begun(copy, episode)
        return self.seen

    def step(self, actions: NDArray[Any]) -> Moved:
        """One action in every copy."""
        copies, copy = len(self.worlds), 0
        led_to = self._room(copies)
        rewards: list[SupportsFloat] = [0.0] * copies
        terminated, truncated = [False] * copies, [False] * copies
        self.clock += 1
        try:
            for copy, (step, action) in enumerate(zip(self.steps, self._given(actions), strict=True)):
                led_to[copy], rewards[copy], terminated[copy], truncated[copy], _ = step(action)
        except Exception as error:
            self._tell(copy, f"broke in step {self.clock - self.begun[copy]}", error)
        seen, paid = self._rows(led_to), np.array(rewards, dtype=np.float32).reshape(copies)
        if not (np.count_nonzero(np.isfinite(seen)) == seen.size and np.count_nonzero(np.isfinite(paid)) == copies):
            self._tell_what_is_not_finite(seen, paid)
        self.seen = seen
        return Moved(seen, paid, np.array(terminated, dtype=bool), np.array(truncated, dtype=bool))

    def close(self) -> None:
        for world in self.worlds:
            world.close()

    def _begun(self, copy: int, episode: Episode) -> NDArray[np.float32]:
        past = [] if episode.actions is None else list(self._given(episode.actions))
        self.seeds[copy], self.begun[copy] = episode.seed, self.clock - len(past)
        found, when = self._room(1), "at the beginning"
        try:
            found[0], _ = self.worlds[copy].reset(seed=episode.seed)
            for step, action in enumerate(past, 1):
                when = f"in step {step}"
                found[0] = self.steps[copy](action)[0]
        except Exception as error:
            self._tell(copy, f"broke {when}", error)
        seen: NDArray[np.float32] = self._rows(found)[0]
        if not np.isfinite(seen).all():
            self._tell(copy, f"returned the observation {seen} {when}")
        return seen

    def _given(self, actions: NDArray[Any]) -> Iterable[Any]:
        """Plain numbers where there are some to choose from: a world checks them sooner than numpy's."""
        return actions.tolist() if self.discrete else actions

    def _room(self, copies: int) -> NDArray[Any]:
        return np.empty((copies, *self.shape), dtype=np.float32 if self.numbered is None else np.int64)

    def _rows(self, found: NDArray[Any]) -> NDArray[np.float32]:
        """What was found as numbers in a row; a numbered state is a 1 among zeros."""
        if self.numbered is None:
            return found.reshape(len(found), -1)
        rows = np.zeros((len(found), self.features), dtype=np.float32)
        rows[np.arange(len(found)), found - self.numbered] = 1
        return rows

    def _tell(self, copy: int, what: str, error: Exception | None = None) -> NoReturn:
        why = "" if error is None else f": {_reason(error)}"
        raise BrokenEnvironmentError(f"{self.name} {what} of an episode (seed {self.seeds[copy]}){why}") from error

    def _tell_what_is_not_finite(self, seen: NDArray[np.float32], paid: NDArray[np.float32]) -> NoReturn:
        bad = int(np.flatnonzero(~(np.isfinite(seen).all(1) & np.isfinite(paid)))[0])
        what = f"the reward {paid[bad]}" if not math.isfinite(paid[bad]) else f"the observation {seen[bad]}"
        self._tell(bad, f"returned {what} in step {self.clock - self.begun[bad]}")


def made(which: "str | EnvSpec", *, pictures: bool = False) -> "gymnasium.Env[Any, Any]":
    """One world of gymnasium, by its id or what is registered under it; `pictures` makes it draw itself as arrays."""
    name = which if isinstance(which, str) else which.id
    try:
        import gymnasium
    except ModuleNotFoundError:
        raise BrokenEnvironmentError(f"{name} needs gymnasium: pip install 'parnassus[gym]'") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the packages behind it, about themselves
            drawn: dict[str, Any] = {"render_mode": "rgb_array"} if pictures else {}  # not all know this word
            return gymnasium.make(which, disable_env_checker=True, **drawn)
    except Exception as error:
        raise BrokenEnvironmentError(f"gymnasium cannot make {name!r}: {_reason(error)}") from error


def features_of(world: "gymnasium.Env[Any, Any]", name: str) -> int:
    """How many numbers are seen of a world."""
    from gymnasium import spaces

    space = world.observation_space
    if isinstance(space, spaces.Box):
        return int(np.prod(space.shape))
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    raise BrokenEnvironmentError(f"{name} shows {space}: only numbers (Box) and numbered states (Discrete) can be read")


def actions_of(world: "gymnasium.Env[Any, Any]", name: str) -> Actions:
    """What can be done in a world."""
    from gymnasium import spaces

    space = world.action_space
    if isinstance(space, spaces.Discrete):
        return Discrete(int(space.n))
    if isinstance(space, spaces.Box):
        return Continuous(
            tuple(float(bound) for bound in space.low.ravel()), tuple(float(bound) for bound in space.high.ravel())
        )
    raise BrokenEnvironmentError(f"{name} takes {space}: only Discrete and Box actions can be given")


def _reason(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
