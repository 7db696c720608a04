"""An experiment: its formulas, a form for its settings with the equivalent command, expected results, and runs."""

import asyncio
import shlex
from collections.abc import Mapping
from typing import Any

from nicegui import events, ui

from parnassus.atlas.declarations import Entry
from parnassus.lab.addresses import probe_address, run_address, subject_address
from parnassus.lab.fields import add_field
from parnassus.lab.forms import FormField, Value, command, profile_values, snippet
from parnassus.lab.frame import copyable_text, error_box, frame, notify
from parnassus.lab.jobs import Job
from parnassus.lab.library import Library
from parnassus.lab.tags import button, formula_text, link, tag, text_element, title_and_text
from parnassus.lab.uploads import FILE_TYPES, MAX_BYTES
from parnassus.report.formatting import display_name
from parnassus.report.page import split_title
from parnassus.runs import RunError


def experiment_page(library: Library, entry: Entry) -> None:
    title, reference = split_title(entry.title)
    subject = library.atlas.subjects.get(entry.room)
    with frame(title, "Subjects"):
        with tag("div", classes="kicker"):
            link(subject.title if subject else entry.room, subject_address(entry.room))
            tag("span", f" · {entry.name}")
        title_and_text(title, reference, entry.text)
        _add_formulas(library, entry)
        Form(library, entry).show()
        _add_expected(entry)
        _add_runs(library, entry)


def _add_formulas(library: Library, entry: Entry) -> None:
    with_formula = [row for row in library.atlas.rows_of(entry) if row.formula]
    with tag("dl", classes="formulas"):
        for row in with_formula[:6]:
            with tag("dt"):
                tag("span", row.title)
                tag("span", f"{row.id} · {row.source}", "kicker")
            formula_text(row.formula, "dd", "formula")


def _add_expected(entry: Entry) -> None:
    tag("h2", "Expected results")
    with tag("div", classes="scroll"), tag("table", classes="plain"), tag("tbody"):
        for name, band in entry.expected.items():
            with tag("tr"):
                tag("td", display_name(name))
                tag("td", str(band) or "no expected range")
                formula_text(band.about, "td")


def _add_runs(library: Library, entry: Entry) -> None:
    runs = [run for run in library.runs() if run.experiment == entry.name][:8]
    probes = library.probes_for(entry.name)
    if probes:
        tag("h2", "Probes of a trained run")
        for probe in probes:
            with tag("p"):
                link(split_title(probe.title)[0], probe_address(probe.name))
    if runs:
        tag("h2", "Runs")
    with tag("ul"):
        for run in runs:
            with tag("li"):
                link(run.name, run_address(run.name))
                tag("span", f"  {run.status}  {run.main_results}", "kicker")


