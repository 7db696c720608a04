"""An experiment: its formulas, where it stands in the sources, a form, and the command that the form stands for."""

import asyncio
import shlex
from functools import partial
from typing import Any

from nicegui import events, ui

from parnassus.atlas.reading import Entry
from parnassus.lab.addresses import probe_address, run_address, subject_address
from parnassus.lab.forms import ANSWERS, Field, Value, command, profile_values, snippet
from parnassus.lab.frame import copyable, frame, problem, say
from parnassus.lab.jobs import Job
from parnassus.lab.library import Library
from parnassus.lab.subjects import subject_of
from parnassus.lab.tags import button, link, live, maths, tag, words
from parnassus.lab.uploads import KINDS, LARGEST
from parnassus.report.numbers import number
from parnassus.report.page import heading
from parnassus.runs import RunError


def experiment_page(library: Library, entry: Entry) -> None:
    title, where = heading(entry.title)
    subject = subject_of(entry.room)
    with frame(title, "Ascent"):
        with tag("div", classes="kicker"):
            link(subject.title if subject else entry.room, subject_address(entry.room))
            tag("span", f" · {entry.name}")
        tag("h1", title)
        tag("p", where, "where")
        for paragraph in entry.text.split("\n\n") if entry.text else ():
            maths(paragraph, "p")
        _formulas(library, entry)
        Form(library, entry).show()
        _expected(entry)
        _earlier(library, entry)


def _formulas(library: Library, entry: Entry) -> None:
    covered = [library.atlas.rows[row] for row in entry.covers if row in library.atlas.rows]
    shown = [row for row in covered if row.formula]
    with tag("dl", classes="formulas"):
        for row in shown[:6]:
            with tag("dt"):
                tag("span", row.title)
                tag("span", f"{row.id} · {row.source}", "kicker")
            maths(row.formula, "dd", "formula")


def _expected(entry: Entry) -> None:
    tag("h2", "What a good run gives")
    with tag("div", classes="scroll"), tag("table", classes="plain"), tag("tbody"):
        for name, band in entry.expected.items():
            with tag("tr"):
                tag("td", words(name))
                tag("td", str(band) or "reported")
                maths(band.about, "td")


def _earlier(library: Library, entry: Entry) -> None:
    earlier = [run for run in library.runs() if run.experiment == entry.name][:8]
    probes = library.probes_for(entry.name)
    if probes:
        tag("h2", "Touch a trained run")
        for probe in probes:
            with tag("p"):
                link(heading(probe.title)[0], probe_address(probe.name))
    if earlier:
        tag("h2", "Runs so far")
    with tag("ul"):
        for run in earlier:
            with tag("li"):
                link(run.name, run_address(run.name))
                numbers = " · ".join(f"{words(name)} {number(value)}" for name, value in list(run.result.items())[:3])
                tag("span", f"  {run.status}  {numbers}", "kicker")


