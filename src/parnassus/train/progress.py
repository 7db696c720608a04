"""Progress: rate and time left, redrawn by the clock and not by the step, so that it costs nothing."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text


class Ticker:
    """Shows how far a loop is. `tick` is called every step and does something only when a drawing is due."""

    def __init__(self, console: Console | None) -> None:
        """Draw on `console`; None shows nothing."""
        self._console = console
        self._bar: Progress | None = None
        self._period = 0.25 if console is not None and console.is_terminal else 10.0
        self._due = float("inf")

    def start(self, title: str, start: int, total: int) -> None:
        self._title, self._first, self._total, self._began = title, start, total, time.perf_counter()
        if self._console is None:
            return
        self._due = self._began + self._period
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                TextColumn("{task.completed:,.0f}/{task.total:,.0f}"),
                Pace(),
                TextColumn("{task.fields[metrics]}"),
                console=self._console,
                auto_refresh=False,
                expand=True,
            )
            self._task: TaskID = self._bar.add_task(title, total=total, completed=start, metrics="", pace="")
            self._bar.start()

    def due(self) -> bool:
        return time.perf_counter() >= self._due

    def tick(self, done: int, metrics: dict[str, float]) -> None:
        """Draw when it is due: `done` steps are behind us, `metrics` were last seen."""
        if time.perf_counter() >= self._due:
            self._draw(done, metrics)
            self._due = time.perf_counter() + self._period

    def stop(self, done: int, metrics: dict[str, float]) -> None:
        if self._console is not None:
            self._draw(done, metrics)
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        self._due = float("inf")

    def pace(self, done: int) -> str:
        """Steps a second since the start, and the time left at that rate."""
        seconds = time.perf_counter() - self._began
        rate = (done - self._first) / seconds if seconds > 0 else 0.0
        left = (self._total - done) / rate if rate > 0 else float("inf")
        return f"{rate:,.0f} steps/s, {_clock(left)} left" if rate >= 10 else f"{rate:.2f} steps/s, {_clock(left)} left"

    def _draw(self, done: int, metrics: dict[str, float]) -> None:
        shown = "  ".join(f"{name} {value:.4g}" for name, value in list(metrics.items())[-4:])
        if self._bar is not None:
            self._bar.update(self._task, completed=done, metrics=shown, pace=self.pace(done), refresh=True)
        elif self._console is not None:
            self._console.print(f"{self._title} {done:,}/{self._total:,}  {self.pace(done)}  {shown}", highlight=False)


class Pace(ProgressColumn):
    """The rate and the time left, as the ticker computed them."""

    def render(self, task: Task) -> Text:
        return Text(str(task.fields["pace"]))


def terminal() -> Console:
    """The console for progress: standard error, so that results on standard output can be piped."""
    return Console(file=sys.stderr)


def _clock(seconds: float) -> str:
    if seconds == float("inf"):
        return "?"
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
