"""Worlds of gymnasium in processes of their own, several in each: worth it where a step takes long."""

import multiprocessing
import signal
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from parnassus.reinforcement.environments.copies import Copies, Episode, Moved, made
from parnassus.reinforcement.environments.interface import BrokenEnvironmentError

if TYPE_CHECKING:
    from gymnasium import Space
    from gymnasium.envs.registration import EnvSpec
    from gymnasium.vector import AsyncVectorEnv


class Workers:
    """Copies of a world like one that there is, shared alike by worker processes, which end with this object.

    To gymnasium's AsyncVectorEnv a worker has one world, and its observation is what all copies there show: so it is
    one message a worker and step, however many copies there are.
    """

    def __init__(self, like: Copies, copies: int, *, workers: int) -> None:
        from gymnasium import spaces
        from gymnasium.vector import AsyncVectorEnv, AutoresetMode

        if copies % workers:
            raise ValueError(f"{copies} copies cannot be shared by {workers} workers alike")
        self.name, self.workers, self.own = like.name, workers, copies // workers
        world = like.worlds[0]
        shown = spaces.Box(-np.inf, np.inf, (self.own, like.features))
        taken = spaces.Box(-np.inf, np.inf, (self.own, *(world.action_space.shape or ())))
        share: Any = partial(_Share, like.name, world.spec or like.name, self.own, shown, taken)
        try:
            self.vector: AsyncVectorEnv[Any, Any] = AsyncVectorEnv(
                [share] * workers, context=_context(), worker=_work, autoreset_mode=AutoresetMode.DISABLED
            )
        except (EOFError, OSError) as error:
            raise BrokenEnvironmentError(f"no worker process of {self.name} could be started: {error}") from error
        self.close = weakref.finalize(self, _end, self.vector)

    def begin(self, episodes: Sequence[Episode | None]) -> NDArray[np.float32]:
        """New episodes where there are some, up to where they stood; what is then seen everywhere."""
        shares = [list(episodes[first : first + self.own]) for first in range(0, len(episodes), self.own)]
        asked = np.array([any(share) for share in shares])
        seed: Any = shares  # to a worker, a seed is what begins there
        try:
            seen, told = self.vector.reset(seed=seed, options={"reset_mask": asked})
        except (EOFError, OSError) as error:
            self._tell_who_ended(error)
        self._demand_that_nothing(told)
        return np.asarray(seen).reshape(len(episodes), -1)

    def step(self, actions: NDArray[Any]) -> Moved:
        """One action in every copy."""
        try:
            asked = actions.reshape(self.workers, self.own, *actions.shape[1:])
            led_to, rewards, terminated, truncated, told = self.vector.step(asked)
        except (EOFError, OSError) as error:
            self._tell_who_ended(error)
        self._demand_that_nothing(told)
        seen, paid = led_to.reshape(len(actions), -1), rewards.astype(np.float32).ravel()
        return Moved(seen, paid, terminated.ravel(), truncated.ravel())

    def _demand_that_nothing(self, told: dict[str, Any]) -> None:
        """A worker that breaks says so, and lives on."""
        if told:
            raise BrokenEnvironmentError(next(each for each in told["broke"] if each))

    def _tell_who_ended(self, error: Exception) -> NoReturn:
        for process in self.vector.processes:
            process.join(0.2)
        codes = [str(process.exitcode) for process in self.vector.processes if process.exitcode is not None]
        self.close()
        raise BrokenEnvironmentError(
            f"a worker process of {self.name} ended (exit code {', '.join(codes) or 'not known'}): its world may have "
            "run out of memory, or crashed below Python"
        ) from error


class _Share:
    """The copies of one worker, as gymnasium sees them: one world, whose seed is a list of episodes."""

    render_mode = None

    def __init__(
        self, name: str, which: "str | EnvSpec", copies: int, shown: "Space[Any]", taken: "Space[Any]"
    ) -> None:
        self.metadata: dict[str, Any] = {}
        self.observation_space, self.action_space = shown, taken
        self.made: Callable[[], Copies] = lambda: Copies(name, [made(which) for _ in range(copies)])
        self.copies: Copies | None = None

    def reset(
        self,
        *,
        seed: list[Episode | None],
        options: object,  # noqa: ARG002 - as gymnasium calls it; nothing is left in it
    ) -> tuple[NDArray[Any], dict[str, str]]:
        try:
            if self.copies is None:  # only in a worker: gymnasium makes one more, to read its spaces
                self.copies = self.made()
            return self.copies.begin(seed), {}
        except BrokenEnvironmentError as error:
            return self._nothing(), {"broke": str(error)}

    def step(self, actions: NDArray[Any]) -> tuple[Any, ...]:
        assert self.copies is not None, "reset comes first"
        try:
            return (*self.copies.step(actions), {})
        except BrokenEnvironmentError as error:
            empty = np.zeros(len(actions))
            return (self._nothing(), empty, empty, empty, {"broke": str(error)})

    def close(self) -> None:
        if self.copies is not None:
            self.copies.close()

    def _nothing(self) -> NDArray[Any]:
        return np.zeros(self.observation_space.shape or ())


def _work(*arguments: Any) -> None:
    """What a worker runs; Ctrl-C is for the process that learns, which ends its step first."""
    from gymnasium.vector.async_vector_env import _async_worker

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(BrokenPipeError):  # where that process was killed, there is nobody left to tell
        _async_worker(*arguments)


def _context() -> str:
    """Workers are forked from a clean process, where that can be: one with threads, as torch has, may lock up."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return "spawn"
    multiprocessing.get_context("forkserver").set_forkserver_preload([__name__, "gymnasium"])
    return "forkserver"


def _end(vector: "AsyncVectorEnv[Any, Any]") -> None:
    """End the workers, whatever they do."""
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
