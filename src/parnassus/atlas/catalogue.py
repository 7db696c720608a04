"""The rows of the atlas: one per item of the sources, with a description and the symbols that implement it."""

import tomllib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

KINDS = ("concept", "formula", "method", "theorem", "experiment", "data", "figure", "exercise", "listing")
SOURCES = {"B": "book", "D": "Diehl", "C": "Diehl", "Z": "Zhao"}


@dataclass(frozen=True)
class AtlasRow:
    """One item of the sources: its description, its place and the symbols that implement it."""

    id: str
    title: str
    source: str
    kind: str
    subject: str
    about: str
    formula: str = ""
    symbols: tuple[str, ...] = ()
    note: str = ""
    no_code: str = ""  # why the item needs no implementation

    @property
    def chapter(self) -> str:
        return chapter_of(self.id)


class RowError(ValueError):
    """A row does not conform to the schema; the message contains the file and the row."""


ROWS = Path(__file__).with_name("rows")


def row_files(folder: Path = ROWS) -> list[Path]:
    return sorted(folder.glob("*.toml"))


def sort_rows(rows: Iterable[AtlasRow]) -> list[AtlasRow]:
    """Rows in the order of the sources: the book, Diehl's notes, Zhao's notes."""
    return sorted(rows, key=lambda row: (list(SOURCES).index(row.id[0]), *_numbers(row.id)))


def chapter_of(row_id: str) -> str:
    """The part of an id before the first dot or dash: B13, D1, Z11."""
    return row_id.replace("-", ".").split(".")[0]


def describe_coverage(rows: Collection[AtlasRow]) -> str:
    """The numbers of implemented rows, of all rows, and of those that need no implementation, in words."""
    implemented, no_code = sum(bool(row.symbols) for row in rows), sum(bool(row.no_code) for row in rows)
    rest = f", {no_code} need{'s' * (no_code == 1)} no implementation" if no_code else ""
    return f"{implemented} of {len(rows)} implemented{rest}"


def is_part_of(part: str, whole_id: str) -> bool:
    """Whether `whole_id` equals `part` or belongs to it: B1 contains B1.2-8 but not B13.2-1."""
    return whole_id == part or whole_id.startswith((f"{part}.", f"{part}-"))


def read_rows(path: Path) -> list[AtlasRow]:
    """The rows of a file, in the order of the file."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("row", [])
    found = []
    for entry in entries:
        try:
            row = AtlasRow(**{**entry, "symbols": tuple(entry.get("symbols", ()))})
        except TypeError as error:
            raise RowError(f"{path.name}, {entry.get('id', 'a row without id')}: {error}") from None
        if row.kind not in KINDS:
            raise RowError(f"{path.name}, {row.id}: kind must be one of {', '.join(KINDS)}; got {row.kind!r}")
        if row.id[:1] not in SOURCES:
            raise RowError(f"{path.name}: an id starts with one of {', '.join(SOURCES)}; got {row.id!r}")
        found.append(row)
    return found


def _numbers(row_id: str) -> tuple[list[int], int]:
    """A sort key: B13.2.5-3 becomes ([13, 2, 5], 3), so items of a section precede those of its subsections."""
    section, _, item = row_id[1:].partition("-")
    return [_number(piece) for piece in section.split(".")], _number(item)


def _number(piece: str) -> int:
    return int("".join(filter(str.isdigit, piece)) or 99)
