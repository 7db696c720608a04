"""Read claims, errata, experiments, probes and commands from their source files, without importing them."""

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, cast

from parnassus.atlas.bands import Band, at_least, at_most, between, no_band
from parnassus.atlas.declarations import RUN_VERBS, Command, Entry, Mark, Probe
from parnassus.atlas.settings import PACKAGE, Setting


def mark_files(package: Path = PACKAGE) -> list[Path]:
    return sorted([*package.glob("*/claims.py"), *package.glob("*/claims/*.py")])


def experiment_files(package: Path = PACKAGE) -> list[Path]:
    return sorted(path for path in package.glob("*/experiments/*.py") if path.stem != "__init__")


def probe_files(package: Path = PACKAGE) -> list[Path]:
    return sorted([*package.glob("*/probes.py"), *package.glob("*/probes/*.py")])


def command_files(package: Path = PACKAGE) -> list[Path]:
    return sorted([*package.glob("*/commands.py"), *package.glob("*/commands/__init__.py")])


def read_marks(path: Path) -> list[Mark]:
    """The claims and errata of a file, in order of definition."""
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
        values, imports = _assignments(tree), _imports(tree)
        tuned, tables = _read_tuned(values.get("tuned"), imports)
        experiment = _class_fields(tree, source, "Experiment")
        verbs = {verb: _class_fields(tree, source, name) for name, verb in RUN_VERBS.items() if _has_class(tree, name)}
        modules = [module for each in (experiment, *verbs.values()) for module in each.modules]
        title, _, text = (ast.get_docstring(tree) or "").partition("\n")
        return Entry(
            name=path.stem,
            module=_module(path),
            title=title.strip(),
            text=text.strip("\n"),
            covers=tuple(ast.literal_eval(values["covers"])) if "covers" in values else (),
            expected=_bands(values.get("expected")),
            presets=ast.literal_eval(values["profiles"]) if "profiles" in values else {},
            settings=experiment.settings,
            verb_settings={verb: each.settings for verb, each in verbs.items()},
            sources=tuple(dict.fromkeys([*modules, *tables])),
            tuned=tuned,
        )


def read_commands(path: Path) -> list[Command]:
    """The verbs that a room's `commands` file declares as `COMMANDS = {"verb": "One line of help."}`.

    `RUN_EXAMPLES = {"verb": ("verb {run} --flag", "method")}` has those that use runs of experiments with a method.
    """
    with _parse_file(path) as (tree, _):
        values = _assignments(tree)
        declared, examples = (
            ast.literal_eval(values[name]) if name in values else {} for name in ("COMMANDS", "RUN_EXAMPLES")
        )
        return [Command(verb, _module(path), line, *examples.get(verb, ())) for verb, line in declared.items()]


def read_settings(path: Path, name: str) -> tuple[Setting, ...]:
    """The fields of the dataclass `name` in a file, with their trailing comments as help texts."""
    with _parse_file(path) as (tree, source):
        return _class_fields(tree, source, name).settings


def settings_of(declared: type) -> tuple[Setting, ...]:
    """The fields of a dataclass, read from its source file."""
    return read_settings(Path(inspect.getfile(declared)), declared.__name__)


@contextmanager
def _parse_file(path: Path) -> Iterator[tuple[ast.Module, str]]:
    """The syntax tree and the source of a file; errors in the context are raised with the path of the file."""
    source = path.read_text(encoding="utf-8")
    try:
        yield ast.parse(source), source
    except (ValueError, SyntaxError) as error:
        raise ValueError(f"{path} must declare its rows, bands and profiles as literals: {error}") from None


