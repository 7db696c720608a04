"""Read claims, errata, experiments, probes and commands from their files; nothing is imported."""

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, Literal

from parnassus.atlas.bands import Band, at_least, at_most, between, no_band
from parnassus.atlas.settings import PACKAGE, Setting

RUN_VERBS = {"Sample": "sample", "Predict": "predict", "Evaluate": "evaluate"}
"""The dataclasses beside `Experiment` that an experiment may declare, and the verb for its runs that each serves."""


@dataclass(frozen=True)
class Mark:
    """A function marked `@claim` or `@erratum`."""

    kind: Literal["claim", "erratum"]
    name: str
    module: str
    ids: tuple[str, ...]
    statement: str
    printed: str = ""
    right: str = ""
    slow: bool = False

    @property
    def room(self) -> str:
        return self.module.split(".")[1]


@dataclass(frozen=True)
class Probe:
    """A function marked `@probe`: an interactive view."""

    name: str
    module: str
    title: str
    text: str
    experiments: tuple[str, ...]  # whose runs it shows; () when it needs none

    @property
    def room(self) -> str:
        return self.module.split(".")[1]


@dataclass(frozen=True)
class Entry:
    """An experiment as its file describes it."""

    name: str
    module: str
    title: str
    text: str
    covers: tuple[str, ...]
    expected: Mapping[str, Band]
    presets: Mapping[str, Mapping[str, Any]]  # what each profile changes
    settings: tuple[Setting, ...]
    verbs: tuple[str, ...] = ()  # what can be done with a trained run: sample, predict, evaluate

    @property
    def room(self) -> str:
        return self.module.split(".")[1]

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles beside `laptop`, which changes nothing."""
        return tuple(self.presets)

    @cached_property
    def defaults(self) -> dict[str, object]:
        """The settings of the laptop profile."""
        return {setting.name: setting.default_value for setting in self.settings}


@dataclass(frozen=True)
class Command:
    """A verb of the command line that belongs to a room."""

    verb: str
    module: str
    help: str

    @property
    def room(self) -> str:
        return self.module.split(".")[1]


def mark_files(package: Path = PACKAGE) -> list[Path]:
    return sorted([*package.glob("*/claims.py"), *package.glob("*/claims/*.py")])


def experiment_files(package: Path = PACKAGE) -> list[Path]:
    return sorted(path for path in package.glob("*/experiments/*.py") if path.stem != "__init__")


def probe_files(package: Path = PACKAGE) -> list[Path]:
    return sorted([*package.glob("*/probes.py"), *package.glob("*/probes/*.py")])


def command_files(package: Path = PACKAGE) -> list[Path]:
    return sorted([*package.glob("*/commands.py"), *package.glob("*/commands/__init__.py")])


def read_marks(path: Path) -> list[Mark]:
    """The claims and errata of a file, in the order they are written."""
    found = []
    for node, decorator in _decorated_functions(path, "claim", "erratum"):
        words = {keyword.arg: ast.literal_eval(keyword.value) for keyword in decorator.keywords}
        found.append(
            Mark(
                kind="claim" if _name(decorator) == "claim" else "erratum",
                name=node.name,
                module=_module(path),
                ids=tuple(ast.literal_eval(argument) for argument in decorator.args),
                statement=(ast.get_docstring(node) or "").strip(),
                printed=words.get("printed", ""),
                right=words.get("right", ""),
                slow=words.get("slow", False),
            )
        )
    return found


def read_probes(path: Path) -> list[Probe]:
    """The probes of a file."""
    found = []
    for node, decorator in _decorated_functions(path, "probe"):
        title, _, text = (ast.get_docstring(node) or "").partition("\n")
        names = tuple(ast.literal_eval(argument) for argument in decorator.args)
        found.append(Probe(node.name, _module(path), title.strip(), text.strip(), names))
    return found


def read_experiment(path: Path) -> Entry:
    """The experiment of a file."""
    with _parse_file(path) as (tree, source):
        values = _assignments(tree)
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        imports = [alias for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
        declared = {*classes, *(alias.asname or alias.name for alias in imports)}
        title, _, text = (ast.get_docstring(tree) or "").partition("\n")
        return Entry(
            name=path.stem,
            module=_module(path),
            title=title.strip(),
            text=text.strip("\n"),
            covers=tuple(ast.literal_eval(values["covers"])) if "covers" in values else (),
            expected=_bands(values.get("expected")),
            presets=ast.literal_eval(values["profiles"]) if "profiles" in values else {},
            settings=_fields(classes.get("Experiment"), source),
            verbs=tuple(verb for name, verb in RUN_VERBS.items() if name in declared),
        )


def read_commands(path: Path) -> list[Command]:
    """The verbs that a room's `commands` file declares as `COMMANDS = {"verb": "one line of help"}`."""
    with _parse_file(path) as (tree, _):
        values = _assignments(tree)
        declared = ast.literal_eval(values["COMMANDS"]) if "COMMANDS" in values else {}
        return [Command(verb, _module(path), line) for verb, line in declared.items()]


