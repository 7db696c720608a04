"""Gymnasium environments in worker processes, several per process: worthwhile if a step is slow."""

import multiprocessing
import signal
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from parnassus.reinforcement.environments.gymnasium_serial import (
    EpisodeState,
    SerialEnvironments,
    StepArrays,
    make_gymnasium,
)
from parnassus.reinforcement.environments.interface import BrokenEnvironmentError

if TYPE_CHECKING:
    from gymnasium import Space
    from gymnasium.envs.registration import EnvSpec
    from gymnasium.vector import AsyncVectorEnv


class WorkerEnvironments:
    """Copies of the environment `like`, shared equally by worker processes, which end with this object.

    Gymnasium's AsyncVectorEnv handles one environment per worker, whose observation is that of all its copies: one
    message per worker and step, regardless of the number of copies.
    """

    def __init__(self, like: SerialEnvironments, n_envs: int, *, num_workers: int) -> None:
        from gymnasium import spaces
        from gymnasium.vector import AsyncVectorEnv, AutoresetMode

        if n_envs % num_workers:
            raise ValueError(f"n_envs must be divisible by num_workers; got n_envs={n_envs}, num_workers={num_workers}")
        self.name, self.num_workers, self.envs_per_worker = like.name, num_workers, n_envs // num_workers
        env = like.envs[0]
        observation_space = spaces.Box(-np.inf, np.inf, (self.envs_per_worker, like.features))
        action_space = spaces.Box(-np.inf, np.inf, (self.envs_per_worker, *(env.action_space.shape or ())))
        which = env.spec or like.name
        worker: Any = partial(_Worker, like.name, which, self.envs_per_worker, observation_space, action_space)
        try:
            self.vector: AsyncVectorEnv[Any, Any] = AsyncVectorEnv(
                [worker] * num_workers, context=_context(), worker=_work, autoreset_mode=AutoresetMode.DISABLED
            )
        except (EOFError, OSError) as error:
            raise BrokenEnvironmentError(f"no worker process of {self.name} could be started: {error}") from error
        self.close = weakref.finalize(self, _terminate, self.vector)

    def start_episodes(self, episodes: Sequence[EpisodeState | None]) -> NDArray[np.float32]:
        """Start or replay the given episodes that are not None; return the current observations of all environments."""
        size = self.envs_per_worker
        by_worker = [list(episodes[first : first + size]) for first in range(0, len(episodes), size)]
        mask = np.array([any(own) for own in by_worker])
        seed: Any = by_worker  # to a worker, a seed is the list of its episodes
        try:
            observations, info = self.vector.reset(seed=seed, options={"reset_mask": mask})
        except (EOFError, OSError) as error:
            self._report_exit(error)
        self._check_no_error(info)
        return np.asarray(observations).reshape(len(episodes), -1)

    def step(self, actions: NDArray[Any]) -> StepArrays:
        """Take one action in every environment."""
        try:
            by_worker = actions.reshape(self.num_workers, self.envs_per_worker, *actions.shape[1:])
            observations, rewards, terminated, truncated, info = self.vector.step(by_worker)
        except (EOFError, OSError) as error:
            self._report_exit(error)
        self._check_no_error(info)
        rows, reward = observations.reshape(len(actions), -1), rewards.astype(np.float32).ravel()
        return StepArrays(rows, reward, terminated.ravel(), truncated.ravel())

    def _check_no_error(self, info: dict[str, Any]) -> None:
        """Raise the error that a worker reported; the worker itself keeps running."""
        if info:
            raise BrokenEnvironmentError(next(each for each in info["error"] if each))

    def _report_exit(self, error: Exception) -> NoReturn:
        for process in self.vector.processes:
            process.join(0.2)
        codes = [str(process.exitcode) for process in self.vector.processes if process.exitcode is not None]
        self.close()
        raise BrokenEnvironmentError(
            f"a worker process of {self.name} ended (exit code {', '.join(codes) or 'unknown'}): its environment may "
            "have run out of memory, or crashed below Python"
        ) from error


class _Worker:
    """The copies of one worker as a single gymnasium environment, whose seed is a list of episodes."""

    render_mode = None

    def __init__(
        self,
        name: str,
        which: "str | EnvSpec",
        n_envs: int,
        observation_space: "Space[Any]",
        action_space: "Space[Any]",
    ) -> None:
        self.metadata: dict[str, Any] = {}
        self.observation_space, self.action_space = observation_space, action_space
        self.make: Callable[[], SerialEnvironments] = lambda: SerialEnvironments(
            name, [make_gymnasium(which) for _ in range(n_envs)]
        )
        self.environments: SerialEnvironments | None = None

    def reset(
        self,
        *,
        seed: list[EpisodeState | None],
        options: object,  # noqa: ARG002 - Gymnasium's signature
    ) -> tuple[NDArray[Any], dict[str, str]]:
        try:
            if self.environments is None:  # only in a worker: Gymnasium creates one more, to read its spaces
                self.environments = self.make()
            return self.environments.start_episodes(seed), {}
        except BrokenEnvironmentError as error:
            return self._zeros(), {"error": str(error)}

    def step(self, actions: NDArray[Any]) -> tuple[Any, ...]:
        assert self.environments is not None, "reset comes first"
        try:
            return (*self.environments.step(actions), {})
        except BrokenEnvironmentError as error:
            empty = np.zeros(len(actions))
            return (self._zeros(), empty, empty, empty, {"error": str(error)})

    def close(self) -> None:
        if self.environments is not None:
            self.environments.close()

    def _zeros(self) -> NDArray[Any]:
        return np.zeros(self.observation_space.shape or ())


def _work(*arguments: Any) -> None:
    """The main function of a worker; Ctrl-C is left to the training process."""
    from gymnasium.vector.async_vector_env import _async_worker

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(BrokenPipeError):  # the training process was killed
        _async_worker(*arguments)


def _context() -> str:
    """Workers are forked from a clean process if possible: forking a process with threads may deadlock."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return "spawn"
    multiprocessing.get_context("forkserver").set_forkserver_preload([__name__, "gymnasium"])
    return "forkserver"


def _terminate(vector: "AsyncVectorEnv[Any, Any]") -> None:
    """Terminate the workers immediately."""
    vector.closed = True
    for process in vector.processes:
        process.terminate()
    for process in vector.processes:
        process.join(5)
        if process.is_alive():
            process.kill()
            process.join()
    for pipe in vector.parent_pipes:
        if pipe is not None:
            pipe.close()
