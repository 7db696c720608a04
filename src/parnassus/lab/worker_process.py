"""The worker processes of the lab: one for claims and one for probes, so that a slow claim does not delay a probe."""

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import ParamSpec, TypeVar

from parnassus.lab import worker

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class WorkerProcess:
    """A process that is started with its first task and restarted after a crash."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    async def run(self, task: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Run `task(*args, **kwargs)` in the worker after all earlier tasks."""
        try:
            return await asyncio.wrap_future(self._workers().submit(task, *args, **kwargs))
        except BrokenProcessPool:
            self._pool = None
            raise RuntimeError("the worker process crashed; try again") from None

    def warm_up(self) -> None:
        """Start the process and its imports before they are needed."""
        self._workers().submit(worker.warm_up)

    def close(self) -> None:
        """Cancel all tasks and end the process."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()

    def _workers(self) -> ProcessPoolExecutor:
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=worker.initialise_worker)
        return self._pool
