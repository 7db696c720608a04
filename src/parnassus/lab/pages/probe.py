"""A probe: controls on one side, the answer on the other, as fast as a person moves."""

import time
from typing import Any

from nicegui import ui

from parnassus.atlas.reading import Probe
from parnassus.lab import worker
from parnassus.lab.addresses import experiment_address, probe_address, run_address, subject_address
from parnassus.lab.answers import Answers
from parnassus.lab.components import Pad, PlaneView, Range, SpotsView
from parnassus.lab.frame import frame, problem
from parnassus.lab.library import Library
from parnassus.lab.subjects import SUBJECTS, subject_of
from parnassus.lab.tags import button, link, live, maths, tag
from parnassus.report.ink import PALETTE
from parnassus.report.numbers import number
from parnassus.report.page import heading


def probes_page(library: Library) -> None:
    with frame("Probes", "Probes"):
        tag("h1", "Probes")
        tag("p", "Touch a trained model instead of reading about it.", "lead")
        with tag("ul", classes="wide-grid"):
            for room in (subject.room for subject in SUBJECTS):
                for probe in (each for each in library.atlas.probes.values() if each.room == room):
                    _card(library, probe)


def _card(library: Library, probe: Probe) -> None:
    title, where = heading(probe.title)
    with tag("li", classes="card"):
        with tag("h3"):
            link(title, probe_address(probe.name))
        tag("div", where, "kicker")
        maths(probe.text.split("\n\n")[0], "p")
        count = len(library.runs_for(probe))
        ready = f"{count} run{'s' * (count > 1)} to touch" if count else "no trained run yet"
        ready = ready if probe.experiments else "needs no run"
        tag("div", ready, "kicker")


def probe_page(library: Library, probe: Probe, wished: str) -> None:
    library.probes.warm_up()
    title, where = heading(probe.title)
    subject = subject_of(probe.room)
    with frame(title, "Probes"):
        with tag("div", classes="kicker"):
            link(subject.title if subject else probe.room, subject_address(probe.room))
        tag("h1", title)
        tag("p", where, "where")
        for paragraph in probe.text.split("\n\n") if probe.text else ():
            maths(paragraph, "p")
        if not probe.experiments:
            Touch(library, probe, None).show()
            return
        runs = [run.name for run in library.runs_for(probe)]
        if not runs:
            _train_first(probe)
            return
        chosen = wished if wished in runs else runs[0]
        _choose_run(probe, runs, chosen)
        folder = library.run(chosen)
        if folder is not None:
            Touch(library, probe, str(folder.path)).show()


def _train_first(probe: Probe) -> None:
    with tag("div", classes="empty"):
        tag("p", "There is no trained run to touch yet. Train one; the laptop profile takes a minute or less:")
        with tag("ul"):
            for name in probe.experiments:
                with tag("li"):
                    link(name, experiment_address(name))


def _choose_run(probe: Probe, runs: list[str], chosen: str) -> None:
    def go(event: Any) -> None:
        if event.value in runs:
            ui.navigate.to(probe_address(probe.name, event.value))

    with tag("div", classes="row").style("margin-bottom: 1rem"):
        choice = ui.select(runs[:100], value=chosen, label="Run", on_change=go)
        choice.props("outlined dense").style("min-width: 18rem; max-width: 100%")
        link("its page", run_address(chosen))


