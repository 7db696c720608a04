"""The processes that compute for the lab: one for claims, one for probes, so that a slow claim delays no touch."""

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import ParamSpec, TypeVar

from parnassus.lab import worker

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Workbench:
    """One worker process, started when it is first needed and started again when it dies."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    async def do(self, work: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> Result:
        """`work(*given)` in the worker, after everything that was asked before."""
        try:
            return await asyncio.wrap_future(self._workers().submit(work, *given, **named))
        except BrokenProcessPool:
            self._pool = None
            raise RuntimeError("the process that computes this died; try again") from None

    def warm_up(self) -> None:
        """Begin to import what everything needs, while the person still reads."""
        self._workers().submit(worker.warm_up)

    def close(self) -> None:
        """Give up what is being computed."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()

    def _workers(self) -> ProcessPoolExecutor:
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=worker.prepare)
        return self._pool
