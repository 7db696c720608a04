"""Finding claims, errata and experiments by reading the files: nothing is imported, so it is quick."""

import ast
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PACKAGE = Path(__file__).parent.parent


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
class Setting:
    """A field of an experiment: a flag of the command line, a field of the form."""

    name: str
    annotation: str
    default: str
    help: str


@dataclass(frozen=True)
class Entry:
    """An experiment as its file describes it."""

    name: str
    module: str
    title: str
    text: str
    covers: tuple[str, ...]
    expected: tuple[tuple[str, str, str], ...]  # name, band, what it is
    profiles: tuple[str, ...]
    settings: tuple[Setting, ...]
    generative: bool

    @property
    def room(self) -> str:
        return self.module.split(".")[1]


def marks(package: Path = PACKAGE) -> list[Mark]:
    """Every claim and erratum of every room, in the order they are written."""
    files = sorted([*package.glob("*/claims.py"), *package.glob("*/claims/*.py")])
    return [mark for path in files for mark in _marks(path, package)]


def experiments(package: Path = PACKAGE) -> list[Entry]:
    """Every experiment of every room."""
    files = sorted(package.glob("*/experiments/*.py"))
    return [_entry(path, package) for path in files if path.stem != "__init__"]


def _marks(path: Path, package: Path) -> list[Mark]:
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else []:
            if not (isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name)):
                continue
            kind = decorator.func.id
            if kind not in ("claim", "erratum"):
                continue
            assert isinstance(node, ast.FunctionDef)
            words = {keyword.arg: ast.literal_eval(keyword.value) for keyword in decorator.keywords}
            found.append(
                Mark(
                    kind="claim" if kind == "claim" else "erratum",
                    name=node.name,
                    module=_module(path, package),
                    ids=tuple(ast.literal_eval(argument) for argument in decorator.args),
                    statement=(ast.get_docstring(node) or "").strip(),
                    printed=words.get("printed", ""),
                    right=words.get("right", ""),
                )
            )
    return found


def _entry(path: Path, package: Path) -> Entry:
    with tokenize.open(path) as file:
        source = file.read()
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
        profiles=_keys(values.get("profiles")),
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


def _bands(node: ast.expr | None) -> tuple[tuple[str, str, str], ...]:
    """`{"nll": at_most(24.0, "in nats")}` as (("nll", "≤ 24.0", "in nats"),)."""
    if not isinstance(node, ast.Dict):
        return ()
    signs = {"at_most": "≤ {}", "at_least": "≥ {}", "between": "{} … {}", "reported": ""}
    found = []
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and key is not None:
            *numbers, about = [ast.unparse(argument) for argument in value.args]
            found.append((ast.literal_eval(key), signs[value.func.id].format(*numbers), ast.literal_eval(about)))
    return tuple(found)


def _keys(node: ast.expr | None) -> tuple[str, ...]:
    if not isinstance(node, ast.Dict):
        return ()
    return tuple(ast.literal_eval(key) for key in node.keys if key is not None)


def _module(path: Path, package: Path) -> str:
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(("parnassus", *(part for part in parts if part != "__init__")))
