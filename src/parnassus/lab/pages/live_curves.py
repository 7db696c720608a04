"""The curves of a run during training, with logarithmic scale, smoothing and zoom."""

from typing import Any

from nicegui import ui

from parnassus.lab.charts import add_chart, line_chart
from parnassus.lab.components import Slider
from parnassus.lab.frame import notify
from parnassus.lab.library import modification_time
from parnassus.lab.tags import tag
from parnassus.report.formatting import display_name
from parnassus.report.page import are_positive, group_metrics
from parnassus.runs import MetricHistory, Progress, RunError, RunFolder, Status, read_metrics


class LiveCurves:
    """Charts of the metrics; `refresh` reads the folder again and redraws them after a change."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._smooth, self._log = 0.0, True
        self._recorded: MetricHistory = {}  # values on disk
        self._live: MetricHistory = {}  # later values, read from the progress of the run
        self._stamp = 0
        self._charts: dict[str, ui.echart] = {}
        self._heading = tag("h2", "Curves")
        with tag("div", classes="row").style("gap: 1.4rem; margin-bottom: .4rem") as self._tools:
            ui.switch("Log scale for losses", value=True, on_change=self._set_log)
            tag("span", "Smoothing", "kicker", id="smoothing-label")
            smoothing = Slider(0.0, 0.98, 0.0, self._set_smooth, step=0.02).style("width: 11rem")
            smoothing.props["aria-labelledby"] = "smoothing-label"
            tag("span", "Zoom with the wheel or with the handle below a chart.", "kicker")
        self._grid = tag("div", classes="wide-grid")
        self._draw()

    def _set_log(self, event: Any) -> None:
        self._log = bool(event.value)
        self._draw()

    def _set_smooth(self, weight: float) -> None:
        self._smooth = weight
        self._draw()

    def refresh(self, status: Status) -> None:
        """Read the recorded curves and the metrics of the current step; draw them after a change."""
        progress = self.folder.progress if status == "running" else None
        new = [self._read_recorded(), self._append(progress) if progress is not None else self._clear_live()]
        if any(new):
            self._draw()

    def _read_recorded(self) -> bool:
        path = self.folder.path / "metrics.csv"
        known, self._stamp = self._stamp, modification_time(path)
        if self._stamp == known:
            return False
        try:
            self._recorded = read_metrics(self.folder.file("metrics.csv"))
        except RunError as error:
            notify(f"{error}.", is_error=True)
        return True

    def _clear_live(self) -> bool:
        """Clear the live values; all values of a finished run are recorded."""
        had_values, self._live = bool(self._live), {}
        return had_values

    def _append(self, progress: Progress) -> bool:
        new = False
        for name, value in progress.metrics.items():
            recorded, known = self._recorded.get(name, ([], []))
            steps, values = self._live.setdefault(name, ([], []))
            step = progress.done - 1
            while steps and recorded and steps[0] <= recorded[-1]:  # recorded in the meantime
                steps.pop(0)
                values.pop(0)
            is_old = bool(known) and value == known[-1]  # of an earlier step
            if recorded and not is_old and step > max(recorded[-1], steps[-1] if steps else -1):
                steps.append(step)
                values.append(value)
                new = True
        return new

    def _join(self) -> MetricHistory:
        """The recorded curves, each with its live values."""
        none: tuple[list[int], list[float]] = ([], [])
        return {
            name: (steps + self._live.get(name, none)[0], values + self._live.get(name, none)[1])
            for name, (steps, values) in self._recorded.items()
        }

    def _draw(self) -> None:
        """Update the charts, which keep their zoom."""
        groups = group_metrics(self._join())
        self._heading.set_visibility(bool(groups))
        self._tools.set_visibility(bool(groups))
        for family, lines in groups.items():
            log_y = self._log and family.endswith("loss") and are_positive(lines)
            options = line_chart(lines, x_label="step", y_label=display_name(family), log_y=log_y, smooth=self._smooth)
            if family in self._charts:
                self._charts[family].options.clear()
                self._charts[family].options.update(options)
                self._charts[family].update()
            else:
                with self._grid, tag("div", classes="card"):
                    self._charts[family] = add_chart(options, f"{display_name(family)} by step: {', '.join(lines)}")
