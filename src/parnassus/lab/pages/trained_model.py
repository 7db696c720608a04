"""The forms of a trained model: the flags of `sample`, `predict` and `evaluate`, with the equivalent commands."""

import asyncio
from typing import Any

from parnassus.atlas.declarations import Entry
from parnassus.lab.addresses import file_address
from parnassus.lab.fields import add_field
from parnassus.lab.forms import FormField, Value, form_fields, verb_command
from parnassus.lab.frame import copyable_text, error_box
from parnassus.lab.library import Library, modification_time
from parnassus.lab.tags import button, tag, text_element
from parnassus.runs import RunFolder, command_for

TITLES = {
    "sample": "Draw samples",
    "predict": "Predict for new input",
    "evaluate": "Evaluate on other data, or over episodes",
}


def add_trained_model(library: Library, folder: RunFolder, entry: Entry) -> None:
    """Add a form for each verb that the experiment supports for its trained runs."""
    if entry.verbs:
        tag("h2", "Use the trained model")
    for verb in entry.verbs:
        with tag("section", aria_label=TITLES[verb]):
            VerbForm(library, folder, entry, verb).show()


class VerbForm:
    """The flags of a verb as fields, with the equivalent command; samples can be drawn from the page."""

    def __init__(self, library: Library, folder: RunFolder, entry: Entry, verb: str) -> None:
        self.library, self.folder, self.verb = library, folder, verb
        options = library.sample_fields if verb == "sample" else []
        self.fields: list[FormField] = [*form_fields(entry.verb_settings[verb]), *options]
        self.controls: dict[str, Any] = {}

    def show(self) -> None:
        tag("h3", TITLES[self.verb])
        with tag("div", classes="form").style("margin-top: .6rem"):
            for field in self.fields:
                self.controls[field.name] = add_field(field, self._update)
        self.command = copyable_text("", f"{self.verb}-command", "Equivalent command")
        if self.verb == "sample":
            with tag("div", classes="row").style("margin-bottom: .6rem"):
                self.button = button(TITLES["sample"], self._draw, small=True)
                self.state = text_element("span", "", "kicker")
            self.result = tag("div", role="region", aria_label="Samples", aria_live="polite")
        self._update()

    def _read(self) -> dict[str, Value]:
        """All values; raises ValueError at the first invalid one."""
        return {field.name: field.read(self.controls[field.name].value) for field in self.fields}

    def _update(self, *_: object) -> None:
        """Show the equivalent command."""
        try:
            arguments = verb_command(self.verb, self.folder.path.name, self.fields, self._read())
        except ValueError:
            return  # the field shows the error
        self.command.text = command_for(self.folder, self.verb, *arguments[2:])

    async def _draw(self) -> None:
        """Draw samples in a separate process and show their figure or text."""
        self.result.clear()
        try:
            values = self._read()
        except ValueError as error:
            with self.result:
                error_box(f"{error}.", "Correct this field, then draw again.")
            return
        self.button.disable()
        self.state.text = "Drawing…"
        path = str(self.folder.path.absolute())  # a name could be read as a flag or as another run
        job = self.library.jobs.start(verb_command(self.verb, path, self.fields, values))
        try:
            while not job.is_finished:
                await asyncio.sleep(0.1)
        finally:
            self.button.enable()
            self.state.text = ""
        with self.result:
            if job.process.returncode:
                error_box(f"No samples were drawn: {job.failure()}")
            else:
                self._add_samples(f"seed-{values['seed']}", job.started_at)

    def _add_samples(self, name: str, started_at: float) -> None:
        """Show the text or the figure that was written since `started_at`."""
        text, figure = (self.folder.path / "samples" / f"{name}.{ending}" for ending in ("txt", "svg"))
        if modification_time(text) >= 1e9 * started_at:
            tag("pre", text.read_text(encoding="utf-8"), "command")
        elif modification_time(figure) >= 1e9 * started_at:
            source = f"{file_address(self.folder.path.name, 'samples', figure.name)}?v={modification_time(figure)}"
            with tag("figure", classes="figure"):
                tag("img", src=source, alt=f"Samples, {name.replace('-', ' ')}")
        else:
            tag("p", "There are no samples: this model reads its input in a terminal.", "kicker")
