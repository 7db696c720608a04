"""Finding claims, errata, experiments and probes by reading the files: nothing is imported, so it is quick."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from parnassus.atlas.bands import Band, at_least, at_most, between, reported

PACKAGE = Path(__file__).parent.parent
FUNCTION = re.compile(
    r"^(?P<indent> *)def (?s:(?:(?!: \.\.\.).)*?):\n"
    r"(?:(?P=indent) {4}r?(?P<quotes>\"{3}|'{3})(?s:.*?)(?P=quotes)\n)?"
    r"(?P<body>(?:(?P=indent) {4}.*\n|\n)*)",
    re.MULTILINE,
)
"""A function: its head, its docstring if it has one, its body; but not one whose body is `...` behind its head."""
WHOLE = re.compile(r"\bint\b")
ZERO = re.compile(r"\b0\b(?!\.\d)")
"""A help that says what 0 means, or that one counts from it."""


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

    @property
    def room(self) -> str:
        return self.module.split(".")[1]


@dataclass(frozen=True)
class Probe:
    """A function marked `@probe`: something a person can touch."""

    name: str
    module: str
    title: str
    text: str
    experiments: tuple[str, ...]  # whose runs it is about; () when it needs none

    @property
    def room(self) -> str:
        return self.module.split(".")[1]


@dataclass(frozen=True)
class Setting:
    """A field of an experiment: a flag of the command line, a field of the form."""

    name: str
    annotation: str
    default: str
    help: str

    @property
    def least(self) -> int | None:
        """The least whole number it takes: 1, or less where the default is or the help speaks of 0; None of others."""
        if not WHOLE.search(self.annotation):
            return None
        default = ast.literal_eval(self.default)
        known: tuple[int, ...] = default if isinstance(default, tuple) else (1 if default is None else default,)
        return min((0 if ZERO.search(self.help) else 1, *known))


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
    generative: bool

    @property
    def room(self) -> str:
        return self.module.split(".")[1]

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles beside `laptop`, which changes nothing."""
        return tuple(self.presets)


def marks(package: Path = PACKAGE) -> list[Mark]:
    """Every claim and erratum of every room, in the order they are written."""
    files = sorted([*package.glob("*/claims.py"), *package.glob("*/claims/*.py")])
    found: list[Mark] = []
    for path in files:
        with _naming(path):
            found += _marks(path, package)
    return found


def experiments(package: Path = PACKAGE) -> list[Entry]:
    """Every experiment of every room."""
    found: list[Entry] = []
    for path in sorted(package.glob("*/experiments/*.py")):
        if path.stem != "__init__":
            with _naming(path):
                found.append(_entry(path, package))
    return found


def probes(package: Path = PACKAGE) -> list[Probe]:
    """Every probe of every room."""
    found = []
    for path in sorted([*package.glob("*/probes.py"), *package.glob("*/probes/*.py")]):
        with _naming(path):
            found += _probes(path, package)
    return found


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Files are read, never run: what cannot be read so is told with the name of its file."""
    try:
        yield
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"{path} must say its rows, bands and profiles in plain values: {error}") from None


def _probes(path: Path, package: Path) -> list[Probe]:
    found = []
    for node, decorator in _decorated(path, "probe"):
        title, _, text = (ast.get_docstring(node) or "").partition("\n")
        names = tuple(ast.literal_eval(argument) for argument in decorator.args)
        found.append(Probe(node.name, _module(path, package), title.strip(), text.strip(), names))
    return found


def _marks(path: Path, package: Path) -> list[Mark]:
    found = []
    for node, decorator in _decorated(path, "claim", "erratum"):
        words = {keyword.arg: ast.literal_eval(keyword.value) for keyword in decorator.keywords}
        found.append(
            Mark(
                kind="claim" if _name(decorator) == "claim" else "erratum",
                name=node.name,
                module=_module(path, package),
                ids=tuple(ast.literal_eval(argument) for argument in decorator.args),
                statement=(ast.get_docstring(node) or "").strip(),
                printed=words.get("printed", ""),
                right=words.get("right", ""),
            )
        )
    return found


def _decorated(path: Path, *names: str) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
    """The functions of a file that are decorated with `@name(…)`, and that decoration."""
    for node in ast.parse(heads(path)).body:
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else []:
            if isinstance(node, ast.FunctionDef) and isinstance(decorator, ast.Call) and _name(decorator) in names:
                yield node, decorator


def heads(path: Path) -> str:
    """A file without the bodies of its functions: most of the time that reading takes, and nothing we look for."""
    source = path.read_text(encoding="utf-8")
    return FUNCTION.sub(lambda found: f"{found[0].removesuffix(found['body'])}{found['indent']}    ...\n", source)


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _entry(path: Path, package: Path) -> Entry:
    source = heads(path)
    tree = ast.parse(source)
    values = _assigned(tree)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    title, _, text = (ast.get_docstring(tree) or "").partition("\n")
    return Entry(
        name=path.stem,
        module=_module(path, package),
        title=title.strip(),
        text=text.strip("\n"),
        covers=tuple(ast.literal_eval(values["covers"])) if "covers" in values else (),
        expected=_bands(values.get("expected")),
        presets=ast.literal_eval(values["profiles"]) if "profiles" in values else {},
        settings=_settings(classes.get("Experiment"), source.splitlines()),
        generative="Sample" in classes,
    )


def _assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """What a file assigns to its names, with or without an annotation."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = value
    return found


def _settings(node: ast.ClassDef | None, lines: list[str]) -> tuple[Setting, ...]:
    found = []
    for field in node.body if node is not None else []:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            _, _, comment = lines[(field.end_lineno or field.lineno) - 1].partition("  # ")
            default = "" if field.value is None else ast.unparse(field.value)
            found.append(Setting(field.target.id, ast.unparse(field.annotation), default, comment.strip()))
    return tuple(found)


def _bands(node: ast.expr | None) -> dict[str, Band]:
    """`{"nll": at_most(24.0, "in nats")}` as the bands it stands for, without importing the file."""
    makers: dict[str, Callable[..., Band]] = {
        "at_most": at_most,
        "at_least": at_least,
        "between": between,
        "reported": reported,
    }
    found: dict[str, Band] = {}
    for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and key is not None:
            found[ast.literal_eval(key)] = makers[value.func.id](*map(ast.literal_eval, value.args))
    return found


def settings(path: Path, name: str) -> tuple[Setting, ...]:
    """The fields of the dataclass `name` in a file, with their trailing comments."""
    source = heads(path)
    classes = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
    return _settings(classes.get(name), source.splitlines())


def names_in(path: Path, *tables: str) -> list[str]:
    """The keys of the dictionaries that a file assigns to these names."""
    values = _assigned(ast.parse(heads(path)))
    keys = [key for table in tables if isinstance(node := values.get(table), ast.Dict) for key in node.keys]
    return [ast.literal_eval(key) for key in keys if key is not None]


def _module(path: Path, package: Path) -> str:
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(("parnassus", *(part for part in parts if part != "__init__")))
