"""A probe: its controls, and its answers, which are updated after every change of a control."""

import time
from functools import partial
from typing import Any

from nicegui import ui

from parnassus.atlas.declarations import Probe
from parnassus.lab import worker
from parnassus.lab.addresses import experiment_address, probe_address, run_address, subject_address
from parnassus.lab.answers import Answers
from parnassus.lab.components import PlaneCanvas
from parnassus.lab.controls import CONTROL_VIEWS
from parnassus.lab.frame import error_box, frame
from parnassus.lab.library import Library
from parnassus.lab.tags import formula_text, link, tag, text_element, title_and_text
from parnassus.report.page import split_title


def probes_page(library: Library) -> None:
    with frame("Probes", "Probes"):
        tag("h1", "Probes")
        tag("p", "Interactive views of methods and of trained models.", "lead")
        with tag("ul", classes="wide-grid"):
            for room in library.atlas.subjects:
                for probe in (each for each in library.atlas.probes.values() if each.room == room):
                    _card(library, probe)


def _card(library: Library, probe: Probe) -> None:
    title, reference = split_title(probe.title)
    with tag("li", classes="card"):
        with tag("h3"):
            link(title, probe_address(probe.name))
        tag("div", reference, "kicker")
        formula_text(probe.text.split("\n\n")[0], "p")
        count = len(library.runs_for(probe))
        available = f"{count} trained run{'s' * (count > 1)}" if count else "no trained run yet"
        tag("div", available if probe.experiments else "needs no run", "kicker")


def probe_page(library: Library, probe: Probe, requested_run: str) -> None:
    library.probes.warm_up()
    title, reference = split_title(probe.title)
    subject = library.atlas.subjects.get(probe.room)
    with frame(title, "Probes"):
        with tag("div", classes="kicker"):
            link(subject.title if subject else probe.room, subject_address(probe.room))
        title_and_text(title, reference, probe.text)
        if not probe.experiments:
            ProbeView(library, probe, None).show()
            return
        runs = [run.name for run in library.runs_for(probe)]
        if not runs:
            _list_experiments(probe)
            return
        selected = requested_run if requested_run in runs else runs[0]
        _select_run(probe, runs, selected)
        folder = library.run(selected)
        if folder is not None:
            ProbeView(library, probe, str(folder.path)).show()


def _list_experiments(probe: Probe) -> None:
    with tag("div", classes="empty"):
        tag("p", "This probe needs a trained run of one of these experiments; the laptop profile takes about a minute:")
        with tag("ul"):
            for name in probe.experiments:
                with tag("li"):
                    link(name, experiment_address(name))


def _select_run(probe: Probe, runs: list[str], selected: str) -> None:
    def open_run(event: Any) -> None:
        if event.value in runs:
            ui.navigate.to(probe_address(probe.name, event.value))

    with tag("div", classes="row").style("margin-bottom: 1rem"):
        select = ui.select(runs[:100], value=selected, label="Run", on_change=open_run)
        select.props("outlined dense").style("min-width: 18rem; max-width: 100%")
        link("Page of this run", run_address(selected))


class ProbeView:
    """The controls and the answers. During an evaluation, changes are collected and evaluated together afterwards."""

    def __init__(self, library: Library, probe: Probe, run: str | None) -> None:
        self.library, self.probe, self.run = library, probe, run
        self.values: dict[str, Any] = {}
        self.plane: PlaneCanvas | None = None
        self._is_busy = self._has_changed = False

    def show(self) -> None:
        with tag("div", classes="probe"):
            with tag("div", classes="controls card") as self.controls:
                ui.spinner(size="lg")
                tag("div", "Loading the model: the first time takes a few seconds.", "kicker")
            with tag("div"):
                self.errors = tag("div")
                self.answers = Answers()
                self.duration = text_element("div", "", "kicker")
        ui.timer(0.05, self._open, once=True)

    async def _open(self) -> None:
        try:
            specs = await self.library.probes.run(worker.open_probe, self.probe, self.run)
        except Exception as error:  # every error is shown on the page
            self.controls.clear()
            with self.controls:
                error_box(f"The probe cannot load this run: {error}", "Train it again, or choose another run.")
            return
        self.controls.clear()
        with self.controls:
            for spec in specs:
                view = CONTROL_VIEWS[spec["kind"]](spec, partial(self._set, spec["name"]))
                self.plane = view.plane or self.plane
        await self._update()

    def _set(self, name: str, value: Any) -> None:
        self.values[name] = value
        ui.timer(0.0, self._update, once=True)

    async def _update(self) -> None:
        if self._is_busy:
            self._has_changed = True
            return
        self._is_busy = True
        try:
            await self._evaluate()
        finally:
            self._is_busy = False
        if self._has_changed:
            self._has_changed = False
            await self._update()

    async def _evaluate(self) -> None:
        started = time.perf_counter()
        try:
            answers = await self.library.probes.run(worker.evaluate, self.probe, self.run, dict(self.values))
        except Exception as error:  # a value outside the limits or an error of the probe
            self.errors.clear()
            with self.errors:
                error_box(f"{error}.".replace("..", "."))
            return
        self.errors.clear()
        self.answers.show(answers, self.plane)
        self.duration.text = f"computed in {1000 * (time.perf_counter() - started):.0f} ms"