class Form:
    """The settings as fields; every change is read, and either said in a sentence or put into the command."""

    def __init__(self, library: Library, entry: Entry) -> None:
        self.library, self.entry = library, entry
        self.profile = "laptop"
        self.settings, self.machine = library.fields(entry), library.machine
        self.controls: dict[str, Any] = {}

    @property
    def fields(self) -> list[Field]:
        return [*self.settings, *self.machine]

    def show(self) -> None:
        tag("h2", "Run it")
        profiles = ["laptop", *self.entry.presets]
        about = {"laptop": "laptop", "smoke": "smoke (seconds)", "gpu": "gpu (wants one)"}
        with tag("div", classes="row"):
            tag("span", "Profile", "kicker", id="profile-label")
            choice = ui.toggle(
                {name: about.get(name, name) for name in profiles}, value="laptop", on_change=self._preset
            )
            choice.props('unelevated aria-labelledby="profile-label"')
        with tag("div", classes="form").style("margin-top: 1rem"):
            for field in self.settings:
                self.controls[field.name] = self._control(field)
        self._upload()
        with tag("details", classes="more"):
            tag("summary", "The machine: seed, device, precision, threads")
            with tag("div", classes="form").style("margin-top: 1rem"):
                for field in self.machine:
                    self.controls[field.name] = self._control(field)
        self.notice = tag("div", role="status", aria_live="polite")
        with tag("div", classes="row").style("margin: 1rem 0"):
            self.button = button("Run", self._run, "primary")
            self.waiting = live("span", "", "kicker")
        with tag("div", classes="two"):
            with tag("div"):
                self.command = copyable("", "command", "The same from a terminal")
            with tag("div"):
                self.snippet = copyable("", "snippet", "The same in a program of yours")
        self._changed()

    def _control(self, field: Field) -> Any:
        """The element for a field; it says at once what is wrong with a value."""
        name, given = field.label, field.shown(field.default)
        control: Any
        if field.kind == "switch":
            control = ui.switch(name, value=bool(field.default), on_change=self._changed).tooltip(field.help)
            return control
        if field.kind == "choice":
            control = ui.select(list(self._choices(field)), label=name, value=given, on_change=self._changed)
        elif field.kind == "maybe":
            answers = {"": "as it chooses"} | {answer: answer for answer in ANSWERS}
            control = ui.select(answers, label=name, value=given, on_change=self._changed)
        else:
            check = partial(_objection, field)
            control = ui.input(name, value=given, on_change=self._changed, validation=check)
        if field.kind in ("whole", "real"):
            control.props("inputmode=decimal")
        control.props["hint"] = field.help
        control.props("outlined dense hide-bottom-space debounce=120")
        return control

    def _choices(self, field: Field) -> tuple[str, ...]:
        return (*field.choices, *self.library.uploads.names) if field.name == "data" else field.choices

    def _upload(self) -> None:
        """A file of the person's own, for an experiment that takes data."""
        if "data" not in self.controls:
            return
        with tag("details", classes="more"):
            tag("summary", "Use a table or an array of your own")
            ending = ", ".join(KINDS)
            tag("p", f"A file that ends in {ending}, up to {LARGEST // 2**20} MiB: one example a row, its class last.")
            upload = ui.upload(label="Choose a file", auto_upload=True, max_file_size=LARGEST, on_upload=self._take)
            upload.on(
                "rejected",
                lambda: say(f"It must end in {ending} and be smaller than {LARGEST // 2**20} MiB.", bad=True),
            )
            upload.props(f'accept="{",".join(KINDS)}" flat bordered')

    async def _take(self, event: events.UploadEventArguments) -> None:
        try:
            name = self.library.uploads.add(event.file.name, await event.file.read())
        except RunError as error:
            say(f"{error}.", bad=True)
            return
        control = self.controls["data"]
        control.set_options([*control.options, name] if name not in control.options else control.options, value=name)
        say(f"{name} is ready: it was chosen as data.")

    def _preset(self, event: events.ValueChangeEventArguments[Any]) -> None:
        """Fill the fields with what a profile says."""
        self.profile = event.value if event.value in self.entry.presets else "laptop"
        for name, value in profile_values(self.entry, self.profile, self.settings).items():
            field = next(each for each in self.settings if each.name == name)
            self.controls[name].value = value if field.kind == "switch" else field.shown(value)
        self._changed()

    def _read(self) -> dict[str, Value]:
        """Every value, checked; the first that is wrong says so."""
        values: dict[str, Value] = {}
        for field in self.fields:
            given = self.controls[field.name].value
            own = self.library.uploads.path(given) if field.name == "data" and isinstance(given, str) else None
            values[field.name] = str(own) if own is not None else field.read(given)
        return values

    def _presets(self) -> dict[str, Value]:
        return profile_values(self.entry, self.profile, self.settings) | {
            each.name: each.default for each in self.machine
        }

    def _changed(self, *_: object) -> None:
        """Show the command and the snippet that the form stands for now."""
        try:
            values, presets = self._read(), self._presets()
        except ValueError:
            return  # the field itself says what is wrong
        words_ = command(self.entry, self.profile, self.fields, values, presets)
        self.command.text = shlex.join(["parnassus", *words_])
        changed = {each.name: values[each.name] for each in self.settings if values[each.name] != each.default}
        options = {each.name: values[each.name] for each in self.machine if values[each.name] != each.default}
        self.snippet.text = snippet(self.entry, changed, options)

    async def _run(self) -> None:
        self.notice.clear()
        try:
            words_ = command(self.entry, self.profile, self.fields, self._read(), self._presets())
        except ValueError as error:
            with self.notice:
                problem(f"{error}.", "Correct the field, then run again.")
            return
        self.button.disable()
        self.waiting.text = "Starting…"
        try:
            await self._follow(self.library.jobs.start(words_))
        finally:
            self.button.enable()
            self.waiting.text = ""

    async def _follow(self, job: Job) -> None:
        """Go to the page of the run when there is one; say why when there is none."""
        name, sentence = await folder_of(job)
        if name is not None:
            ui.navigate.to(run_address(name))
            return
        with self.notice:
            problem(f"It did not start: {sentence}", "Change the settings, then run again.")


async def folder_of(job: Job) -> tuple[str | None, str]:
    """The name of the run that a process began, or what it said instead."""
    while True:
        folder = await asyncio.to_thread(lambda: job.folder)
        if folder is not None:
            return folder.path.name, ""
        if job.over:
            return None, job.failure()
        await asyncio.sleep(0.1)


def _objection(field: Field, value: object) -> str | None:
    try:
        field.read(value)
    except ValueError as error:
        return str(error)
    return None