def read_settings(path: Path, name: str) -> tuple[Setting, ...]:
    """The fields of the dataclass `name` in a file, with their trailing comments as help."""
    with _parse_file(path) as (tree, source):
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        return _fields(classes.get(name), source)


@contextmanager
def _parse_file(path: Path) -> Iterator[tuple[ast.Module, str]]:
    """The syntax tree and the source of a file; an error about either names the file."""
    source = path.read_text(encoding="utf-8")
    try:
        yield ast.parse(source), source
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"{path} must declare its rows, bands and profiles in plain values: {error}") from None


def _decorated_functions(path: Path, *names: str) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
    """The functions of a file that are decorated with `@name(…)`, and that decoration."""
    with _parse_file(path) as (tree, _):
        for node in tree.body:
            for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else []:
                if isinstance(node, ast.FunctionDef) and isinstance(decorator, ast.Call) and _name(decorator) in names:
                    yield node, decorator


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _assignments(tree: ast.Module) -> dict[str, ast.expr]:
    """What a file assigns to its names, with or without an annotation."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = value
    return found


def _fields(node: ast.ClassDef | None, source: str) -> tuple[Setting, ...]:
    """The annotated fields of a class but its class variables; the comment behind a field is its help."""
    lines = source.splitlines()
    found = []
    for field in node.body if node is not None else []:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            if ast.unparse(field.annotation).startswith("ClassVar"):
                continue
            rest = lines[(field.end_lineno or field.lineno) - 1].encode()[field.end_col_offset or 0 :].decode()
            _, _, comment = rest.partition("#")
            default = "" if field.value is None else ast.unparse(field.value)
            found.append(Setting(field.target.id, ast.unparse(field.annotation), default, comment.strip()))
    return tuple(found)


def _bands(node: ast.expr | None) -> dict[str, Band]:
    """`{"nll": at_most(24.0, "in nats")}` as the bands it stands for, without importing the file."""
    makers: dict[str, Callable[..., Band]] = {
        "at_most": at_most,
        "at_least": at_least,
        "between": between,
        "no_band": no_band,
    }
    found: dict[str, Band] = {}
    for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and key is not None:
            found[ast.literal_eval(key)] = makers[value.func.id](*map(ast.literal_eval, value.args))
    return found


def _module(path: Path) -> str:
    """The dotted name of a file: its folders from the room on, which is the one that holds claims, experiments, …"""
    parts = [part for part in path.with_suffix("").parts if part != "__init__"]
    kinds = ("claims", "experiments", "probes", "commands")
    start = max(index for index, part in enumerate(parts) if part in kinds) - 1
    return ".".join(("parnassus", *parts[start:]))


def entry_as_plain(entry: Entry) -> dict[str, Any]:
    """An experiment as JSON can hold it; settings and bands stay short lists."""
    return {
        **vars_of(entry),
        "expected": {
            name: [_finite(band.low), _finite(band.high), band.about] for name, band in entry.expected.items()
        },
        "settings": [[each.name, each.annotation, each.default, each.help] for each in entry.settings],
    }


def entry_from_plain(plain: Mapping[str, Any]) -> Entry:
    return Entry(
        **{
            **plain,
            "covers": tuple(plain["covers"]),
            "verbs": tuple(plain["verbs"]),
            "presets": {profile: _tuples(values) for profile, values in plain["presets"].items()},
            "settings": tuple(Setting(*each) for each in plain["settings"]),
            "expected": {
                name: Band(-inf if low is None else low, inf if high is None else high, about)
                for name, (low, high, about) in plain["expected"].items()
            },
        }
    )


def vars_of(declared: object) -> dict[str, Any]:
    """The fields of a dataclass; what was worked out since is left out."""
    fields: Mapping[str, object] = type(declared).__dataclass_fields__  # type: ignore[attr-defined]
    return {name: getattr(declared, name) for name in fields}


def _finite(bound: float) -> float | None:
    return None if bound in (-inf, inf) else bound


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
