"""The atlas: rows, claims, errata, experiments, probes and commands, and lookup by id, name or prefix."""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from parnassus.atlas import reading, store
from parnassus.atlas.catalogue import AtlasRow, is_part_of, read_rows, row_files, sort_rows
from parnassus.atlas.declarations import Command, Entry, Mark, Probe, declared_fields, entry_as_plain, entry_from_plain
from parnassus.atlas.rooms import Room, read_room, room_files
from parnassus.errors import UserError

if TYPE_CHECKING:
    from parnassus.atlas.evidence import Correction, Evidence

Declared = TypeVar("Declared", Entry, Probe, Command)


class UnknownError(UserError):
    """Unknown name or id; the message suggests similar ones."""


class AmbiguousError(UnknownError):
    """A prefix that matches several names; the message lists them."""


@dataclass(frozen=True)
class Chapter:
    """Coverage of a chapter."""

    name: str
    rows: int
    implemented: int
    claims: int
    errata: int
    experiments: int
    empty: tuple[str, ...]
    no_code: int  # number of rows that need no implementation


class Atlas:
    """All declarations of the package; each kind is loaded on first access. `load_atlas` returns a shared instance."""

    @cached_property
    def rows(self) -> dict[str, AtlasRow]:
        plain = store.load("rows", row_files, _plain_rows)
        rows = [AtlasRow(**{**each, "symbols": tuple(each["symbols"])}) for each in plain]
        return {row.id: row for row in sort_rows(rows)}

    @cached_property
    def marks(self) -> list[Mark]:
        plain = store.load("marks", reading.mark_files, _plain_marks)
        return [Mark(**{**each, "ids": tuple(each["ids"])}) for each in plain]

    @cached_property
    def experiments(self) -> dict[str, Entry]:
        plain = store.load("experiments", reading.experiment_files, _plain_experiments, _sources)
        return index_by_name("experiment", ((each["name"], entry_from_plain(each)) for each in plain))

    @cached_property
    def probes(self) -> dict[str, Probe]:
        plain = store.load("probes", reading.probe_files, _plain_probes)
        probes = (Probe(**{**each, "experiments": tuple(each["experiments"])}) for each in plain)
        return index_by_name("probe", ((probe.name, probe) for probe in probes))

    @cached_property
    def commands(self) -> dict[str, Command]:
        plain = store.load("commands", reading.command_files, _plain_commands)
        return index_by_name("verb", ((each["verb"], Command(**each)) for each in plain))

    @cached_property
    def subjects(self) -> dict[str, Room]:
        """The rooms with the content of their room.toml, in the order of the sources."""
        plain = store.load("rooms", room_files, _plain_rooms)
        rooms = sorted((Room(**each) for each in plain), key=lambda room: room.order)
        return {room.name: room for room in rooms}

    @cached_property
    def rooms(self) -> list[str]:
        """The names of all rooms, and of packages of the spine that implement rows of the sources."""
        return sorted({*self.subjects, *(row.subject for row in self.rows.values())})

    def experiment(self, name: str) -> Entry:
        """The experiment called `name`, in any case, or the only one whose name begins with it."""
        folded = name.casefold()
        found = [entry for key, entry in self.experiments.items() if key.startswith(folded)]
        if folded in self.experiments:
            return self.experiments[folded]
        if len(found) == 1:
            return found[0]
        if found:
            raise AmbiguousError(f"{name!r} is ambiguous; it matches {', '.join(entry.name for entry in found)}")
        raise UnknownError(f"unknown experiment: {name!r}{nearest_names(name, self.experiments)}; see: parnassus list")

    def marks_of(self, part: str) -> list[Mark]:
        """The claims and errata of an id or a part of one, of a room, or with a name."""
        found = [
            mark
            for mark in self.marks
            if part in (mark.room, mark.name) or any(is_part_of(part, whole_id) for whole_id in mark.ids)
        ]
        if not found and part not in self.rooms and not any(is_part_of(part, whole_id) for whole_id in self.rows):
            names = [*self.rooms, *self.rows, *(mark.name for mark in self.marks)]
            raise UnknownError(
                f"{part!r} is not an id, a part of one, a subject or a claim{nearest_names(part, names)}"
            )
        return found

    def experiments_of(self, row_id: str) -> list[Entry]:
        return [entry for entry in self.experiments.values() if row_id in entry.covers]

    def rows_of(self, entry: Entry) -> list[AtlasRow]:
        """The rows that an experiment covers."""
        return [self.rows[row_id] for row_id in entry.covers if row_id in self.rows]

    def rows_in(self, room: str) -> list[AtlasRow]:
        return [row for row in self.rows.values() if row.subject == room]

    def claims_of(self, row_id: str) -> list[Mark]:
        return [mark for mark in self.marks if row_id in mark.ids]

    def chapters(self) -> list[Chapter]:
        """Coverage by chapter."""
        groups: dict[str, list[AtlasRow]] = {}
        for row in self.rows.values():
            groups.setdefault(row.chapter, []).append(row)
        return [self._chapter(name, group) for name, group in groups.items()]

    def _chapter(self, name: str, group: list[AtlasRow]) -> Chapter:
        ids = {row.id for row in group}
        here = [mark for mark in self.marks if ids & set(mark.ids)]
        return Chapter(
            name=name,
            rows=len(group),
            implemented=sum(bool(row.symbols) for row in group),
            claims=sum(mark.kind == "claim" for mark in here),
            errata=sum(mark.kind == "erratum" for mark in here),
            experiments=sum(bool(ids & set(entry.covers)) for entry in self.experiments.values()),
            empty=tuple(row.id for row in group if not row.symbols and not row.no_code),
            no_code=sum(bool(row.no_code) for row in group),
        )


