"""Measure which code runs during a claim or an erratum, and which symbols of a row none of its marks reaches."""

import functools
import inspect
import os
import sys
from collections.abc import Collection
from cProfile import Profile
from dataclasses import dataclass, is_dataclass
from functools import cache, cached_property
from pathlib import Path
from types import CodeType

from parnassus.atlas.declarations import Mark
from parnassus.atlas.evidence import Correction, Evidence
from parnassus.atlas.index import Atlas, resolve, run_mark
from parnassus.atlas.settings import PACKAGE

ATLAS = Atlas()
ROOT = f"{PACKAGE}{os.sep}"
NOT_METHODS = ("atlas", "claims", "claims.py", "data", "report", "runs", "train", "widgets")


@dataclass(frozen=True)
class MeasuredMark:
    """The outcome of a mark, and the code of the package that ran meanwhile."""

    outcome: Evidence | Correction
    codes: frozenset[CodeType]


@cache
def measure(mark: Mark) -> MeasuredMark:
    """Run a mark, once per process, under the profiler of the standard library."""
    import_symbols(mark)
    clear_caches()
    profile = Profile(subcalls=False, builtins=False)
    profile.enable()
    try:
        outcome = run_mark(mark)
    finally:
        profile.disable()
    codes = [entry.code for entry in profile.getstats() if isinstance(entry.code, CodeType)]
    return MeasuredMark(outcome, frozenset(code for code in codes if code.co_filename.startswith(ROOT)))


def import_symbols(mark: Mark) -> None:
    """Import what a mark and its rows name, so that code that runs on import is not attributed to the mark."""
    resolve(mark.module)
    for row_id in mark.ids:
        for symbol in ATLAS.rows[row_id].symbols:
            resolve(symbol)


def clear_caches() -> None:
    """Clear the caches of functions of the rooms, so that a mark reaches the same code in any order."""
    for name in [name for name in sys.modules if name.startswith("parnassus.") and name.split(".")[1] != "atlas"]:
        for value in vars(sys.modules[name]).values():
            if isinstance(value, functools._lru_cache_wrapper):
                value.cache_clear()


def unreached_symbols(room: str, *, slow: bool = False) -> list[str]:
    """Symbols of the rows of a room that none of the row's marks reaches; `slow`: of rows with slow marks."""
    found = []
    for row in ATLAS.rows_in(room):
        marks = ATLAS.claims_of(row.id)
        if row.symbols and any(mark.slow for mark in marks) is slow:
            codes = frozenset[CodeType]().union(*(measure(mark).codes for mark in marks))
            found += [f"{row.id} {symbol}" for symbol in row.symbols if not is_reached(symbol, codes)]
    return found


def idle_marks(room: str, *, slow: bool = False) -> list[str]:
    """Marks of a room during which neither a method of the package nor a symbol of the mark's rows runs."""
    marks = [mark for mark in ATLAS.marks if mark.room == room and mark.slow is slow]
    return [f"{' '.join(mark.ids)} {mark.name}" for mark in marks if not _runs_a_method(mark)]


def _runs_a_method(mark: Mark) -> bool:
    codes = measure(mark).codes
    symbols = [symbol for row_id in mark.ids for symbol in ATLAS.rows[row_id].symbols]
    return any(map(_is_method, codes)) or any(is_reached(symbol, codes) for symbol in symbols)


def _is_method(code: CodeType) -> bool:
    return not set(NOT_METHODS) & set(Path(code.co_filename).relative_to(PACKAGE).parts)


def is_reached(symbol: str, codes: Collection[CodeType]) -> bool:
    """Whether code of a function or class ran; constants and records may also be read by code that ran."""
    found, own = resolve(symbol), codes_of(symbol)
    if not own.isdisjoint(codes):
        return True
    name = symbol.rpartition(".")[2]
    is_record = isinstance(found, type) and (is_dataclass(found) or issubclass(found, tuple))
    return (not own or is_record) and any(_reads(code, name, found) for code in codes)


def _reads(code: CodeType, name: str, value: object) -> bool:
    """Whether code refers to a name that has this value in its module, or that the code itself imports."""
    return name in code.co_names and _globals(code.co_filename).get(name, value) is value


@cache
def _globals(path: str) -> dict[str, object]:
    module = ".".join(Path(path).relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    return vars(sys.modules[module])


@cache
def codes_of(symbol: str) -> frozenset[CodeType]:
    """The code of a function, or of the methods that a class defines or else inherits; empty for a constant."""
    owner, _, name = symbol.rpartition(".")
    found = inspect.getattr_static(resolve(owner), name)
    if not isinstance(found, type):
        return _codes(found)
    return _codes(*vars(found).values()) or _codes(*(value for base in found.__mro__ for value in vars(base).values()))


def _codes(*values: object) -> frozenset[CodeType]:
    """The code of functions, properties and methods that is written in files of the package."""
    accessed = (_function(value) for value in values)
    found = (getattr(inspect.unwrap(each), "__code__", None) for each in accessed if callable(each))
    return frozenset(code for code in found if isinstance(code, CodeType) and code.co_filename.startswith(ROOT))


def _function(value: object) -> object:
    match value:
        case property():
            return value.fget
        case classmethod() | staticmethod():
            return value.__func__
        case cached_property():
            return value.func
        case _:
            return value
