"""Read claims, errata, experiments, probes and commands from their files; nothing is imported."""

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
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
    settings: tuple[Setting, ...]  # those of base classes first, as in the dataclass
    verbs: tuple[str, ...] = ()  # what can be done with a trained run: sample, predict, evaluate
    sources: tuple[str, ...] = ()  # the modules that settings are inherited from
    tuned: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """Defaults that depend on another setting: {"env": {"Acrobot-v1": {"n_envs": 16}}}."""

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

    def preset(self, profile: str, values: Mapping[str, object]) -> dict[str, Any]:
        """What differs from the defaults in a profile, and what is tuned for the given `values` of other settings."""
        profile_values = self.presets.get(profile, {})
        chosen = {**self.defaults, **profile_values, **values}
        tuned = [table.get(str(chosen[name]), {}) for name, table in self.tuned.items()]
        return {name: value for each in (*tuned, profile_values) for name, value in each.items()}


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
        imports = _imports(tree)
        bases = classes["Experiment"].bases if "Experiment" in classes else []
        title, _, text = (ast.get_docstring(tree) or "").partition("\n")
        return Entry(
            name=path.stem,
            module=_module(path),
            title=title.strip(),
            text=text.strip("\n"),
            covers=tuple(ast.literal_eval(values["covers"])) if "covers" in values else (),
            expected=_bands(values.get("expected")),
            presets=ast.literal_eval(values["profiles"]) if "profiles" in values else {},
            settings=_class_fields(tree, source, "Experiment"),
            verbs=tuple(verb for name, verb in RUN_VERBS.items() if name in {*classes, *imports}),
            sources=tuple(imports[base.id][0] for base in bases if isinstance(base, ast.Name) and base.id in imports),
            tuned=_read_tuned(values.get("tuned"), imports),
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
        return _class_fields(tree, source, name)


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


def _class_fields(tree: ast.Module, source: str, name: str) -> tuple[Setting, ...]:
    """The fields of the dataclass `name` in the order of the dataclass: those of its base classes come first."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    imports = _imports(tree)
    found: dict[str, Setting] = {}
    for base in reversed(classes[name].bases) if name in classes else ():
        if isinstance(base, ast.Name) and base.id in classes:
            inherited = _class_fields(tree, source, base.id)
        elif isinstance(base, ast.Name) and base.id in imports:
            module, original = imports[base.id]
            inherited = read_settings(module_file(module), original)
        else:
            continue
        found |= {each.name: each for each in inherited}
    return tuple((found | {each.name: each for each in _own_fields(classes.get(name), source)}).values())


def _own_fields(node: ast.ClassDef | None, source: str) -> Iterator[Setting]:
    """The annotated fields of a class but its class variables; the comment behind a field is its help."""
    lines = source.splitlines()
    for item in node.body if node is not None else []:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            if ast.unparse(item.annotation).startswith("ClassVar"):
                continue
            rest = lines[(item.end_lineno or item.lineno) - 1].encode()[item.end_col_offset or 0 :].decode()
            _, _, comment = rest.partition("#")
            default = "" if item.value is None else ast.unparse(item.value)
            yield Setting(item.target.id, ast.unparse(item.annotation), default, comment.strip())


def _imports(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """What a file imports from this package: its name there, as the module and the name in it."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("parnassus.")
        for alias in node.names
    }


def _read_tuned(node: ast.expr | None, imports: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """`tuned = {"env": TUNED}` with the tables that it names, read from the files they are imported from."""
    found: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
        if key is None or not isinstance(value, ast.Name):
            raise ValueError("`tuned` maps names of settings to imported tables")
        module, original = imports[value.id]
        with _parse_file(module_file(module)) as (tree, _):
            found[ast.literal_eval(key)] = ast.literal_eval(_assignments(tree)[original])
    return found


def module_file(module: str) -> Path:
    """The file of a module of this package."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


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
            "sources": tuple(plain["sources"]),
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
