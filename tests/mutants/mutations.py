"""The list of mutations, and how they are planted: by an import hook that changes a module's source as it is read.

The files of the working tree are never changed. A mutation replaces a fragment that occurs once in its file.
"""

import ast
import builtins
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path

import parnassus

PACKAGE = Path(parnassus.__file__).parent
LIST = Path(__file__).parent / "mutations.toml"
KINDS = ("sign", "factor", "axis", "off by one", "missing mask", "variance", "convention")


@dataclass(frozen=True)
class Mutation:
    """An error: in `file`, `old` becomes `new`."""

    file: str
    kind: str
    old: str
    new: str

    @property
    def name(self) -> str:
        return f"{self.file}: {' '.join(self.old.split())} → {' '.join(self.new.split())}"

    @property
    def path(self) -> Path:
        return PACKAGE / self.file

    @property
    def room(self) -> str:
        return self.file.split("/")[0]

    def source(self) -> str:
        """The source of the file."""
        return self.path.read_text(encoding="utf-8")

    def mutated(self) -> str:
        """The source with the error; a ValueError if the fragment does not occur exactly once."""
        source = self.source()
        if (count := source.count(self.old)) != 1:
            raise ValueError(f"{self.name}: the fragment must occur once in the file; it occurs {count} times")
        return source.replace(self.old, self.new)

    @property
    def line(self) -> int:
        """The number of the line where the fragment begins."""
        source = self.source()
        return source.count("\n", 0, source.index(self.old)) + 1


@cache
def read_mutations() -> tuple[Mutation, ...]:
    """The mutations of the list, in its order."""
    table = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return tuple(Mutation(**entry) for entry in table["mutation"])


def plant(sources: dict[Path, str]) -> None:
    """Let imports read these sources instead of the files, also under jaxtyping's import hook; call it before them."""
    texts = {str(path): source.encode() for path, source in sources.items()}
    get_data, path_stats = SourceFileLoader.get_data, SourceFileLoader.path_stats

    def read(self: SourceFileLoader, path: str) -> bytes:
        return texts[path] if path in texts else get_data(self, path)

    def stats(self: SourceFileLoader, path: str) -> object:
        if path in texts:
            raise OSError("the source is not that of the file: no bytecode may be read or written")
        return path_stats(self, path)

    SourceFileLoader.get_data = read  # type: ignore[method-assign, assignment]  # the hook
    SourceFileLoader.path_stats = stats  # type: ignore[method-assign, assignment]


def plant_recorders(record: Callable[[int], None]) -> None:
    """Let every statement with a fragment call `record` with the index of its mutation when it is executed."""
    builtins.__mutation_reached__ = record  # type: ignore[attr-defined]
    by_file: dict[Path, list[tuple[int, int]]] = {}
    for index, mutation in enumerate(read_mutations()):
        by_file.setdefault(mutation.path, []).append((index, mutation.line))
    plant({path: _with_recorders(path, places) for path, places in by_file.items()})


def _with_recorders(path: Path, places: list[tuple[int, int]]) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [(*_innermost_statement(tree, line), index) for index, line in places]
    for body, statement, index in found:
        call = ast.parse(f"__mutation_reached__({index})").body[0]
        body.insert(body.index(statement), call)
    return ast.unparse(ast.fix_missing_locations(tree))


def _innermost_statement(tree: ast.Module, line: int) -> tuple[list[ast.stmt], ast.stmt]:
    """The smallest statement on this line, and the block that it belongs to."""
    covering = [
        (body, statement)
        for node in ast.walk(tree)
        for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
        if isinstance(body, list)
        for statement in body
        if statement.lineno <= line <= (statement.end_lineno or statement.lineno)
    ]
    return min(covering, key=lambda pair: (pair[1].end_lineno or 0) - pair[1].lineno)
