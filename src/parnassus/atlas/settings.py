"""Settings of experiments: kind, limits and choices, parsed from annotations without importing the file."""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import inf, isfinite
from pathlib import Path
from typing import Literal

from parnassus.errors import UserError
from parnassus.setting_types import AtLeast, Between, BuiltIn, GreaterThan, StrictlyBetween

PACKAGE = Path(__file__).parent.parent
SettingKind = Literal["int", "float", "bool", "choice", "name", "text", "other"]


@dataclass(frozen=True)
class Limits:
    """The interval of valid numbers; `is_open` excludes its finite ends."""

    low: float = -inf
    high: float = inf
    is_open: bool = False

    def violation(self, value: float) -> str | None:
        """The rule that `value` violates, as the end of a sentence; None if it is valid."""
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return f"must be between −2⁶³ and 2⁶³ − 1; got {value}"
        if self.low <= value <= self.high and not (self.is_open and isfinite(value) and value in (self.low, self.high)):
            return None
        if isfinite(self.high):
            exclusive = " (exclusive)" if self.is_open else ""
            return f"must be between {self.low:g} and {self.high:g}{exclusive}; got {value}"
        return f"must be {'greater than' if self.is_open else 'at least'} {self.low:g}; got {value}"


UNLIMITED = Limits()


@dataclass(frozen=True)
class SettingType:
    """The values that an annotation accepts."""

    kind: SettingKind
    is_sequence: bool = False
    is_optional: bool = False
    limits: Limits = UNLIMITED
    choices: tuple[str, ...] = ()  # all valid values of a choice; suggested values of a name


@dataclass(frozen=True)
class Setting:
    """A field of a dataclass: a command-line flag and a form field. Annotation and default are source text."""

    name: str
    annotation: str
    default: str
    help: str

    @property
    def flag(self) -> str:
        return flag_name(self.name)

    @cached_property
    def type(self) -> SettingType:
        return parse_annotation(self.annotation)

    @cached_property
    def default_value(self) -> object:
        return ast.literal_eval(self.default)

    def violation(self, value: object) -> str | None:
        """The rule that `value` violates, as the end of a sentence; None if it is valid."""
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, int | float) and (broken := self.type.limits.violation(each)):
                return broken
        return None

    def accepts(self, value: object) -> bool:
        """Whether `value` has the type of the setting, within its limits and choices; "other" types accept all."""
        kind = self.type
        if kind.is_sequence and isinstance(value, tuple):
            return all(_has_kind(each, kind) for each in value) and self.violation(value) is None
        if value is None:
            return kind.is_optional or kind.kind == "other"
        return not kind.is_sequence and _has_kind(value, kind) and self.violation(value) is None


def _has_kind(value: object, kind: SettingType) -> bool:
    match kind.kind:
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "bool":
            return isinstance(value, bool)
        case "choice":
            return value in kind.choices
        case "name" | "text":
            return isinstance(value, str)
        case "other":
            return True


class SettingError(UserError):
    """A setting is outside the limits of its type; the message names the flag, the limits and the value."""


def check_limits(settings: Iterable[Setting], values: object) -> None:
    """Raise SettingError for the first attribute of `values` that is outside the limits of its setting."""
    for setting in settings:
        violation = setting.violation(getattr(values, setting.name))
        if violation is not None:
            raise SettingError(f"{setting.flag} {violation} ({setting.help})")


def flag_name(name: str) -> str:
    """The command-line flag of the setting `name`."""
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
    """The type described by the source text of an annotation."""
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
    """The annotated type aliases defined in `setting_types.py`, by name."""
    tree = ast.parse((PACKAGE / "setting_types.py").read_text(encoding="utf-8"))
    return {
        node.target.id: node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }


def _marker(node: ast.expr) -> object:
    """The constraint in an expression such as `AtLeast(2)`, parsed without executing it."""
    makers = (AtLeast, Between, BuiltIn, GreaterThan, StrictlyBetween)
    by_name: dict[str, Callable[..., object]] = {maker.__name__: maker for maker in makers}
    match node:
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in by_name:
            return by_name[name](*map(ast.literal_eval, arguments))
    return None


def _add_constraint(found: SettingType, marker: object) -> SettingType:
    match marker:
        case GreaterThan(low) if found.kind == "int":
            return replace(found, limits=Limits(low + 1))  # the message is then "at least 1"
        case GreaterThan(low):
            return replace(found, limits=Limits(low, is_open=True))
        case AtLeast(low):
            return replace(found, limits=Limits(low))
        case Between(low, high) | StrictlyBetween(low, high):
            return replace(found, limits=Limits(low, high, is_open=isinstance(marker, StrictlyBetween)))
        case BuiltIn():
            return replace(found, kind="name", choices=marker.names)
    return found
