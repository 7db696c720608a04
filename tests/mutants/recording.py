"""Records which claims and tests execute each mutated statement, room by room; for tests as a plugin of pytest.

The result of a piece, the claims or the tests of one room, maps each claim or test to its seconds and to the names of
the mutations that it reaches. Those that fail on the unchanged source are left out.
"""

import os
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from .mutations import plant_recorders, read_mutations
from .storage import store

TARGET = "PARNASSUS_REACHED_MUTATIONS"
Reached = dict[str, dict[str, Any]]


class Recorder:
    """What the claim or test that runs now has reached."""

    def __init__(self) -> None:
        self.reached: set[int] = set()
        self.found: Reached = {}
        self.started = 0.0

    def start(self) -> None:
        self.reached.clear()
        self.started = time.perf_counter()

    def finish(self, name: str) -> None:
        if self.reached:
            mutations = read_mutations()
            reached = [mutations[index].name for index in sorted(self.reached)]
            self.found[name] = {"seconds": round(time.perf_counter() - self.started, 3), "reached": reached}


recorder = Recorder()
if TARGET in os.environ:
    plant_recorders(recorder.reached.add)


def record_claims(room: str) -> None:
    """Run the claims of a room that are not slow."""
    from parnassus.atlas.index import Atlas, run_mark

    for mark in Atlas().marks:
        if mark.module.startswith(f"parnassus.{room}.") and not mark.slow:
            recorder.start()
            with suppress(Exception):
                if run_mark(mark).holds:
                    recorder.finish(f"{mark.module}.{mark.name}")
    store(Path(os.environ[TARGET]), recorder.found)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    recorder.start()
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        recorder.finish(report.nodeid)


def pytest_sessionfinish() -> None:
    if TARGET in os.environ:
        store(Path(os.environ[TARGET]), recorder.found)


if __name__ == "__main__":
    import sys

    record_claims(sys.argv[1])
