"""Progress of a loop, reported at fixed time intervals instead of every step to keep the overhead low."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, Protocol, TypeAlias

from rich.console import Console
from rich.text import Text

from parnassus.report.formatting import display_name
from parnassus.runs.folder import RunFolder
from parnassus.runs.metrics import Metrics
from parnassus.runs.progress import Progress

BAR_WIDTH = 16
CurrentMetrics: TypeAlias = Callable[[], Mapping[str, float]]


class ProgressListener(Protocol):
    """A receiver of the progress of a loop every `period` seconds and at its end (`last`)."""

    period: float

    def show(self, progress: Progress, *, last: bool) -> None: ...


class Ticker:
    """Pass the progress of a loop to its listeners; call `tick` from time `due` on."""

    def __init__(self, listeners: Sequence[ProgressListener]) -> None:
        self._listeners = list(listeners)
        self._times = [float("inf")] * len(self._listeners)
        self.due = float("inf")

    def start(self, title: str, start: int, total: int) -> None:
        self._title, self._first, self._total = title, start, total
        self._began = time.perf_counter()
        self._times = [self._began + listener.period for listener in self._listeners]
        self.due = min(self._times, default=float("inf"))

    def tick(self, done: int, now: float, metrics: CurrentMetrics) -> None:
        """Notify the listeners that are due at time `now`, after `done` steps."""
        progress = self._progress(done, now, metrics)
        for index, listener in enumerate(self._listeners):
            if now >= self._times[index]:
                listener.show(progress, last=False)
                self._times[index] = now + listener.period
        self.due = min(self._times)

    def stop(self, done: int, metrics: CurrentMetrics) -> None:
        for listener in self._listeners if done > self._first else ():
            listener.show(self._progress(done, time.perf_counter(), metrics), last=True)
        self.due = float("inf")

    def _progress(self, done: int, now: float, metrics: CurrentMetrics) -> Progress:
        return Progress(self._title, done, self._total, self._first, now - self._began, metrics())


class ConsoleProgress:
    """In a terminal, one line that is updated; otherwise, a new line every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.period = 0.25 if console.is_terminal else 10.0

    def show(self, progress: Progress, *, last: bool) -> None:
        shown = _format_metrics(progress.metrics)
        if not self._console.is_terminal:
            self._console.print(f"{progress}  {shown}", highlight=False, soft_wrap=True)
            return
        filled = round(BAR_WIDTH * progress.done / max(1, progress.total))
        line = Text.assemble(
            f"{progress.title} ",
            ("━" * filled, "cyan"),
            ("━" * (BAR_WIDTH - filled), "bright_black"),
            f" {progress.done:,}/{progress.total:,}  {progress.pace}  ",
            (shown, "dim"),
        )
        line.truncate(self._console.width - 1, overflow="ellipsis", pad=True)  # pads to overwrite the previous line
        self._console.print(line, end="\n" if last else "\r", no_wrap=True, highlight=False)


class NotebookProgress:
    """In a Jupyter notebook, one line below the cell that is updated."""

    period = 0.5

    def __init__(self) -> None:
        self._line: Any = None

    def show(self, progress: Progress, *, last: bool) -> None:
        from IPython.display import HTML, display

        bar = f'<progress value="{progress.done}" max="{max(1, progress.total)}"></progress>'
        line = HTML(f"{bar} {escape(f'{progress}  {_format_metrics(progress.metrics)}')}")
        if self._line is None:
            self._line = display(line, display_id=True)
        else:
            self._line.update(line)
        if last:
            self._line = None  # the next loop has its own line


class FolderProgress:
    """Write progress.json and flush metrics.csv twice per second."""

    period = 0.5

    def __init__(self, folder: RunFolder, metrics: Metrics) -> None:
        self._folder, self._metrics = folder, metrics

    def show(self, progress: Progress, *, last: bool) -> None:  # noqa: ARG002
        self._metrics.show()
        self._folder.show_progress(progress)


class LogProgress:
    """Append a line to log.txt every few seconds."""

    period = 10.0

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def show(self, progress: Progress, *, last: bool) -> None:  # noqa: ARG002
        self._folder.log(f"{progress}  {_format_metrics(progress.metrics)}")


def user_progress() -> ProgressListener:
    """The progress that the user sees: in a notebook below the cell, otherwise in the terminal."""
    console = terminal()
    return NotebookProgress() if console.is_jupyter else ConsoleProgress(console)


def terminal() -> Console:
    """The console for progress: standard error, so that results on standard output can be piped."""
    return Console(file=sys.stderr)


def _format_metrics(metrics: Mapping[str, float]) -> str:
    return "  ".join(f"{display_name(name)} {value:.4g}" for name, value in metrics.items())
