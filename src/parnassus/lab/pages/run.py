"""A run: progress, curves, figures, results, use of its model, log and downloads; buttons to stop or delete it."""

from nicegui import ui

from parnassus.atlas.declarations import Entry
from parnassus.lab.addresses import experiment_address, file_address, probe_address
from parnassus.lab.frame import error_box, frame, notify
from parnassus.lab.jobs import stop
from parnassus.lab.library import Library, modification_time
from parnassus.lab.pages.experiment import wait_for_folder
from parnassus.lab.pages.live_curves import LiveCurves
from parnassus.lab.pages.report_content import add_report_item, figure_source
from parnassus.lab.pages.run_details import add_details, add_result_card, judge_run, list_downloads
from parnassus.lab.pages.trained_model import add_trained_model
from parnassus.lab.tags import button, link, tag, text_element
from parnassus.report.formatting import display_name
from parnassus.report.page import split_title
from parnassus.runs import RunError, RunFolder, Status
from parnassus.runs.progress import format_duration

PERIOD = 0.95
"""Seconds between two reads of the folder."""
SYMBOLS: dict[Status, str] = {"running": "▶", "finished": "✓", "interrupted": "■", "failed": "✗"}
MAX_LOG_LINES = 200


def run_page(library: Library, folder: RunFolder) -> None:
    RunPage(library, folder).show()