class Form:
    """The settings as fields; every change updates the command or shows an error message."""

    def __init__(self, library: Library, entry: Entry) -> None:
        self.library, self.entry = library, entry
        self.profile = "laptop"
        self.settings, self.option_fields = library.fields(entry), library.option_fields
        self.controls: dict[str, Any] = {}

    @property
    def fields(self) -> list[FormField]:
        return [*self.settings, *self.option_fields]

    def show(self) -> None:
        tag("h2", "Run this experiment")
        profiles = ["laptop", *self.entry.presets]
        labels = {"laptop": "laptop", "smoke": "smoke (seconds)", "gpu": "gpu (needs a GPU)"}
        with tag("div", classes="row"):
            tag("span", "Profile", "kicker", id="profile-label")
            choice = ui.toggle(
                {name: labels.get(name, name) for name in profiles}, value="laptop", on_change=self._set_profile
            )
            choice.props('unelevated aria-labelledby="profile-label"')
        with tag("div", classes="form").style("margin-top: 1rem"):
            for field in self.settings:
                self.controls[field.name] = self._add_control(field)
        self._add_upload()
        with tag("details", classes="more"):
            tag("summary", "Seed, device, precision, threads")
            with tag("div", classes="form").style("margin-top: 1rem"):
                for field in self.option_fields:
                    self.controls[field.name] = self._add_control(field)
        self.errors = tag("div", role="status", aria_live="polite")
        with tag("div", classes="row").style("margin: 1rem 0"):
            self.button = button("Run", self._run, "primary")
            self.state = text_element("span", "", "kicker")
        with tag("div", classes="two"):
            with tag("div"):
                self.command = copyable_text("", "command", "Equivalent command")
            with tag("div"):
                self.snippet = copyable_text("", "snippet", "Equivalent Python program")
        self._update()

    def _add_control(self, field: FormField) -> Any:
        on_change = self._set_tuned if field.name in self.entry.tuned else self._update
        return add_field(field, on_change, self._choices(field))

    def _choices(self, field: FormField) -> tuple[str, ...]:
        return (*field.choices, *self.library.uploads.names) if field.name == "data" else field.choices

    def _add_upload(self) -> None:
        """An upload for experiments with a setting `data`."""
        if "data" not in self.controls:
            return
        with tag("details", classes="more"):
            tag("summary", "Upload a table or an array")
            extensions, limit = ", ".join(FILE_TYPES), f"at most {MAX_BYTES // 2**20} MiB"
            tag("p", f"{extensions}, {limit}: one example per row, with the class in the last column.")
            upload = ui.upload(label="Choose a file", auto_upload=True, max_file_size=MAX_BYTES)
            upload.on_upload(self._receive)
            message = f"The file must have the extension {extensions} and {limit}."
            upload.on("rejected", lambda: notify(message, is_error=True))
            upload.props(f'accept="{",".join(FILE_TYPES)}" flat bordered')

    async def _receive(self, event: events.UploadEventArguments) -> None:
        try:
            name = self.library.uploads.add(event.file.name, await event.file.read())
        except RunError as error:
            notify(f"{error}.", is_error=True)
            return
        control = self.controls["data"]
        control.set_options([*control.options, name] if name not in control.options else control.options, value=name)
        notify(f"{name} is selected as data.")

    def _set_profile(self, event: events.ValueChangeEventArguments[Any]) -> None:
        """Set the fields to the values of a profile."""
        self.profile = event.value if event.value in self.entry.presets else "laptop"
        self._set_values(profile_values(self.entry, self.profile, self.settings, {}))

    def _set_tuned(self) -> None:
        """Set the fields whose defaults are tuned for the value of another one."""
        values, tables = self._presets(), self.entry.tuned.values()
        tuned = {name for table in tables for preset in table.values() for name in preset}
        self._set_values({name: values[name] for name in tuned})

    def _set_values(self, values: Mapping[str, Value]) -> None:
        for field in self.settings:
            if field.name in values:
                value = values[field.name]
                self.controls[field.name].value = value if field.kind == "switch" else field.format(value)
        self._update()

    def _read(self) -> dict[str, Value]:
        """All values; raises ValueError at the first invalid one."""
        values: dict[str, Value] = {}
        for field in self.fields:
            value = self.controls[field.name].value
            upload = self.library.uploads.path(value) if field.name == "data" and isinstance(value, str) else None
            values[field.name] = str(upload) if upload is not None else field.read(value)
        return values

    def _presets(self) -> dict[str, Value]:
        choices = {name: self.controls[name].value for name in self.entry.tuned}
        return profile_values(self.entry, self.profile, self.settings, choices) | {
            each.name: each.default for each in self.option_fields
        }

    def _update(self, *_: object) -> None:
        """Show the command and the program that are equivalent to the form."""
        try:
            values, presets = self._read(), self._presets()
        except ValueError:
            return  # the field shows the error
        arguments = command(self.entry, self.profile, self.fields, values, presets)
        self.command.text = shlex.join(["parnassus", *arguments])
        changed = {each.name: values[each.name] for each in self.settings if values[each.name] != each.default}
        options = {each.name: values[each.name] for each in self.option_fields if values[each.name] != each.default}
        self.snippet.text = snippet(self.entry, changed, options)

    async def _run(self) -> None:
        self.errors.clear()
        try:
            arguments = command(self.entry, self.profile, self.fields, self._read(), self._presets())
        except ValueError as error:
            with self.errors:
                error_box(f"{error}.", "Correct this field, then start the run again.")
            return
        self.button.disable()
        self.state.text = "Starting…"
        try:
            await self._open_run(self.library.jobs.start(arguments))
        finally:
            self.button.enable()
            self.state.text = ""

    async def _open_run(self, job: Job) -> None:
        """Open the page of the run as soon as its folder exists; show the error otherwise."""
        name, message = await wait_for_folder(job)
        if name is not None:
            ui.navigate.to(run_address(name))
            return
        with self.errors:
            error_box(f"The run did not start: {message}", "Change the settings, then start it again.")


async def wait_for_folder(job: Job) -> tuple[str | None, str]:
    """The name of the run that a process created, or its error message."""
    while True:
        folder = await asyncio.to_thread(lambda: job.folder)
        if folder is not None:
            return folder.path.name, ""
        if job.is_finished:
            return None, job.failure()
        await asyncio.sleep(0.1)
