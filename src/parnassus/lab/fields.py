"""Elements for the fields of a form, which show an error message for an invalid value."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from parnassus.lab.forms import ANSWERS, FormField


def add_field(field: FormField, on_change: Callable[..., None], choices: Sequence[str] = ()) -> Any:
    """Add the element for a field; `choices` replace those of the field."""
    name, value = field.label, field.format(field.default)
    control: Any
    if field.kind == "switch":
        control = ui.switch(name, value=bool(field.default), on_change=on_change).tooltip(field.help)
        return control
    if field.kind in ("choice", "optional switch"):
        options = list(ANSWERS if field.kind == "optional switch" else choices or field.choices)
        labels = {"": "default"} | {option: option for option in options}
        control = ui.select(labels if field.optional else options, label=name, value=value, on_change=on_change)
    else:
        validation = partial(_validation_message, field)
        control = ui.input(name, value=value, on_change=on_change, validation=validation)
    if field.kind in ("int", "float"):
        control.props("inputmode=decimal")
    control.props["hint"] = field.help
    control.props("outlined dense hide-bottom-space debounce=120")
    return control


def _validation_message(field: FormField, value: object) -> str | None:
    try:
        field.read(value)
    except ValueError as error:
        return str(error)
    return None
