"""The atlas: ids, symbols, claims, errata and experiments joined, and how to find one by part of its name."""

import difflib
import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from parnassus.atlas.catalogue import Row, part_of, rows
from parnassus.atlas.evidence import Correction, Evidence
from parnassus.atlas.reading import Entry, Mark, Probe, experiments, marks, probes


class UnknownError(Exception):
    """No such name or id; the message offers the nearest ones."""


@dataclass(frozen=True)
class Chapter:
    """How much of a chapter is built."""

    name: str
    rows: int
    implemented: int
    claims: int
    errata: int
    experiments: int
    empty: tuple[str, ...]


class Atlas:
    """What the project knows about itself; reads files when it is first asked."""

    @cached_property
    def rows(self) -> dict[str, Row]:
        return {row.id: row for row in rows()}

    @cached_property
    def marks(self) -> list[Mark]:
        return marks()

    @cached_property
    def experiments(self) -> dict[str, Entry]:
        return {entry.name: entry for entry in experiments()}

    @cached_property
    def probes(self) -> dict[str, Probe]:
        return {probe.name: probe for probe in probes()}

    @cached_property
    def rooms(self) -> list[str]:
        """The rooms that rows, claims or experiments belong to."""
        found = {row.subject for row in self.rows.values()} | {mark.room for mark in self.marks}
        return sorted(found | {entry.room for entry in self.experiments.values()})

    def experiment(self, name: str) -> Entry:
        """The experiment called `name`, or the one whose name begins with it."""
        found = [entry for key, entry in self.experiments.items() if key.startswith(name)]
        if name in self.experiments:
            return self.experiments[name]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownError(f"{name!r} could be any of {', '.join(entry.name for entry in found)}")
        raise UnknownError(f"there is no experiment {name!r}{nearest(name, self.experiments)}; see: parnassus list")

    def marks_of(self, part: str) -> list[Mark]:
        """Claims and errata under an id or a part of one, in a room, or by name."""
        found = [
            mark
            for mark in self.marks
            if part in (mark.room, mark.name) or any(part_of(part, whole_id) for whole_id in mark.ids)
        ]
        if not found and part not in self.rooms and not any(part_of(part, whole_id) for whole_id in self.rows):
            names = [*self.rooms, *self.rows, *(mark.name for mark in self.marks)]
            raise UnknownError(f"{part!r} is no id, no part of one, no room and no claim{nearest(part, names)}")
        return found

    def experiments_of(self, row_id: str) -> list[Entry]:
        return [entry for entry in self.experiments.values() if row_id in entry.covers]

    def claims_of(self, row_id: str) -> list[Mark]:
        return [mark for mark in self.marks if row_id in mark.ids]

    def chapters(self) -> list[Chapter]:
        """Coverage, chapter by chapter."""
        groups: dict[str, list[Row]] = {}
        for row in self.rows.values():
            groups.setdefault(row.chapter, []).append(row)
        return [self._chapter(name, group) for name, group in groups.items()]

    def _chapter(self, name: str, group: list[Row]) -> Chapter:
        ids = {row.id for row in group}
        here = [mark for mark in self.marks if ids & set(mark.ids)]
        return Chapter(
            name=name,
            rows=len(group),
            implemented=sum(bool(row.symbols) for row in group),
            claims=sum(mark.kind == "claim" for mark in here),
            errata=sum(mark.kind == "erratum" for mark in here),
            experiments=sum(bool(ids & set(entry.covers)) for entry in self.experiments.values()),
            empty=tuple(row.id for row in group if not row.symbols),
        )


def read_atlas() -> Atlas:
    """An atlas that has read all its files."""
    atlas = Atlas()
    atlas.rows, atlas.marks, atlas.experiments, atlas.probes  # noqa: B018 - asked for, so that they are read
    return atlas


def examine(mark: Mark) -> Evidence | Correction:
    """Import a claim or an erratum and run it."""
    outcome = getattr(importlib.import_module(mark.module), mark.name)()
    if not isinstance(outcome, Evidence | Correction):
        raise TypeError(f"{mark.module}.{mark.name} must return Evidence or Correction; got {type(outcome).__name__}")
    return outcome


def resolve(symbol: str) -> object:
    """The object that a dotted name stands for."""
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


def nearest(name: str, names: Iterable[str]) -> str:
    """(did you mean …?) with up to three names like `name`; nothing when none is."""
    known = list(dict.fromkeys(names))
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or [each for each in known if name in each][:3]
    return f" (did you mean {', '.join(near)}?)" if near else ""
