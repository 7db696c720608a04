"""Flags of experiments and of trained runs, with the help texts of the index, and usage lines."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import field, make_dataclass
from typing import Annotated, TypeVar, get_type_hints

from tyro.conf import arg

from parnassus.atlas.settings import Setting

Declared = TypeVar("Declared")


def flags_of(declared: Declared, settings: Iterable[Setting]) -> object:
    """An object with the fields of the dataclass `declared`, from which tyro derives flags without reading its source.

    `from_flags` converts it back.
    """
    kind = type(declared)
    hints = get_type_hints(kind, include_extras=True)
    described = [
        (each.name, Annotated[hints[each.name], arg(help=each.help)], field(default=getattr(declared, each.name)))
        for each in settings
    ]
    text = kind.__doc__ or ""
    is_generated = text.startswith(f"{kind.__name__}(")  # by `dataclass`
    namespace = {} if is_generated else {"__doc__": text}
    flags: object = make_dataclass(kind.__name__, described, namespace=namespace, frozen=True)()
    return flags


def from_flags(kind: type[Declared], flags: object) -> Declared:
    """The dataclass `kind` with the values of the flags."""
    return kind(**vars(flags))


def is_help_requested(arguments: Sequence[str]) -> bool:
    return bool({"-h", "--help"} & set(arguments))


def print_usage_line(line: str, arguments: Sequence[str]) -> int:
    """Print how to call a verb, as an error unless help was requested; returns the exit code."""
    asked = is_help_requested(arguments)
    print(line, file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2