class RunPage:
    """The page of one run; `refresh` reads the folder again and updates the page."""

    def __init__(self, library: Library, folder: RunFolder) -> None:
        self.library, self.folder = library, folder
        self.summary = library.summary(folder)
        self.entry: Entry | None = library.atlas.experiments.get(self.summary.experiment)
        self._stamps: dict[str, int] = {}
        self._items: dict[str, ui.element | None] = {}  # the displayed items of the report; for a figure, its image
        self._status: Status | None = None

    def show(self) -> None:
        title, reference = split_title(self.summary.title or self.summary.name)
        with frame(self.summary.name, "Runs"):
            with tag("div", classes="kicker"):
                link(self.summary.experiment, experiment_address(self.summary.experiment))
                tag("span", f" · {self.summary.name}")
            tag("h1", title)
            with tag("div", classes="row"):
                self.status = text_element("span", "", "status")
                tag("span", reference, "kicker")
            self._add_progress()
            self.buttons = tag("div", classes="row").style("margin: .8rem 0")
            self.errors = tag("div")
            self.results = tag("div", classes="grid").style("margin-top: 1rem")
            self.remark = text_element("p", "", "kicker")
            self.curves = LiveCurves(self.folder)
            tag("h2", "Figures and tables")
            self.content = tag("div")
            with self.content:
                self.no_content = tag("p", "Figures appear here during the run.", "kicker")
            self.trained_model = tag("div")
            self._add_details()
        self.timer = ui.timer(PERIOD, self.refresh)
        self.refresh()

    def _add_progress(self) -> None:
        self.bar = ui.linear_progress(0.0, show_value=False).props('rounded size="10px" aria-label="Progress"')
        self.bar.props("instant-feedback")  # without animation, which would use more processor time than the curves
        self.bar.style("margin: .8rem 0 .2rem; max-width: 46rem")
        self.rate = text_element("div", "", "kicker")

    def _add_details(self) -> None:
        with tag("details", classes="more") as self.log_box:
            tag("summary", "Log")
            self.log_text = text_element("pre", "", "command log")
        self.downloads = add_details(self.folder, self.summary)

    # actions

    def _stop(self) -> None:
        try:
            stop(self.folder)
            notify("The run is saving its state and will stop.")
        except RunError as error:
            notify(f"{error}.", is_error=True)

    async def _resume(self) -> None:
        try:
            job = self.library.jobs.resume(self.folder)
        except RunError as error:
            notify(f"{error}.", is_error=True)
            return
        notify("Resuming…")
        name, message = await wait_for_folder(job)
        if name is None:
            notify(f"The run did not resume: {message}", is_error=True)
        self.refresh()

    async def _delete(self) -> None:
        with ui.dialog() as dialog, tag("div", classes="card", role="document"):
            tag("h3", f"Delete {self.summary.name}?")
            tag("p", "Its weights, figures and results will be deleted permanently.")
            with tag("div", classes="row"):
                button("Delete", lambda: dialog.submit(True), "danger")
                button("Cancel", lambda: dialog.submit(False)).props("autofocus")
        if await dialog:
            try:
                self.folder.delete()
                ui.navigate.to("/runs")
            except RunError as error:
                notify(f"{error}.", is_error=True)

    # updates

    def refresh(self) -> None:
        """Update the page with changes in the folder since the last call."""
        if not (self.folder.path / "run.json").exists():
            self._show_missing()
            return
        status = self.folder.status
        self.curves.refresh(status)
        if self._is_new("story.json"):
            self._show_content()
        if self._is_new("log.txt"):
            self._show_log()
        self._show_progress(status)
        if status != self._status:
            self._status = status
            self._show_status(status)

    def _show_log(self) -> None:
        try:
            lines = self.folder.file("log.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        except RunError as error:
            lines = [str(error)]
        self.log_text.text = "\n".join(lines[-MAX_LOG_LINES:])

    def _read(self, name: str) -> dict[str, object]:
        """The content of a JSON file of the folder; {} if it is damaged."""
        try:
            return self.folder.read_json(name)
        except RunError:
            return {}

    def _show_missing(self) -> None:
        """Show that the folder was deleted by a user or by a run that could not start."""
        job = self.library.jobs.find(self.summary.name)
        if job is not None and not job.is_finished:
            return  # its error message follows
        self.timer.deactivate()
        self.status.text = "deleted"
        for part in (self.buttons, self.errors):
            part.clear()
        self.bar.set_visibility(False)
        self.rate.text = ""
        has_failed = job is not None and job.process.returncode not in (0, None)
        with self.errors:
            error_box(
                f"The run did not start: {job.failure()}" if job is not None and has_failed else "This run was deleted."
            )
            link("Back to the experiment", experiment_address(self.summary.experiment))

    def _is_new(self, name: str) -> bool:
        stamp = modification_time(self.folder.path / name)
        known, self._stamps[name] = self._stamps.get(name, 0), stamp
        return stamp != known

    def _show_progress(self, status: Status) -> None:
        progress = self.folder.progress
        running = status == "running"
        self.bar.set_visibility(running)
        if not running:
            self.rate.text = ""
            return
        if progress is None:
            self.rate.text = "Starting…"
            return
        self.bar.value = progress.done / max(1, progress.total)
        done = f"{progress.title}: {progress.done:,} of {progress.total:,} steps"
        self.rate.text = (
            f"{done} · {progress.rate:,.0f} steps per second · {format_duration(progress.seconds_left)} left"
            if progress.done < progress.total
            else f"{done} · plotting and evaluating"
        )

    def _show_status(self, status: Status) -> None:
        """Update everything that depends on the status."""
        self.status.text = f"{SYMBOLS[status]} {status}"
        self.summary = self.library.summary(self.folder)
        self._show_buttons(status)
        self._show_error(status)
        self._show_results()
        self._show_trained_model(status)
        list_downloads(self.downloads, self.folder, status)

    def _show_buttons(self, status: Status) -> None:
        self.buttons.clear()
        with self.buttons:
            if status == "running":
                button("Stop", self._stop)
            if status in ("interrupted", "failed"):
                button("Resume", self._resume, "primary")
            if (self.folder.path / "report.html").exists():
                link("Report", file_address(self.summary.name, "report.html"), target="_blank")
            for probe in self.library.probes_for(self.summary.experiment) if status == "finished" else ():
                link(f"Probe: {display_name(probe.name)}", probe_address(probe.name, self.summary.name))
            if status != "running":
                button("Delete…", self._delete, "danger", small=True)

    def _show_error(self, status: Status) -> None:
        self.errors.clear()
        if status == "failed":
            with self.errors:
                message = str(self._read("error.json").get("error", "see the log"))
                advice = "See the log below for details; a resumed run continues from its last checkpoint."
                error_box(f"The run failed: {message}", advice)

    def _show_results(self) -> None:
        self.results.clear()
        verdict = judge_run(self.entry, self.summary)
        with self.results:
            for measured in verdict.values:
                add_result_card(measured)
        self.remark.text = verdict.remark if verdict.values else ""

    def _show_trained_model(self, status: Status) -> None:
        self.trained_model.clear()
        if status == "finished" and self.entry is not None:
            with self.trained_model:
                add_trained_model(self.library, self.folder, self.entry)

    def _show_content(self) -> None:
        """Show figures, notes and tables in the order in which the run added them."""
        content = self._read("story.json")
        self.no_content.set_visibility(not content)
        if list(self._items) != list(content)[: len(self._items)]:
            self.content.clear()
            self._items = {}
        with self.content:
            for key, item in content.items():
                image = self._items.get(key)
                if key not in self._items and isinstance(item, dict):
                    self._items[key] = add_report_item(self.summary.name, self.folder, item)
                elif image is not None and isinstance(item, dict):  # the figure may have changed
                    image.props["src"] = figure_source(self.summary.name, self.folder, str(item.get("name")))
