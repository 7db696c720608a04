"""The one reader of settings: annotations as kinds, limits and choices, without importing the file that has them."""

import ast
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import inf, isfinite
from pathlib import Path
from typing import Literal

from parnassus.setting_types import AtLeast, Between, BuiltIn, GreaterThan

PACKAGE = Path(__file__).parent.parent
Kind = Literal["int", "float", "bool", "choice", "name", "text", "other"]


@dataclass(frozen=True)
class Limits:
    """The interval that numbers must lie in; `is_open` excludes its lower end."""

    low: float = -inf
    high: float = inf
    is_open: bool = False

    def violation(self, value: float) -> str | None:
        """The rule that `value` breaks, as the end of a sentence; None if it breaks none."""
        too_low = value <= self.low if self.is_open else value < self.low
        if not too_low and value <= self.high:
            return None
        if isfinite(self.high):
            return f"must be between {self.low:g} and {self.high:g}; got {value}"
        return f"must be {'greater than' if self.is_open else 'at least'} {self.low:g}; got {value}"


UNLIMITED = Limits()


@dataclass(frozen=True)
class SettingType:
    """What an annotation accepts."""

    kind: Kind
    is_sequence: bool = False
    is_optional: bool = False
    limits: Limits = UNLIMITED
    choices: tuple[str, ...] = ()  # all that a choice accepts; what is offered for a name


@dataclass(frozen=True)
class Setting:
    """A field of a dataclass: a flag of the command line, a field of a form. Annotation and default are source text."""

    name: str
    annotation: str
    default: str
    help: str

    @property
    def flag(self) -> str:
        return flag_of(self.name)

    @cached_property
    def type(self) -> SettingType:
        return parse_annotation(self.annotation)

    @cached_property
    def default_value(self) -> object:
        return ast.literal_eval(self.default)

    def violation(self, value: object) -> str | None:
        """The rule that a value breaks, as the end of a sentence; None if it breaks none."""
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, int | float) and (broken := self.type.limits.violation(each)):
                return broken
        return None


def flag_of(name: str) -> str:
    """The flag of the command line that sets `name`."""
    return f"--{name.replace('_', '-')}"


TYPES = {
    "int": SettingType("int"),
    "float": SettingType("float"),
    "bool": SettingType("bool"),
    "Text": SettingType("text"),
    "UnitInterval": SettingType("float", limits=Limits(0, 1)),
}
LIMITED = {"Positive": GreaterThan(0), "NonNegative": AtLeast(0)}


def parse_annotation(annotation: str) -> SettingType:
    """The type that an annotation stands for, read from its source text."""
    return _parse(ast.parse(annotation, mode="eval").body)


def _parse(node: ast.expr) -> SettingType:
    found = SettingType("other")
    match node:
        case ast.Name(id=name) if name in TYPES:
            found = TYPES[name]
        case ast.Name(id=name) if name in _data_types():
            found = _parse(_data_types()[name])
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            found = replace(_parse(left), is_optional=True)
        case ast.Subscript(
            value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[element, ast.Constant()])
        ):  # tuple[X, ...]
            found = replace(_parse(element), is_sequence=True)
        case ast.Subscript(value=ast.Name(id=name), slice=number) if name in LIMITED:
            found = _add_constraint(_parse(number), LIMITED[name])
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            values = ast.literal_eval(choices)
            found = SettingType("choice", choices=values if isinstance(values, tuple) else (values,))
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[base, *extras])):
            found = _parse(base)
            for extra in extras:
                found = _add_constraint(found, _marker(extra))
    return found


@cache
def _data_types() -> dict[str, ast.expr]:
    """The types that `setting_types.py` defines for names of data, by name."""
    tree = ast.parse((PACKAGE / "setting_types.py").read_text(encoding="utf-8"))
    return {
        node.target.id: node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }


def _marker(node: ast.expr) -> object:
    """`AtLeast(2)`, read and not executed."""
    makers = {"AtLeast": AtLeast, "GreaterThan": GreaterThan, "Between": Between, "BuiltIn": BuiltIn}
    match node:
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in makers:
            return makers[name](*map(ast.literal_eval, arguments))
    return None


def _add_constraint(found: SettingType, marker: object) -> SettingType:
    match marker:
        case GreaterThan(low) if found.kind == "int":
            return replace(found, limits=Limits(low + 1))  # so that the sentence is "at least 1"
        case GreaterThan(low):
            return replace(found, limits=Limits(low, is_open=True))
        case AtLeast(low):
            return replace(found, limits=Limits(low))
        case Between(low, high):
            return replace(found, limits=Limits(low, high))
        case BuiltIn():
            return replace(found, kind="name", choices=marker.names)
    return found