def _decorated_functions(path: Path, *names: str) -> Iterator[tuple[ast.FunctionDef, ast.Call]]:
    """The functions of a file that are decorated with `@name(…)`, each with that decorator."""
    with _parse_file(path) as (tree, _):
        for node in tree.body:
            for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else []:
                if isinstance(node, ast.FunctionDef) and isinstance(decorator, ast.Call) and _name(decorator) in names:
                    yield node, decorator


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _assignments(tree: ast.Module) -> dict[str, ast.expr]:
    """The assignments at module level by name, with or without annotation."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = value
    return found


@dataclass(frozen=True)
class ClassFields:
    """The fields of a dataclass, those of its base classes first, and the other modules that declare some of them."""

    settings: tuple[Setting, ...] = ()
    modules: tuple[str, ...] = ()


def _has_class(tree: ast.Module, name: str) -> bool:
    """Whether a file defines or imports the class `name`."""
    return name in _imports(tree) or any(isinstance(node, ast.ClassDef) and node.name == name for node in tree.body)


def _class_fields(tree: ast.Module, source: str, name: str) -> ClassFields:
    """The fields of the dataclass `name`, which the file defines or imports; no fields for other names."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if name not in classes:
        return _imported_fields(*_imports(tree)[name]) if name in _imports(tree) else ClassFields()
    bases = [base.id for base in reversed(classes[name].bases) if isinstance(base, ast.Name)]
    inherited = [_class_fields(tree, source, base) for base in bases]
    own = _own_fields(classes[name], source, _assignments(tree))
    found = {each.name: each for each in chain(*(fields.settings for fields in inherited), own)}
    return ClassFields(tuple(found.values()), tuple(module for fields in inherited for module in fields.modules))


def _imported_fields(module: str, name: str) -> ClassFields:
    """The fields of the dataclass `name` of another module of this package."""
    with _parse_file(module_file(module)) as (tree, source):
        found = _class_fields(tree, source, name)
    return ClassFields(found.settings, (module, *found.modules))


def _own_fields(node: ast.ClassDef, source: str, assignments: Mapping[str, ast.expr]) -> Iterator[Setting]:
    """The annotated fields of a class except class variables; the comment after a field is its help text."""
    lines = source.splitlines()
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            annotation = ast.unparse(AliasResolver(assignments).visit(item.annotation))
            if annotation.startswith("ClassVar"):
                continue
            rest = lines[(item.end_lineno or item.lineno) - 1].encode()[item.end_col_offset or 0 :].decode()
            _, _, comment = rest.partition("#")
            default = "" if item.value is None else ast.unparse(item.value)
            yield Setting(item.target.id, annotation, default, comment.strip())


@dataclass
class AliasResolver(ast.NodeTransformer):
    """Replaces the type aliases that a file defines, such as `Name = Literal["a", "b"]`, by their definitions."""

    assignments: Mapping[str, ast.expr]

    def visit_Name(self, node: ast.Name) -> ast.expr:
        definition = self.assignments.get(node.id)
        return node if definition is None else cast("ast.expr", self.visit(definition))


def _imports(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """The imports of a file from this package: local name → (module, original name)."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("parnassus.")
        for alias in node.names
    }


def _read_tuned(
    node: ast.expr | None, imports: Mapping[str, tuple[str, str]]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The content of `tuned = {"env": TUNED}`, and the modules from which its tables are imported."""
    found: dict[str, Any] = {}
    modules: list[str] = []
    for key, value in _dict_items(node):
        if key is None or not isinstance(value, ast.Name):
            raise ValueError("`tuned` must map names of settings to imported tables")
        module, original = imports[value.id]
        with _parse_file(module_file(module)) as (tree, _):
            found[ast.literal_eval(key)] = ast.literal_eval(_assignments(tree)[original])
        modules.append(module)
    return found, tuple(modules)


def _dict_items(node: ast.expr | None) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    """The keys and values of a dictionary display; none for other expressions. The key of `**other` is None."""
    return zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else iter(())


def module_file(module: str) -> Path:
    """The file of a module of this package."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _bands(node: ast.expr | None) -> dict[str, Band]:
    """The bands in an expression such as `{"nll": at_most(24.0, "in nats")}`, without importing the file."""
    makers: dict[str, Callable[..., Band]] = {
        "at_most": at_most,
        "at_least": at_least,
        "between": between,
        "no_band": no_band,
    }
    found: dict[str, Band] = {}
    for key, value in _dict_items(node):
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and key is not None:
            found[ast.literal_eval(key)] = makers[value.func.id](*map(ast.literal_eval, value.args))
    return found


def _module(path: Path) -> str:
    """The dotted name of a file, from the room (the parent folder of claims, experiments, probes or commands) on."""
    parts = [part for part in path.with_suffix("").parts if part != "__init__"]
    kinds = ("claims", "experiments", "probes", "commands")
    start = max(index for index, part in enumerate(parts) if part in kinds) - 1
    return ".".join(("parnassus", *parts[start:]))
