"""Forms: an experiment's settings as fields, what a person typed as values, and those as flags of a command."""

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal, TypeAlias

from parnassus.atlas.reading import Entry, Setting

Kind = Literal["whole", "real", "switch", "maybe", "choice", "words", "wholes", "reals"]
Value: TypeAlias = int | float | bool | str | tuple[float, ...] | None
LONGEST = 200
"""Characters that a field takes."""
ANSWERS = {"yes": True, "no": False}
"""What a switch says that may also be left as the experiment chooses."""


@dataclass(frozen=True)
class Field:
    """One setting: what it may be, what it is unless told, what it means."""

    name: str
    kind: Kind
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    optional: bool = False  # may be left empty
    least: int | None = None  # of whole numbers

    @property
    def label(self) -> str:
        return self.name.replace("_", " ")

    def read(self, given: object) -> Value:
        """The value that a person meant; a sentence says what is wrong with it."""
        if self.kind == "switch":
            if not isinstance(given, bool):
                raise ValueError(f"{self.label} must be on or off")
            return given
        text = "" if given is None else str(given).strip()
        if len(text) > LONGEST:
            raise ValueError(f"{self.label} must be shorter: {LONGEST} characters at most")
        if not text and self.optional:
            return None
        if self.kind in ("choice", "maybe", "words"):
            return self._said(text)
        if self.kind in ("wholes", "reals"):
            words = text.replace(",", " ").split()
            if not words:
                raise ValueError(f"{self.label} must be one or more numbers, such as {self.shown(self.default)}")
            return tuple(self._number(word) for word in words)
        return self._number(text)

    def _said(self, text: str) -> Value:
        if self.kind == "words":
            if not text or text.startswith("-") or not text.isprintable():
                raise ValueError(f"{self.label} must be some words, without a dash before them")
            return text
        known = {choice: choice for choice in self.choices} if self.kind == "choice" else ANSWERS
        if text not in known:
            raise ValueError(f"{self.label} must be one of {', '.join(known)}")
        return known[text]

    def _number(self, text: str) -> float:
        whole = self.kind in ("whole", "wholes")
        plain = text.replace("_", "")
        try:
            number = int(plain) if whole else float(plain)
        except ValueError:
            what = "a whole number" if whole else "a number"
            raise ValueError(f"{self.label} must be {what}, such as {self._example}; got “{text[:30]}”") from None
        if not isfinite(number):
            raise ValueError(f"{self.label} must be finite; got {text}")
        if self.least is not None and number < self.least:
            raise ValueError(f"{self.label} must be at least {self.least}; got {text}")
        return number

    @property
    def _example(self) -> str:
        first = self.default[0] if isinstance(self.default, tuple) and self.default else self.default
        return self.shown(1 if first is None else first)

    def shown(self, value: Value) -> str:
        """A value as it stands in the field."""
        if value is None:
            return ""
        if self.kind == "maybe":
            return "yes" if value else "no"
        if isinstance(value, tuple):
            return " ".join(self.shown(each) for each in value)
        return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)

    def flags(self, value: Value) -> list[str]:
        """The words of the command line that say this value."""
        flag = f"--{self.name.replace('_', '-')}"
        if self.kind == "maybe":
            return [flag, str(value)]
        if isinstance(value, bool):
            return [flag if value else f"--no-{self.name.replace('_', '-')}"]
        if isinstance(value, tuple):
            return [flag, *(self.shown(each) for each in value)]
        return [flag, "None" if value is None else self.shown(value)]


def fields_of(settings: Sequence[Setting], choices: Mapping[str, Collection[str]]) -> list[Field]:
    """A field for each setting that a page may change; text has none that is no choice and no `Words`: a path."""
    return [field for setting in settings if (field := _field(setting, choices)) is not None]


def fields_of_experiment(entry: Entry, choices: Mapping[str, Collection[str]]) -> list[Field]:
    """The fields of an experiment; what a profile sets is among the choices."""
    fields = []
    for field in fields_of(entry.settings, choices):
        preset = [str(values[field.name]) for values in entry.presets.values() if field.name in values]
        wider = tuple(dict.fromkeys([*field.choices, *preset])) if field.kind == "choice" else ()
        fields.append(replace(field, choices=wider))
    return fields


def _field(setting: Setting, known: Mapping[str, Collection[str]]) -> Field | None:
    annotation, optional = setting.annotation, "None" in setting.annotation.split(" | ")
    base = next(part for part in annotation.split(" | ") if part != "None")
    default = ast.literal_eval(setting.default)
    kinds: dict[str, Kind] = {
        "int": "whole",
        "float": "real",
        "bool": "maybe" if optional else "switch",
        "Words": "words",
        "tuple[int, ...]": "wholes",
        "tuple[float, ...]": "reals",
    }
    if base in kinds:
        return Field(setting.name, kinds[base], default, setting.help, optional=optional, least=setting.least)
    choices = _choices(setting, base, known)
    return Field(setting.name, "choice", default, setting.help, choices, optional) if choices else None


def _choices(setting: Setting, base: str, known: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """The names in a Literal; for a known kind of text, its default and those the help speaks of, or else all.

    Where the default is a name of the experiment's own and the help speaks of no other, there is no other.
    """
    if base.startswith("Literal["):
        return tuple(str(choice) for choice in ast.literal_eval(f"({base.removeprefix('Literal[')[:-1]},)"))
    names = known.get(setting.name, ())
    default = str(ast.literal_eval(setting.default))
    mentioned = [name for name in names if name in re.findall(r"\w+", setting.help)]
    others = mentioned or (names if default in names else ())
    return tuple(dict.fromkeys([default, *others])) if names else ()


def profile_values(entry: Entry, profile: str, fields: Sequence[Field]) -> dict[str, Value]:
    """What the fields hold in a profile."""
    preset = entry.presets.get(profile, {})
    return {field.name: preset.get(field.name, field.default) for field in fields}


def command(
    entry: Entry, profile: str, fields: Sequence[Field], values: Mapping[str, Value], presets: Mapping[str, Value]
) -> list[str]:
    """The words after `parnassus`: only what differs from the profile is said."""
    words = ["run", entry.name]
    words += ["--profile", profile] if profile != "laptop" else []
    for field in fields:
        if values[field.name] != presets[field.name]:
            words += field.flags(values[field.name])
    return words


def snippet(entry: Entry, settings: Mapping[str, Value], options: Mapping[str, Value]) -> str:
    """The same run in a program of one's own."""
    experiment = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    machine = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"""from pathlib import Path

from {entry.module} import Experiment
from parnassus.runs import RunFolder
from parnassus.train import Options, Run

run = Run(RunFolder.create(Path("runs"), "mine", {{}}), Options({machine}))
numbers = run.finish(Experiment({experiment})(run))
run.close()
print(numbers, run.folder)
"""
