"""Public classes and functions: how to import and call them, read from their source files without importing them."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from parnassus.atlas.reading import module_file
from parnassus.atlas.settings import PACKAGE


@dataclass(frozen=True)
class Symbol:
    """A class or function: the module that defines it, and a package that exports it."""

    name: str
    module: str
    package: str  # the module itself if no package exports it

    @property
    def dotted_names(self) -> tuple[str, str]:
        """The name in its module, and the one in the package that exports it."""
        return f"{self.module}.{self.name}", f"{self.package}.{self.name}"

    @property
    def import_line(self) -> str:
        return f"from {self.package} import {self.name}"


@dataclass(frozen=True)
class Description:
    """The signature and docstring of a class or function, and the public methods of a class with their first lines."""

    signature: str
    docstring: str
    methods: tuple[tuple[str, str], ...] = ()


def exported_symbols(package: Path = PACKAGE) -> list[Symbol]:
    """The symbols that the packages export in `__all__`; those of `estimators`, which wrap the others, are last."""
    paths = sorted(package.glob("*/__init__.py"), key=lambda path: (path.parent.name == "estimators", path))
    return [symbol for path in paths for symbol in _exports_of(path)]


def public_symbols(dotted: Iterable[str]) -> list[Symbol]:
    """The exported symbols, and those with the `dotted` names of rows."""
    known = {symbol.dotted_names[0]: symbol for symbol in exported_symbols()}
    for full in dotted:
        module, _, last = full.rpartition(".")
        if full not in known and module_file(module).exists():  # otherwise the name of a method
            known[full] = Symbol(last, module, module)
    return list(known.values())


def ends_with(dotted: str, name: str) -> bool:
    """Whether `name` is a suffix of a dotted name, such as PCA or pca.PCA of latent.linear.pca.PCA."""
    return f".{dotted}".endswith(f".{name}")


def describe(symbol: Symbol) -> Description | None:
    """The signature and docstring of a symbol; None for a constant or a type alias."""
    tree = ast.parse(module_file(symbol.module).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == symbol.name:
            return Description(_call(node.name, node.args, node.returns), ast.get_docstring(node) or "")
        if isinstance(node, ast.ClassDef) and node.name == symbol.name:
            return Description(_constructor(node), ast.get_docstring(node) or "", tuple(_methods(node)))
    return None


def _exports_of(path: Path) -> Iterator[Symbol]:
    package = f"parnassus.{path.parent.name}"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    exported: list[str] = next((ast.literal_eval(each.value) for each in tree.body if _is_export_list(each)), [])
    modules = {
        alias.asname or alias.name: node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    yield from (Symbol(name, modules.get(name, package), package) for name in exported)


def _is_export_list(node: ast.stmt) -> TypeGuard[ast.Assign]:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def _constructor(node: ast.ClassDef) -> str:
    """The call that builds an instance: the arguments of `__init__`, or the fields of a dataclass."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            return _call(node.name, each.args, None)
    fields = [
        ast.unparse(each)
        for each in node.body
        if isinstance(each, ast.AnnAssign) and not ast.unparse(each.annotation).startswith("ClassVar")
    ]
    return f"{node.name}({', '.join(fields)})" if _has_fields(node) else node.name


def _has_fields(node: ast.ClassDef) -> bool:
    """Whether the annotated names of a class are the arguments of its constructor."""
    marks = [ast.unparse(each) for each in (*node.decorator_list, *node.bases)]
    return any(mark.startswith(("dataclass", "NamedTuple")) for mark in marks)


def _methods(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The calls of the public methods with the first lines of their docstrings."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            first, *_ = (ast.get_docstring(each) or "").splitlines() or [""]
            is_property = any("property" in ast.unparse(mark) for mark in each.decorator_list)
            yield each.name if is_property else _call(each.name, each.args, each.returns), first


def _call(name: str, arguments: ast.arguments, returns: ast.expr | None) -> str:
    """`name(arguments) -> result` without `self` and `cls`."""
    positional = [*arguments.posonlyargs, *arguments.args]
    shown = ast.unparse(arguments)
    if positional and positional[0].arg in ("self", "cls"):
        shown = shown.removeprefix(positional[0].arg).removeprefix(", ")
    return f"{name}({shown})" + (f" -> {ast.unparse(returns)}" if returns is not None else "")
