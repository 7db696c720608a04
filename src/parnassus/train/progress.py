"""Progress: rate and time left, redrawn by the clock and not by the step, so that it costs nothing."""

import sys
import time

from rich.console import Console
from rich.text import Text

BAR = 16


class Ticker:
    """Shows how far a loop is. `tick` is called every step and does something only when a drawing is due."""

    def __init__(self, console: Console | None) -> None:
        """Draw on `console`: one line that moves on a terminal, a line now and then elsewhere; None shows nothing."""
        self._console = console
        self._period = 0.25 if console is not None and console.is_terminal else 10.0
        self._due = float("inf")

    def start(self, title: str, start: int, total: int) -> None:
        self._title, self._first, self._total = title, start, total
        self._began = time.perf_counter()
        if self._console is not None:
            self._due = self._began + self._period

    def tick(self, done: int, metrics: dict[str, float]) -> None:
        """Draw when it is due: `done` steps are behind us, `metrics` were last seen."""
        if time.perf_counter() >= self._due:
            self._draw(done, metrics, end="\r")
            self._due = time.perf_counter() + self._period

    def stop(self, done: int, metrics: dict[str, float]) -> None:
        if self._console is not None and done > self._first:
            self._draw(done, metrics, end="\n")
        self._due = float("inf")

    def pace(self, done: int) -> str:
        """Steps a second since the start, and the time left at that rate (the time taken, when nothing is left)."""
        seconds = time.perf_counter() - self._began
        rate = (done - self._first) / seconds if seconds > 0 else 0.0
        left = (self._total - done) / rate if rate > 0 else float("inf")
        shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2f}"
        return f"{shown} steps/s, " + (f"{_clock(left)} left" if done < self._total else f"took {_clock(seconds)}")

    def _draw(self, done: int, metrics: dict[str, float], end: str) -> None:
        assert self._console is not None
        counted = f"{done:,}/{self._total:,}  {self.pace(done)}  "
        shown = "  ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in metrics.items())
        if not self._console.is_terminal:
            self._console.print(f"{self._title} {counted}{shown}", highlight=False, soft_wrap=True)
            return
        filled = round(BAR * done / max(1, self._total))
        line = Text.assemble(
            f"{self._title} ",
            ("━" * filled, "cyan"),
            ("━" * (BAR - filled), "bright_black"),
            f" {counted}",
            (shown, "dim"),
        )
        line.truncate(self._console.width - 1, overflow="ellipsis", pad=True)  # pads over what stood there before
        self._console.print(line, end=end, no_wrap=True, highlight=False)


def terminal() -> Console:
    """The console for progress: standard error, so that results on standard output can be piped."""
    return Console(file=sys.stderr)


def _clock(seconds: float) -> str:
    if seconds == float("inf"):
        return "?"
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
