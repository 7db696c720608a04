"""Any environment of gymnasium, as copies that step together; installed with `pip install 'parnassus[gym]'`."""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from jaxtyping import Float, Shaped
from numpy.typing import NDArray
from torch import Tensor

from parnassus.reinforcement.environments.interface import Actions, BrokenEnvironmentError, Continuous, Discrete, Step

if TYPE_CHECKING:
    import gymnasium

ENDLESS = 2**31
"""Steps of an episode where gymnasium sets no limit."""


class Gymnasium:
    """Copies of one environment by its id, such as Acrobot-v1, stepped one after the other.

    Each episode has a seed of its own, drawn from torch's generator. What is saved of an episode is this seed and the
    actions so far: it is played again when a run goes on, whatever the environment keeps inside.
    """

    def __init__(self, name: str, copies: int, *, device: torch.device | str = "cpu") -> None:
        if copies < 1:
            raise ValueError(f"at least one copy is needed; got copies={copies}")
        self.name, self.copies, self.device = name, copies, torch.device(device)
        self.worlds = [made(name) for _ in range(copies)]
        self.features = _features(self.worlds[0], name)
        self.actions = _actions(self.worlds[0], name)
        limit = self.worlds[0].spec.max_episode_steps if self.worlds[0].spec else None
        self.longest = limit or ENDLESS
        self.seeds = [0] * copies
        self.played: list[list[NDArray[Any]]] = [[] for _ in range(copies)]
        self.seen = np.zeros((copies, self.features), dtype=np.float32)

    def reset(self) -> Float[Tensor, "copies features"]:
        """New episodes everywhere; the first observations."""
        for copy in range(self.copies):
            self._begin(copy, int(torch.randint(2**31, ()).item()))
        return self._shown(self.seen)

    def step(self, action: Shaped[Tensor, "copies *action"]) -> Step:
        """One action in every copy."""
        asked = self._asked(action)
        rewards = np.zeros(self.copies, dtype=np.float32)
        ends = np.zeros((2, self.copies), dtype=bool)
        led_to = np.empty_like(self.seen)
        for copy, world in enumerate(self.worlds):
            led_to[copy], rewards[copy], *ends[:, copy] = self._one(copy, world, asked[copy])
        if not (np.isfinite(led_to).all() and np.isfinite(rewards).all()):
            self._tell_what_is_not_finite(led_to, rewards)
        self.seen = led_to.copy()
        for copy in np.flatnonzero(ends.any(0)).tolist():
            self._begin(copy, int(torch.randint(2**31, ()).item()))
        terminated, truncated = torch.from_numpy(ends).to(self.device)
        return Step(
            self._shown(self.seen),
            torch.from_numpy(rewards).to(self.device),
            terminated,
            truncated & ~terminated,
            self._shown(led_to),
        )

    def state_dict(self) -> dict[str, object]:
        lengths = [len(actions) for actions in self.played]
        flat = [action for actions in self.played for action in actions]
        return {
            "seeds": torch.tensor(self.seeds),
            "lengths": torch.tensor(lengths),
            "actions": torch.from_numpy(np.stack(flat)) if flat else torch.zeros(0),
            "seen": torch.from_numpy(self.seen.copy()),
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Play the episodes in hand again; refuse to go on where one does not come to the same point."""
        seeds, lengths, actions, seen = (cast("Tensor", state[key]) for key in ("seeds", "lengths", "actions", "seen"))
        parts = iter(actions.numpy().copy())
        for copy, (seed, length) in enumerate(zip(seeds.tolist(), lengths.tolist(), strict=True)):
            self._begin(copy, seed)
            for _ in range(length):
                self.seen[copy] = self._one(copy, self.worlds[copy], next(parts))[0]
        if not np.array_equal(self.seen, seen.numpy()):
            raise BrokenEnvironmentError(
                f"{self.name} does not repeat itself from its seed: the run cannot go on as it was"
            )

    def _begin(self, copy: int, seed: int) -> None:
        observation, _ = self.worlds[copy].reset(seed=seed)
        self.seeds[copy], self.played[copy] = seed, []
        self.seen[copy] = self._flat(observation)

    def _one(self, copy: int, world: "gymnasium.Env[Any, Any]", action: Any) -> tuple[NDArray[Any], float, bool, bool]:
        self.played[copy].append(np.asarray(action))
        try:
            observation, reward, terminated, truncated, _ = world.step(action)
        except Exception as error:
            raise BrokenEnvironmentError(
                f"{self.name} broke in step {len(self.played[copy])} of an episode (seed {self.seeds[copy]}): {error}"
            ) from error
        return self._flat(observation), float(reward), bool(terminated), bool(truncated)

    def _asked(self, action: Tensor) -> NDArray[Any]:
        given = action.detach().cpu().numpy()
        if isinstance(self.actions, Discrete):
            start = getattr(self.worlds[0].action_space, "start", 0)
            return given + start if start else given
        space = cast("gymnasium.spaces.Box", self.worlds[0].action_space)
        within: NDArray[Any] = np.clip(given, self.actions.low, self.actions.high)
        return within.reshape(len(given), *space.shape).astype(space.dtype)

    def _flat(self, observation: Any) -> NDArray[Any]:
        if isinstance(observation, np.ndarray):
            return observation.reshape(-1)
        one = np.zeros(self.features, dtype=np.float32)
        one[int(observation)] = 1
        return one

    def _shown(self, observation: NDArray[Any]) -> Tensor:
        return torch.tensor(observation, device=self.device)

    def _tell_what_is_not_finite(self, led_to: NDArray[Any], rewards: NDArray[Any]) -> None:
        bad = int(np.flatnonzero(~(np.isfinite(led_to).all(1) & np.isfinite(rewards)))[0])
        what = f"the reward {rewards[bad]}" if not np.isfinite(rewards[bad]) else f"the observation {led_to[bad]}"
        raise BrokenEnvironmentError(f"{self.name} returned {what} in step {len(self.played[bad])} of an episode")


def made(name: str, *, pictures: bool = False) -> "gymnasium.Env[Any, Any]":
    """One environment of gymnasium; `pictures` makes it draw itself as arrays."""
    try:
        import gymnasium
    except ModuleNotFoundError:
        raise BrokenEnvironmentError(f"{name} needs gymnasium: pip install 'parnassus[gym]'") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the packages behind it, about themselves
            drawn: dict[str, Any] = {"render_mode": "rgb_array"} if pictures else {}  # not all know this word
            return gymnasium.make(name, disable_env_checker=True, **drawn)
    except (gymnasium.error.Error, ImportError, TypeError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise BrokenEnvironmentError(f"gymnasium cannot make {name!r}: {reason}") from None


def _features(world: "gymnasium.Env[Any, Any]", name: str) -> int:
    from gymnasium import spaces

    space = world.observation_space
    if isinstance(space, spaces.Box):
        return int(np.prod(space.shape))
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    raise BrokenEnvironmentError(f"{name} shows {space}: only numbers (Box) and numbered states (Discrete) can be read")


def _actions(world: "gymnasium.Env[Any, Any]", name: str) -> Actions:
    from gymnasium import spaces

    space = world.action_space
    if isinstance(space, spaces.Discrete):
        return Discrete(int(space.n))
    if isinstance(space, spaces.Box):
        return Continuous(
            tuple(float(bound) for bound in space.low.ravel()), tuple(float(bound) for bound in space.high.ravel())
        )
    raise BrokenEnvironmentError(f"{name} takes {space}: only Discrete and Box actions can be given")
