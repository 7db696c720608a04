"""A run: its curves as they grow, its figures as they appear, its numbers, its log; stop, resume, take away."""

from collections.abc import Mapping

from nicegui import ui

from parnassus.atlas.reading import Entry
from parnassus.lab.addresses import experiment_address, file_address, probe_address
from parnassus.lab.frame import copyable, frame, problem, say
from parnassus.lab.jobs import stop
from parnassus.lab.library import Library, RunFacts
from parnassus.lab.pages.curves import LiveCurves
from parnassus.lab.pages.experiment import folder_of
from parnassus.lab.pages.numbers import as_is, number_card
from parnassus.lab.pages.story import figure_source, story_item
from parnassus.lab.tags import button, facts, link, live, tag, words
from parnassus.report.numbers import number
from parnassus.report.page import heading
from parnassus.runs import RunError, RunFolder, Status
from parnassus.runs.progress import clock

PERIOD = 0.95
"""Seconds between two looks at the folder."""
SIGNS: dict[Status, str] = {"running": "▶", "finished": "✓", "interrupted": "■", "failed": "✗"}
TAIL = 200
"""Lines of the log that are shown."""


def run_page(library: Library, folder: RunFolder) -> None:
    RunPage(library, folder).show()


class RunPage:
    """The page of one run; `look` reads the folder again and shows what changed since it last did."""

    def __init__(self, library: Library, folder: RunFolder) -> None:
        self.library, self.folder = library, folder
        self.facts = library.facts(folder)
        self.entry: Entry | None = library.atlas.experiments.get(self.facts.experiment)
        self._stamps: dict[str, int] = {}
        self._told: dict[str, ui.element | None] = {}  # what the story tells so far; of a figure, its image
        self._status: Status | None = None

    def show(self) -> None:
        title, where = heading(self.facts.title or self.facts.name)
        with frame(self.facts.name, "Runs"):
            with tag("div", classes="kicker"):
                link(self.facts.experiment, experiment_address(self.facts.experiment))
                tag("span", f" · {self.facts.name}")
            tag("h1", title)
            with tag("div", classes="row"):
                self.status = live("span", "", "status")
                tag("span", where, "kicker")
            self._progress()
            self.buttons = tag("div", classes="row").style("margin: .8rem 0")
            self.trouble = tag("div")
            self.numbers = tag("div", classes="grid").style("margin-top: 1rem")
            self.remark = live("p", "", "kicker")
            self.curves = LiveCurves(self.folder)
            tag("h2", "Figures and findings")
            self.story = tag("div")
            with self.story:
                self.nothing = tag("p", "Figures appear here as the run draws them.", "kicker")
            self._rest()
        self.timer = ui.timer(PERIOD, self.look)
        self.look()

    def _progress(self) -> None:
        self.bar = ui.linear_progress(0.0, show_value=False).props('rounded size="10px" aria-label="Progress"')
        self.bar.props("instant-feedback")  # gliding would cost the browser more than the curves do
        self.bar.style("margin: .8rem 0 .2rem; max-width: 46rem")
        self.pace = live("div", "", "kicker")

    def _rest(self) -> None:
        about = self.folder.read_json("run.json")
        with tag("details", classes="more") as self.log_box:
            tag("summary", "Log")
            self.log_text = live("pre", "", "command log")
        with tag("div", classes="two"):
            with tag("section"):
                tag("h2", "Settings")
                facts((words(name), number(value)) for name, value in self.facts.used.items())
            with tag("section"):
                tag("h2", "This run")
                facts(_about_run(about, self.facts))
            with tag("section"):
                tag("h2", "Again, and further")
                copyable(str(about.get("command", "")), "command", "The same run from a terminal")
                copyable(f"parnassus resume {self.facts.name}", "resume", "Go on after an interruption")
                link("Compare with another run", f"/runs?like={self.facts.experiment}")
            with tag("section"):
                tag("h2", "Take away")
                self.takeaway = tag("ul")

    # what the person does

    def _stop(self) -> None:
        try:
            stop(self.folder)
            say("Asked the run to save and stop.")
        except RunError as error:
            say(f"{error}.", bad=True)

    async def _resume(self) -> None:
        try:
            job = self.library.jobs.resume(self.folder)
        except RunError as error:
            say(f"{error}.", bad=True)
            return
        say("Resuming…")
        name, sentence = await folder_of(job)
        if name is None:
            say(f"It did not resume: {sentence}", bad=True)
        self.look()

    async def _delete(self) -> None:
        with ui.dialog() as dialog, tag("div", classes="card", role="document"):
            tag("h3", f"Delete {self.facts.name}?")
            tag("p", "Its weights, figures and numbers are gone for good.")
            with tag("div", classes="row"):
                button("Delete", lambda: dialog.submit(True), "danger")
                button("Keep it", lambda: dialog.submit(False)).props("autofocus")
        if await dialog:
            try:
                self.folder.delete()
                ui.navigate.to("/runs")
            except RunError as error:
                say(f"{error}.", bad=True)

    # what the folder says

    def look(self) -> None:
        """Show what changed in the folder since the last look."""
        if not (self.folder.path / "run.json").exists():
            self._vanish()
            return
        status = self.folder.status
        self.curves.look(status)
        if self._is_new("story.json"):
            self._tell()
        if self._is_new("log.txt"):
            self._show_log()
        self._show_pace(status)
        if status != self._status:
            self._status = status
            self._turn(status)

    def _show_log(self) -> None:
        try:
            lines = self.folder.file("log.txt").read_text(encoding="utf-8", errors="replace").splitlines()
        except RunError as error:
            lines = [str(error)]
        self.log_text.text = "\n".join(lines[-TAIL:])

    def _read(self, name: str) -> dict[str, object]:
        """A JSON file of the folder; what is damaged counts as empty."""
        try:
            return self.folder.read_json(name)
        except RunError:
            return {}

    def _vanish(self) -> None:
        """The folder is gone: deleted by somebody, or never filled by a run that could not begin."""
        job = self.library.jobs.of(self.facts.name)
        if job is not None and not job.over:
            return  # it is about to say why
        self.timer.deactivate()
        self.status.text = "gone"
        for part in (self.buttons, self.trouble):
            part.clear()
        self.bar.set_visibility(False)
        self.pace.text = ""
        gave_up = job is not None and job.process.returncode not in (0, None)
        with self.trouble:
            problem(f"It did not start: {job.failure()}" if job is not None and gave_up else "This run was deleted.")
            link("Back to the experiment", experiment_address(self.facts.experiment))

    def _is_new(self, name: str) -> bool:
        path = self.folder.path / name
        stamp = path.stat().st_mtime_ns if path.exists() else 0
        known, self._stamps[name] = self._stamps.get(name, 0), stamp
        return stamp != known

    def _show_pace(self, status: Status) -> None:
        progress = self.folder.progress
        running = status == "running"
        self.bar.set_visibility(running)
        if not running:
            self.pace.text = ""
            return
        if progress is None:
            self.pace.text = "Starting…"
            return
        self.bar.value = progress.done / max(1, progress.total)
        where = f"{progress.title}: {progress.done:,} of {progress.total:,} steps"
        self.pace.text = (
            f"{where} · {progress.rate:,.0f} steps a second · {clock(progress.left)} left"
            if progress.done < progress.total
            else f"{where} · drawing and measuring"
        )

    def _turn(self, status: Status) -> None:
        """The status changed: other buttons, other words."""
        self.status.text = f"{SIGNS[status]} {status}"
        self.facts = self.library.facts(self.folder)
        self._show_buttons(status)
        self._show_trouble(status)
        self._show_numbers()
        self._show_takeaway(status)

    def _show_buttons(self, status: Status) -> None:
        self.buttons.clear()
        with self.buttons:
            if status == "running":
                button("Stop", self._stop)
            if status in ("interrupted", "failed"):
                button("Resume", self._resume, "primary")
            if (self.folder.path / "report.html").exists():
                link("Report", file_address(self.facts.name, "report.html"), target="_blank")
            for probe in self.library.probes_for(self.facts.experiment) if status == "finished" else ():
                link(f"Touch: {words(probe.name)}", probe_address(probe.name, self.facts.name))
            if status != "running":
                button("Delete…", self._delete, "danger", small=True)

    def _show_trouble(self, status: Status) -> None:
        self.trouble.clear()
        if status == "failed":
            with self.trouble:
                happened = str(self._read("error.json").get("error", "the log says why"))
                problem(
                    f"The run failed: {happened}", "The log below has the details; resume goes on from the last save."
                )

    def _show_numbers(self) -> None:
        self.numbers.clear()
        judged = self.entry is not None and as_is(self.entry, self.facts)
        with self.numbers:
            for name, value in self.facts.result.items():
                number_card(self.entry, name, value, judged=judged)
        self.remark.text = (
            "The bands are for the laptop profile with its own settings, so they do not judge this run."
            if self.facts.result and not judged
            else ""
        )

    def _show_takeaway(self, status: Status) -> None:
        self.takeaway.clear()
        names = {
            "weights.safetensors": "Weights (safetensors)",
            "metrics.csv": "Metrics (CSV)",
            "result.json": "Result (JSON)",
        }
        with self.takeaway:
            for name, label in names.items():
                if (self.folder.path / name).exists():
                    with tag("li"):
                        link(label, file_address(self.facts.name, name))
            if status == "running":
                tag("li", "Weights come when the run is finished.", "kicker")

    def _tell(self) -> None:
        """Show figures, notes and tables in the order in which the run told them."""
        story = self._read("story.json")
        self.nothing.set_visibility(not story)
        if list(self._told) != list(story)[: len(self._told)]:
            self.story.clear()
            self._told = {}
        with self.story:
            for key, item in story.items():
                image = self._told.get(key)
                if key not in self._told and isinstance(item, dict):
                    self._told[key] = story_item(self.facts.name, self.folder, item)
                elif image is not None and isinstance(item, dict):  # drawn again, perhaps
                    image.props["src"] = figure_source(self.facts.name, self.folder, str(item.get("name")))


def _about_run(about: Mapping[str, object], run: RunFacts) -> list[tuple[str, str]]:
    used = about.get("versions")
    shown = {"started": run.started.replace("T", " ")[:19], "profile": run.profile}
    shown["seconds"] = number(run.seconds) if run.seconds is not None else "not finished"
    shown |= {words(name): number(run.options[name]) for name in ("seed", "device", "precision") if name in run.options}
    shown["machine"] = str(about.get("machine", ""))
    if isinstance(used, dict):
        shown["versions"] = ", ".join(f"{name} {version}" for name, version in used.items())
    return list(shown.items())
