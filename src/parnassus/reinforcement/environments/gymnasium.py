"""Copies of any Gymnasium environment that are stepped together; needs `pip install 'parnassus[gym]'`."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from jaxtyping import Float, Shaped
from numpy.typing import NDArray
from torch import Tensor

from parnassus.errors import check_at_least_one, check_non_negative
from parnassus.reinforcement.environments.gymnasium_serial import (
    EpisodeState,
    SerialEnvironments,
    make_gymnasium,
    read_actions,
)
from parnassus.reinforcement.environments.gymnasium_workers import WorkerEnvironments
from parnassus.reinforcement.environments.interface import BrokenEnvironmentError, Discrete, Step

if TYPE_CHECKING:
    import gymnasium

MAX_STEPS = 1_000
"""Number of steps after which an episode is truncated if the environment registers no time limit."""

MAX_UNUSED_ACTIONS = 1_000
"""Stored actions of finished episodes are deleted once there are this many steps of them."""


class GymnasiumEnvironments:
    """Copies of one environment by its id, in this process or shared by `num_workers` processes.

    Every episode has its own seed, drawn from torch's generator. An episode is saved as its seed and the actions so
    far and replayed when a run is resumed, so that the internal state of the environment need not be stored. The number
    of workers does not affect results; it is reduced to a divisor of the number of copies, and to 0 if that is 1.
    `name` may be `module:Name-v0`: the module that registers the environment is imported first. Without a registered
    time limit, episodes are truncated after `MAX_STEPS`, in training as in evaluation.

    In this process the copies are stepped by `SerialEnvironments`. Gymnasium's SyncVectorEnv loops too, but does not
    report in which copy and episode an error occurred, and adds 1.5 µs to the 6 µs of a step of CartPole-v1; this loop
    adds 1 µs, checks included (eight copies, one core).
    """

    def __init__(
        self,
        name: str,
        n_envs: int,
        *,
        device: torch.device | str = "cpu",
        num_workers: int = 0,
        make: "Callable[[str], gymnasium.Env[Any, Any]]" = make_gymnasium,
    ) -> None:
        check_at_least_one(n_envs=n_envs)
        check_non_negative(num_workers=num_workers)
        self.name, self.n_envs, self.device = name, n_envs, torch.device(device)
        workers = max(count for count in range(1, max(1, num_workers) + 1) if n_envs % count == 0)
        serial = SerialEnvironments(name, [make(name) for _ in range(n_envs if workers == 1 else 1)])
        env, self.features = serial.envs[0], serial.features
        self.space, self.actions = cast("Any", env.action_space), read_actions(env, name)
        time_limit = env.spec.max_episode_steps if env.spec else None
        self.truncates_itself, self.max_episode_steps = time_limit is not None, time_limit or MAX_STEPS
        self.backend: SerialEnvironments | WorkerEnvironments = (
            serial if workers == 1 else WorkerEnvironments(serial, n_envs, num_workers=workers)
        )
        self.seeds, self.started = [0] * n_envs, [0] * n_envs
        self.past: list[NDArray[Any]] = []
        self.observations = np.zeros((n_envs, self.features), dtype=np.float32)

    def reset(self) -> Float[Tensor, "envs features"]:
        """Start new episodes in all environments; return the first observations."""
        return self._to_tensor(self._start_episodes(range(self.n_envs)))

    def step(self, action: Shaped[Tensor, "envs *action"]) -> Step:
        """Take one action in every environment."""
        actions = self._to_space(action)
        self.past.append(actions)
        self.observations, rewards, terminated, truncated = self.backend.step(actions)
        if not self.truncates_itself:
            truncated = truncated | (len(self.past) - np.array(self.started) >= self.max_episode_steps)
        next_observations = observation = self._to_tensor(self.observations)
        ended = terminated | truncated
        if np.count_nonzero(ended):
            observation = self._to_tensor(self._start_episodes(np.flatnonzero(ended).tolist()))
            truncated = truncated & ~terminated
        ends = self._to_tensor(terminated), self._to_tensor(truncated)
        return Step(observation, self._to_tensor(rewards), *ends, next_observations)

    def close(self) -> None:
        """Release processes and windows."""
        self.backend.close()

    def state_dict(self) -> dict[str, object]:
        past = np.stack(self.past) if self.past else np.zeros((0, self.n_envs))
        actions = np.concatenate([past[started:, index] for index, started in enumerate(self.started)])
        return {
            "seeds": torch.tensor(self.seeds),
            "lengths": torch.tensor([len(past) - started for started in self.started]),
            "actions": torch.from_numpy(actions),
            "seen": torch.from_numpy(self.observations.copy()),
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Replay the current episodes. Raise an error if one does not reproduce its last observation."""
        seeds, lengths, actions, seen = (cast("Tensor", state[key]) for key in ("seeds", "lengths", "actions", "seen"))
        played = [own.numpy().copy() for own in actions.split(lengths.tolist())]
        past = np.zeros((int(lengths.max()), self.n_envs, *actions.shape[1:]), actions.numpy().dtype)
        self.seeds, self.started = seeds.tolist(), [len(past) - len(own) for own in played]
        for index, own in enumerate(played):
            past[self.started[index] :, index] = own
        self.past = list(past)
        episodes = [EpisodeState(*both) for both in zip(self.seeds, played, strict=True)]
        self.observations = self.backend.start_episodes(episodes)
        if not np.array_equal(self.observations, seen.numpy()):
            raise BrokenEnvironmentError(
                f"{self.name} is not reproducible from its seed: the run cannot be resumed exactly"
            )

    def _start_episodes(self, indices: Sequence[int]) -> NDArray[np.float32]:
        episodes: list[EpisodeState | None] = [None] * self.n_envs
        for index, seed in zip(indices, torch.randint(2**31, (len(indices),)).tolist(), strict=True):
            self.seeds[index], self.started[index], episodes[index] = seed, len(self.past), EpisodeState(seed)
        self.observations = self.backend.start_episodes(episodes)
        unused = min(self.started)
        if unused >= MAX_UNUSED_ACTIONS:
            del self.past[:unused]
            self.started = [started - unused for started in self.started]
        return self.observations

    def _to_space(self, action: Tensor) -> NDArray[Any]:
        """Actions in the numbering of the space, or clipped to its bounds; a copy, since it is stored."""
        given: NDArray[Any] = action.detach().cpu().numpy()
        if isinstance(self.actions, Discrete):
            return given + self.space.start if self.space.start else given.copy()
        clipped: NDArray[Any] = np.clip(given, self.actions.low, self.actions.high)
        return clipped.reshape(len(given), *self.space.shape).astype(self.space.dtype)

    def _to_tensor(self, x: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(x)
        return tensor if self.device.type == "cpu" else tensor.to(self.device)
