"""The columns of a table as features: numbers, categories and dates, with the values that replace missing cells."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from math import isfinite, isnan
from statistics import median
from typing import ClassVar, Literal, TypeAlias

from parnassus.data.errors import DataError
from parnassus.data.files.cells import date_formats, is_missing, is_number, parse_date
from parnassus.data.files.csv_table import CsvTable
from parnassus.notices import notify

CategoryEncoding: TypeAlias = Literal["one_hot", "ordinal"]
EPOCH = datetime(1970, 1, 1)
MAX_LEVELS = 50
"""Text columns with more distinct values, such as names, are left out, unless they are requested."""


@dataclass(frozen=True)
class NumberColumn:
    """Numbers; missing cells are replaced by `fill`, the median of the training rows."""

    name: str
    fill: float
    kind: ClassVar[str] = "number"

    @classmethod
    def fit(cls, table: CsvTable, index: int) -> "NumberColumn":
        values = [float(cell) for cell in table.cells(index) if not is_missing(cell)]
        return cls(table.columns[index], float(median(values)) if values else 0.0)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name,)

    def encode(self, table: CsvTable, index: int) -> list[list[float]]:
        numbers = table.numbers([index], allow_missing=True)[:, 0].tolist()
        return [[self.fill if isnan(number) else number] for number in numbers]

    @property
    def fill_text(self) -> str:
        return f"{self.fill:g}"

    def describe(self) -> str:
        return self.name

    def to_plain(self) -> dict[str, object]:
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class DateColumn:
    """Dates as days since 1 January 1970; missing cells are replaced by `fill`, the median of the training rows."""

    name: str
    date_format: str
    fill: float
    kind: ClassVar[str] = "date"

    @classmethod
    def fit(cls, table: CsvTable, index: int, date_format: str) -> "DateColumn":
        days = [parse_date(cell, date_format) for cell in table.cells(index) if not is_missing(cell)]
        known = [day for day in days if day is not None]
        return cls(table.columns[index], date_format, float(median(known)) if known else 0.0)

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name,)

    def encode(self, table: CsvTable, index: int) -> list[list[float]]:
        return [[self._day(table, row, index)] for row in range(len(table.rows))]

    def _day(self, table: CsvTable, row: int, index: int) -> float:
        cell = table.rows[row][1][index]
        day = self.fill if is_missing(cell) else parse_date(cell, self.date_format)
        if day is None:
            raise DataError(f"{table.place(row, index)}: {cell} is not a date of the form {self.date_format}.")
        return day

    @property
    def fill_text(self) -> str:
        return str((EPOCH + timedelta(days=self.fill)).date())

    def describe(self) -> str:
        return f"{self.name} (days since 1970-01-01)"

    def to_plain(self) -> dict[str, object]:
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class CategoryColumn:
    """Text with a few distinct values; missing cells are replaced by `fill`, the most frequent value in training.

    One-hot: one feature per level, or a single one if there are two levels. Ordinal: the index of the level in
    alphabetical order. A value that did not occur in training is none of the levels, or is replaced if ordinal.
    """

    name: str
    levels: tuple[str, ...]
    fill: str
    encoding: CategoryEncoding = "one_hot"
    kind: ClassVar[str] = "category"

    @classmethod
    def fit(cls, table: CsvTable, index: int, encoding: CategoryEncoding) -> "CategoryColumn":
        counts = Counter(cell for cell in table.cells(index) if not is_missing(cell))
        fill = min(counts, key=lambda level: (-counts[level], level), default="")
        return cls(table.columns[index], tuple(sorted(counts)), fill, encoding)

    @property
    def features(self) -> tuple[str, ...]:
        if self.encoding == "ordinal":
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self._encoded_levels)

    @property
    def _encoded_levels(self) -> tuple[str, ...]:
        return self.levels[1:] if len(self.levels) == 2 else self.levels

    def encode(self, table: CsvTable, index: int) -> list[list[float]]:
        cells = [self.fill if is_missing(cell) else cell for cell in table.cells(index)]
        unknown = sorted(set(cells) - {*self.levels})
        if unknown:
            treated = f"{self.fill!r}" if self.encoding == "ordinal" else "none of the known values"
            known = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
            notify(
                f"{table.path.name}: column {self.name!r} has values unknown in training, {known}: read as {treated}"
            )
        if self.encoding == "one_hot":
            return [[float(cell == level) for level in self._encoded_levels] for cell in cells]
        return [[float(self.levels.index(cell if cell in self.levels else self.fill))] for cell in cells]

    @property
    def fill_text(self) -> str:
        return self.fill

    def describe(self) -> str:
        return f"{self.name} ({len(self.levels)} values, {self.encoding.replace('_', '-')})"

    def to_plain(self) -> dict[str, object]:
        return {"kind": self.kind, **asdict(self)}


PreparedColumn: TypeAlias = NumberColumn | DateColumn | CategoryColumn


def fit_column(table: CsvTable, index: int, encoding: CategoryEncoding, *, is_requested: bool) -> PreparedColumn | str:
    """The column as features, or the reason why it is left out. Raises for numbers among which there are words."""
    cells = [(row, cell) for row, cell in enumerate(table.cells(index)) if not is_missing(cell)]
    words = [(row, cell) for row, cell in cells if not is_number(cell)]
    if not cells:
        return "it is empty"
    if not words:
        table.numbers([index], allow_missing=True)  # raises for an infinite number
        return NumberColumn.fit(table, index)
    if 2 * len(words) <= len(cells):
        row, cell = words[0]
        raise DataError(
            f"{table.place(row, index)}: {cell} is not a finite number, and most cells of this column are numbers; "
            "correct it, or leave the column out with --drop."
        )
    formats = date_formats([cell for _, cell in cells])
    if formats:
        ambiguous = "it has dates whose day and month cannot be told apart; write them as 2020-12-31"
        return DateColumn.fit(table, index, formats[0]) if len(formats) == 1 else ambiguous
    count = len({cell for _, cell in cells})
    too_many = count > MAX_LEVELS and not is_requested
    return f"it has {count} different texts" if too_many else CategoryColumn.fit(table, index, encoding)


def column_from_plain(plain: Mapping[str, object]) -> PreparedColumn:
    """The column that `to_plain` describes; raises a ValueError for any other content."""
    match dict(plain):
        case {"kind": "number", "name": str(name), "fill": float() | int() as fill, **rest} if not rest:
            return NumberColumn(name, _finite(fill))
        case {
            "kind": "date",
            "name": str(name),
            "date_format": str(date_format),
            "fill": float() | int() as fill,
            **rest,
        } if not rest:
            return DateColumn(name, date_format, _finite(fill))
        case {
            "kind": "category",
            "name": str(name),
            "levels": list() | tuple() as levels,
            "fill": str(fill),
            "encoding": "one_hot" | "ordinal" as encoding,
            **rest,
        } if not rest and fill in levels:
            return CategoryColumn(name, _strings(levels), fill, encoding)
    raise ValueError(f"a column must be of kind number, date or category, with its values; got {dict(plain)}")


def _finite(number: float) -> float:
    if not isfinite(number):
        raise ValueError(f"the value that replaces missing cells must be finite; got {number}")
    return float(number)


def _strings(values: Sequence[object]) -> tuple[str, ...]:
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"levels must be texts; got {list(values)}")
    return tuple(map(str, values))