@cache
def load_atlas() -> Atlas:
    """The atlas of this process: every file is read at most once."""
    return Atlas()


def index_by_name(kind: str, named: Iterable[tuple[str, Declared]]) -> dict[str, Declared]:
    """The declarations by name; raises ValueError if two have the same name."""
    found: dict[str, Declared] = {}
    for name, declared in named:
        if name in found:
            raise ValueError(f"the {kind} {name!r} is declared in {found[name].module} and in {declared.module}")
        found[name] = declared
    return found


def _plain_rows(path: Path) -> list[store.Plain]:
    return [declared_fields(row) for row in read_rows(path)]


def _plain_marks(path: Path) -> list[store.Plain]:
    return [declared_fields(mark) for mark in reading.read_marks(path)]


def _plain_experiments(path: Path) -> list[store.Plain]:
    return [entry_as_plain(reading.read_experiment(path))]


def _sources(experiment: store.Plain) -> list[Path]:
    return [reading.module_file(module) for module in experiment["sources"]]


def _plain_probes(path: Path) -> list[store.Plain]:
    return [declared_fields(probe) for probe in reading.read_probes(path)]


def _plain_commands(path: Path) -> list[store.Plain]:
    return [declared_fields(command) for command in reading.read_commands(path)]


def _plain_rooms(path: Path) -> list[store.Plain]:
    return [declared_fields(read_room(path))]


INDEXED = (
    ("rows", row_files, _plain_rows),
    ("marks", reading.mark_files, _plain_marks),
    ("experiments", reading.experiment_files, _plain_experiments),
    ("probes", reading.probe_files, _plain_probes),
    ("commands", reading.command_files, _plain_commands),
    ("rooms", room_files, _plain_rooms),
)
"""The content of the index in a wheel."""


def run_mark(mark: Mark) -> "Evidence | Correction":
    """Import a claim or an erratum and run it."""
    from parnassus.atlas.evidence import Correction, Evidence

    outcome = getattr(importlib.import_module(mark.module), mark.name)()
    if not isinstance(outcome, Evidence | Correction):
        raise TypeError(f"{mark.module}.{mark.name} must return Evidence or Correction; got {type(outcome).__name__}")
    return outcome


def resolve(symbol: str) -> object:
    """The object with the dotted name `symbol`."""
    parts = symbol.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(symbol)


def nearest_names(name: str, names: Iterable[str]) -> str:
    """A suggestion "(did you mean …?)" with up to three names similar to `name`; empty if there are none."""
    import difflib

    known = list(dict.fromkeys(names))
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or [each for each in known if name in each][:3]
    return f" (did you mean {', '.join(near)}?)" if near else ""