class Touch:
    """The controls and the answer. While one question is computed, only the latest of the next ones is kept."""

    def __init__(self, library: Library, probe: Probe, run: str | None) -> None:
        self.library, self.probe, self.run = library, probe, run
        self.values: dict[str, Any] = {}
        self.plane: PlaneView | None = None
        self._busy = self._again = False

    def show(self) -> None:
        with tag("div", classes="touch"):
            with tag("div", classes="controls card") as self.controls:
                ui.spinner(size="lg")
                tag("div", "Waking up the model: the first time takes a few seconds.", "kicker")
            with tag("div"):
                self.trouble = tag("div")
                self.answers = Answers()
                self.took = live("div", "", "kicker")
        ui.timer(0.05, self._open, once=True)

    async def _open(self) -> None:
        try:
            specs = await self.library.probes.do(worker.open_probe, self.probe, self.run)
        except Exception as error:  # whatever it is, the person should read it here
            self.controls.clear()
            with self.controls:
                problem(f"This run cannot be touched: {error}", "Train it again, or choose another run.")
            return
        self.controls.clear()
        with self.controls:
            for spec in specs:
                self._control(spec)
        await self._ask()

    def _control(self, spec: dict[str, Any]) -> None:
        name = spec["name"]
        with tag("div", classes="control"):
            if spec["kind"] in ("whole", "real"):
                self._slider(name, spec)
            elif spec["kind"] == "pick":
                self._pick(name, spec)
            elif spec["kind"] == "drawing":
                self._drawing(name, spec)
            elif spec["kind"] == "typed":
                self._typed(name, spec)
            elif spec["kind"] == "points":
                self._points(name, spec)
            else:
                self._point(name, spec)

    def _slider(self, name: str, spec: dict[str, Any]) -> None:
        whole, log = spec["kind"] == "whole", bool(spec.get("log"))
        low, high = (_log10(spec["low"]), _log10(spec["high"])) if log else (spec["low"], spec["high"])
        start = _log10(spec["start"]) if log else spec["start"]

        def moved(place: float) -> None:
            value = min(spec["high"], max(spec["low"], 10**place if log else place))
            shown.text = number(int(value) if whole else value, 3)
            self._set(name, int(value) if whole else float(value))

        with tag("div", classes="name"):
            tag("span", spec["about"], id=f"about-{name}")
            shown = live("output", number(spec["start"], 3))
        slider = Range(low, high, start, moved, step=1 if whole else (high - low) / 200)
        slider.props["aria-labelledby"] = f"about-{name}"

    def _pick(self, name: str, spec: dict[str, Any]) -> None:
        options = dict(enumerate(spec["names"]))
        choice = ui.select(
            options, value=spec["start"], label=spec["about"], on_change=lambda event: self._set(name, event.value)
        )
        choice.props("outlined dense")

    def _typed(self, name: str, spec: dict[str, Any]) -> None:
        field = ui.input(spec["about"], value=spec["start"], on_change=lambda event: self._set(name, event.value or ""))
        field.props(f"outlined dense autogrow maxlength={spec['most']} spellcheck=false")

    def _drawing(self, name: str, spec: dict[str, Any]) -> None:
        tag("div", spec["about"], "name")
        label = f"{spec['about']}. Draw with the pointer; with keys: arrows move, space inks, delete clears."
        pad = Pad(spec["shape"], spec["start"], label, lambda values: self._set(name, values))
        empty = [0.0] * len(spec["start"])

        def load(values: list[float]) -> None:
            pad.load(values)
            self._set(name, values)

        with tag("div", classes="row").style("margin-top: .5rem; gap: .3rem"):
            button("Clear", lambda: load(empty), small=True)
            tag("span", "or start from", "kicker")
            for shown, values in spec["examples"]:
                button(shown, lambda values=values: load(values), small=True)

    def _point(self, name: str, spec: dict[str, Any]) -> None:
        tag("div", spec["about"], "name")
        label = f"{spec['about']}. Move the pointer, or use the arrow keys; a click holds the place."
        self.plane = PlaneView(spec["plane"], spec["start"], label, lambda place: self._set(name, place))
        classes = spec["plane"]["classes"]
        if classes and any(len(each) > 2 for each in classes):
            with tag("ul", classes="row").style("margin-top: .5rem; gap: .2rem .8rem; font-size: .85rem"):
                for index, each in enumerate(classes):
                    with tag("li", classes="row").style("gap: .3rem"):
                        colour = PALETTE[index % len(PALETTE)]
                        tag("span").style(f"width: .7rem; height: .7rem; border-radius: 50%; background: {colour}")
                        tag("span", each)
        tag("div", "Move to look, click to hold or let go.", "kicker")

    def _points(self, name: str, spec: dict[str, Any]) -> None:
        tag("div", spec["about"], "name")
        label = f"{spec['about']}. With keys: arrows move a cross, space adds or removes a point there, delete clears."
        places = spec["start"]
        view = SpotsView(spec["plane"], places, label, lambda found: self._set(name, found), most=spec["most"])
        self.plane = view

        def load(values: list[list[float]]) -> None:
            view.load(values)
            self._set(name, values)

        tag("div", "Click to add a point, click on one to remove it, drag to move it.", "kicker")
        with tag("div", classes="row").style("margin-top: .3rem; gap: .3rem"):
            button("Clear", lambda: load([]), small=True)
            button("As at first", lambda: load(places), small=True)

    def _set(self, name: str, value: Any) -> None:
        self.values[name] = value
        ui.timer(0.0, self._ask, once=True)

    async def _ask(self) -> None:
        if self._busy:
            self._again = True
            return
        self._busy = True
        try:
            await self._answer()
        finally:
            self._busy = False
        if self._again:
            self._again = False
            await self._ask()

    async def _answer(self) -> None:
        began = time.perf_counter()
        try:
            answers = await self.library.probes.do(worker.ask, self.probe, self.run, dict(self.values))
        except Exception as error:  # a value out of range, or a model that failed: both are said here
            self.trouble.clear()
            with self.trouble:
                problem(f"{error}.".replace("..", "."))
            return
        self.trouble.clear()
        ways = next((answer for answer in answers if answer["kind"] == "path"), None)
        if ways is not None:
            ways["elsewhere"] = self.plane is not None
        self.answers.show(answers)
        if self.plane is not None and ways is not None:
            self.plane.show(ways)
        self.took.text = f"answered in {1000 * (time.perf_counter() - began):.0f} ms"


def _log10(value: float) -> float:
    from math import log10

    return log10(value)
