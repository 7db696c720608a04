"""Forms: conversion of settings to fields, of input text to values, and of values to command-line flags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, TypeAlias, cast

from parnassus.atlas.declarations import Entry
from parnassus.atlas.settings import UNLIMITED, Limits, Setting, flag_name
from parnassus.report.formatting import display_name

FieldKind = Literal["int", "float", "switch", "optional switch", "choice", "text", "texts", "ints", "floats"]
Value: TypeAlias = int | float | bool | str | tuple[float, ...] | tuple[str, ...] | None
MAX_LENGTH = 200
"""Maximum number of characters of a field."""
ANSWERS = {"yes": True, "no": False}
"""Options of an optional switch; an empty field selects the default of the experiment."""


@dataclass(frozen=True)
class FormField:
    """One setting: its kind, default, help text and limits."""

    name: str
    kind: FieldKind
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    optional: bool = False  # may be left empty
    limits: Limits = UNLIMITED  # of numbers

    @property
    def label(self) -> str:
        return display_name(self.name)

    def read(self, given: object) -> Value:
        """Convert the input of the field to a value; raises ValueError if it is not valid."""
        if self.kind == "switch":
            if not isinstance(given, bool):
                raise ValueError(f"{self.label} must be on or off")
            return given
        text = "" if given is None else str(given).strip()
        if len(text) > MAX_LENGTH:
            raise ValueError(f"{self.label} must have at most {MAX_LENGTH} characters; got {len(text)}")
        if not text and self.optional:
            return None
        if self.kind in ("choice", "optional switch", "text"):
            return self._read_text(text)
        if self.kind == "texts":
            return tuple(str(self._read_text(part.strip())) for part in text.split(",") if part.strip())
        if self.kind in ("ints", "floats"):
            words = text.replace(",", " ").split()
            if not words:
                raise ValueError(f"{self.label} must be one or more numbers, such as {self.format(self.default)}")
            return tuple(self._read_number(word) for word in words)
        return self._read_number(text)

    def _read_text(self, text: str) -> Value:
        if self.kind in ("text", "texts"):
            if not text or text.startswith("-") or not text.isprintable():
                raise ValueError(f"{self.label} must be text that does not begin with a dash")
            return text
        known = {choice: choice for choice in self.choices} if self.kind == "choice" else ANSWERS
        if text not in known:
            raise ValueError(f"{self.label} must be one of {', '.join(known)}")
        return known[text]

    def _read_number(self, text: str) -> float:
        is_int = self.kind in ("int", "ints")
        plain = text.replace("_", "")
        try:
            number = int(plain) if is_int else float(plain)
        except ValueError:
            what = "an integer" if is_int else "a number"
            raise ValueError(f"{self.label} must be {what}, such as {self._example}; got “{text[:30]}”") from None
        if not isfinite(number):
            raise ValueError(f"{self.label} must be finite; got {text}")
        violation = self.limits.violation(number)
        if violation is not None:
            raise ValueError(f"{self.label} {violation}")
        return number

    @property
    def _example(self) -> str:
        first = self.default[0] if isinstance(self.default, tuple) and self.default else self.default
        return self.format(1 if first is None else first)

    def format(self, value: Value) -> str:
        """A value as the text of the field."""
        if value is None:
            return ""
        if self.kind == "optional switch":
            return "yes" if value else "no"
        if isinstance(value, tuple):
            return (", " if self.kind == "texts" else " ").join(map(self.format, value))
        return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)

    def flags(self, value: Value) -> list[str]:
        """The command-line arguments that set this value."""
        flag = flag_name(self.name)
        if self.kind == "optional switch":
            return [flag, str(value)]
        if isinstance(value, bool):
            return [flag if value else flag_name(f"no_{self.name}")]
        if isinstance(value, tuple):
            return [flag, *(self.format(each) for each in value)]
        return [flag, "None" if value is None else self.format(value)]


def form_fields(settings: Sequence[Setting]) -> list[FormField]:
    """The fields of all settings that a page may change; strings are included only if they are not paths (`Text`)."""
    return [field for setting in settings if (field := _field(setting)) is not None]


def _field(setting: Setting) -> FormField | None:
    accepted, default = setting.type, cast("Value", setting.default_value)
    kinds: dict[tuple[str, bool], FieldKind] = {
        ("int", False): "int",
        ("int", True): "ints",
        ("float", False): "float",
        ("float", True): "floats",
        ("bool", False): "optional switch" if accepted.is_optional else "switch",
        ("choice", False): "choice",
        ("name", False): "choice",
        ("text", False): "text",
        ("text", True): "texts",
    }
    kind = kinds.get((accepted.kind, accepted.is_sequence))
    if kind is None:
        return None
    choices = accepted.choices if default is None else tuple(dict.fromkeys([str(default), *accepted.choices]))
    return FormField(
        name=setting.name,
        kind=kind,
        default=default,
        help=setting.help,
        choices=choices if kind == "choice" else (),
        optional=accepted.is_optional,
        limits=accepted.limits,
    )


def profile_values(
    entry: Entry, profile: str, fields: Sequence[FormField], choices: Mapping[str, Value]
) -> dict[str, Value]:
    """The values of the fields in a profile, with those tuned for the `choices` of other settings."""
    preset = entry.preset(profile, choices)
    return {field.name: preset.get(field.name, field.default) for field in fields}


def command(
    entry: Entry, profile: str, fields: Sequence[FormField], values: Mapping[str, Value], presets: Mapping[str, Value]
) -> list[str]:
    """The arguments after `parnassus`, with flags for the values that differ from the profile."""
    words = ["run", entry.name]
    words += ["--profile", profile] if profile != "laptop" else []
    return [*words, *_changed_flags(fields, values, presets)]


def verb_command(verb: str, run: str, fields: Sequence[FormField], values: Mapping[str, Value]) -> list[str]:
    """The arguments after `parnassus` that apply a verb to a trained run, with flags for changed values."""
    inputs = ["INPUT"] if verb == "predict" else []
    return [verb, run, *inputs, *_changed_flags(fields, values, {field.name: field.default for field in fields})]


def _changed_flags(
    fields: Sequence[FormField], values: Mapping[str, Value], defaults: Mapping[str, Value]
) -> list[str]:
    changed = (field for field in fields if values[field.name] != defaults[field.name])
    return [word for field in changed for word in field.flags(values[field.name])]


def snippet(entry: Entry, settings: Mapping[str, Value], options: Mapping[str, Value]) -> str:
    """A Python program that executes the same run."""
    experiment = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    machine = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"""from pathlib import Path

from {entry.module} import Experiment
from parnassus.runs import RunFolder
from parnassus.train import Options, Run

run = Run(RunFolder.create(Path("runs"), "my-run", {{}}), Options({machine}))
results = run.finish(Experiment({experiment})(run))
run.close()
print(results, run.folder)
"""
