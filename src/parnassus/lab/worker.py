"""Functions that run in the worker processes of the lab: checks of claims, and evaluation of probes.

Only the workers import torch, not the process of the pages. Arguments and results are pickled.
"""

import importlib
import os
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from parnassus.atlas.declarations import Mark, Probe
from parnassus.atlas.evidence import Correction, Evidence
from parnassus.atlas.index import run_mark
from parnassus.runs import RunFolder

if TYPE_CHECKING:
    from parnassus.train.trained import TrainedRun
    from parnassus.widgets import Control
    from parnassus.widgets.evaluation import ProbeFunction

PlainValues: TypeAlias = dict[str, Any]
"""Text, numbers, lists, and images as data URLs."""


@dataclass(frozen=True)
class ClaimResult:
    """The result of a claim or an erratum."""

    outcome: Evidence | Correction | None  # None after an exception
    error: str
    figure: str  # an SVG; empty if there are no values to plot
    seconds: float
    at: float = field(default_factory=time.time)

    @property
    def holds(self) -> bool:
        return self.outcome is not None and self.outcome.holds


def initialise_worker() -> None:
    """Ignore Ctrl-C, which the lab handles, and exit when the lab's process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with_parent, args=(parent.sentinel,), daemon=True).start()


def _exit_with_parent(sentinel: int) -> None:
    wait([sentinel])
    os._exit(0)


def warm_up() -> None:
    """Import torch and initialise automatic differentiation before the first request."""
    import torch

    torch.set_num_threads(1)  # the models are small, and a run may use the other cores
    torch.func.grad(torch.square)(torch.tensor(1.0))  # the first gradient in a process takes one second


def check_claim(mark: Mark) -> ClaimResult:
    """Run a claim or an erratum and plot its evidence."""
    warm_up()
    started = time.perf_counter()
    try:
        outcome = run_mark(mark)
    except Exception as error:  # a claim that raises does not hold; the page shows the exception
        return ClaimResult(None, f"{type(error).__name__}: {error}", "", time.perf_counter() - started)
    seconds = time.perf_counter() - started
    return ClaimResult(outcome, "", _plot_evidence(outcome), seconds)


def _plot_evidence(outcome: Evidence | Correction) -> str:
    from parnassus.report.evidence import evidence_figure
    from parnassus.report.style import render_svg

    figure = evidence_figure(outcome)
    return "" if figure is None else render_svg(figure)


def open_probe(probe: Probe, run: str | None) -> list[PlainValues]:
    """The controls of a probe for a run: names, types, limits and initial values."""
    from parnassus.widgets import initial_values

    function, _, controls = _load_probe(probe, run, _modification_time(run))
    initial = initial_values(function, controls)
    return [{"name": name, **control.to_plain(initial[name])} for name, control in controls.items()]


def evaluate(probe: Probe, run: str | None, values: Mapping[str, object]) -> list[PlainValues]:
    """The answers of a probe to these values of its controls."""
    import torch

    from parnassus.widgets import evaluate_probe

    function, trained, controls = _load_probe(probe, run, _modification_time(run))
    with torch.inference_mode():
        return [answer.to_plain() for answer in evaluate_probe(function, trained, controls, values)]


@lru_cache(maxsize=4)
def _load_probe(
    probe: Probe, run: str | None, _mtime: int
) -> "tuple[ProbeFunction, TrainedRun | None, dict[str, Control]]":
    """A probe with its run; the modification time changes if the run is trained again."""
    warm_up()
    from parnassus.train.trained import TrainedRun
    from parnassus.widgets import read_controls

    function = getattr(importlib.import_module(probe.module), probe.name)
    trained = None if run is None else TrainedRun.open(RunFolder.open(Path(run)))
    return function, trained, read_controls(function, trained)


def _modification_time(run: str | None) -> int:
    return 0 if run is None else (RunFolder.open(Path(run)).path / "run.json").stat().st_mtime_ns
