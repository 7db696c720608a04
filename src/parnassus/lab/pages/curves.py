"""The curves of a run as they grow: those on disk, then what was seen since; log scale, smoothing, zoom."""

from typing import Any

from nicegui import ui

from parnassus.lab.charts import chart, curves
from parnassus.lab.components import Range
from parnassus.lab.frame import say
from parnassus.lab.tags import tag, words
from parnassus.report.page import families
from parnassus.runs import Curves, Progress, RunError, RunFolder, Status, read_metrics


class LiveCurves:
    """A part of the run's page; `look` reads the folder again and draws what changed since it last did."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._smooth, self._log = 0.0, True
        self._recorded: Curves = {}  # on disk
        self._seen: Curves = {}  # while watching, after those on disk
        self._stamp = 0
        self._charts: dict[str, ui.echart] = {}
        self._heading = tag("h2", "Curves")
        with tag("div", classes="row").style("gap: 1.4rem; margin-bottom: .4rem") as self._tools:
            ui.switch("Log scale for losses", value=True, on_change=self._set_log)
            tag("span", "Smoothing", "kicker", id="smoothing-label")
            smoothing = Range(0.0, 0.98, 0.0, self._set_smooth, step=0.02).style("width: 11rem")
            smoothing.props["aria-labelledby"] = "smoothing-label"
            tag("span", "Zoom with the wheel or the handle below a chart.", "kicker")
        self._grid = tag("div", classes="wide-grid")
        self._draw()

    def _set_log(self, event: Any) -> None:
        self._log = bool(event.value)
        self._draw()

    def _set_smooth(self, weight: float) -> None:
        self._smooth = weight
        self._draw()

    def look(self, status: Status) -> None:
        """Read the curves on disk and the metrics of the step in hand; draw them if there is something new."""
        progress = self.folder.progress if status == "running" else None
        new = [self._read_recorded(), self._follow(progress) if progress is not None else self._forget()]
        if any(new):
            self._draw()

    def _read_recorded(self) -> bool:
        path = self.folder.path / "metrics.csv"
        known, self._stamp = self._stamp, path.stat().st_mtime_ns if path.exists() else 0
        if self._stamp == known:
            return False
        try:
            self._recorded = read_metrics(self.folder.file("metrics.csv"))
        except RunError as error:
            say(f"{error}.", bad=True)
        return True

    def _forget(self) -> bool:
        """What was seen live is on disk once the run is over."""
        had, self._seen = bool(self._seen), {}
        return had

    def _follow(self, progress: Progress) -> bool:
        new = False
        for name, value in progress.metrics.items():
            recorded, known = self._recorded.get(name, ([], []))
            steps, values = self._seen.setdefault(name, ([], []))
            place = progress.done - 1
            while steps and recorded and steps[0] <= recorded[-1]:  # those on disk have caught up
                steps.pop(0)
                values.pop(0)
            stale = bool(known) and value == known[-1]  # a metric that is not of every step
            if recorded and not stale and place > max(recorded[-1], steps[-1] if steps else -1):
                steps.append(place)
                values.append(value)
                new = True
        return new

    def _drawn(self) -> Curves:
        """The curves on disk, each with what was seen since."""
        none: tuple[list[int], list[float]] = ([], [])
        return {
            name: (steps + self._seen.get(name, none)[0], values + self._seen.get(name, none)[1])
            for name, (steps, values) in self._recorded.items()
        }

    def _draw(self) -> None:
        """Bring the charts up to date; a chart keeps its zoom."""
        groups = families(self._drawn())
        self._heading.set_visibility(bool(groups))
        self._tools.set_visibility(bool(groups))
        for family, lines in groups.items():
            positive = all(value > 0 for _, values in lines.values() for value in values)
            log_y = self._log and family.endswith("loss") and positive
            options = curves(lines, x_label="step", y_label=words(family), log_y=log_y, smooth=self._smooth)
            if family in self._charts:
                self._charts[family].options.clear()
                self._charts[family].options.update(options)
                self._charts[family].update()
            else:
                with self._grid, tag("div", classes="card"):
                    self._charts[family] = chart(options, f"{words(family)} by step: {', '.join(lines)}")
