"""CSV files as text: the cells of every row with its line in the file, and the column names."""

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.data.errors import DataError
from parnassus.data.files.cells import is_missing, is_number, looks_like_date
from parnassus.data.files.idx import read_gzipped
from parnassus.notices import notify

DELIMITERS = "\t;,|"  # the comma after those beside which it may be a decimal comma
INSPECTED_ROWS = 100  # from which the delimiter is determined
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")

CsvRow = tuple[int, list[str]]  # line of the file on which the row starts, cells


@dataclass(frozen=True)
class CsvTable:
    """A CSV file as text: the cells of every row with its line in the file, and the column names.

    Columns of a file without names are called column 1, column 2, … One row is enough, for `parnassus explain`.
    """

    path: Path
    columns: tuple[str, ...]
    rows: list[CsvRow]
    has_header: bool = True

    @classmethod
    def read(cls, path: Path | str) -> "CsvTable":
        return cls.parse(read_gzipped(Path(path)), Path(path))

    @classmethod
    def parse(cls, content: bytes, path: Path) -> "CsvTable":
        """The table in the bytes of a file; `path` appears in error messages."""
        rows, delimiter = _split_rows(_decode(content, path), path)
        if not rows:
            raise DataError(f"{path} has no rows of data.")
        first, rest = rows[0][1], rows[1:]
        has_header = is_header(first, [cells for _, cells in rest])
        if has_header and not rest:
            raise DataError(f"{path} has no rows of data.")
        for line, cells in rest:
            if len(cells) != len(first):
                raise DataError(f"{path}, line {line}: expected {len(first)} columns, got {len(cells)}.")
        columns = _column_names(first) if has_header else tuple(f"column {n}" for n in range(1, len(first) + 1))
        table = cls(path, columns, rest if has_header else rows, has_header)
        notify(f"{path.name}: the first line {'has the column names' if has_header else 'is data, not column names'}")
        return table._with_decimal_points(delimiter)._without_row_numbers(first if has_header else [])

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def column_index(self, name: str) -> int:
        """Index of the column with this name, from 0."""
        if name not in self.columns:
            raise DataError(f"{self.path} has no column {name!r}; its columns are {', '.join(self.columns)}.")
        return self.columns.index(name)

    def cells(self, index: int) -> list[str]:
        """The cells of the column with this index."""
        return [cells[index] for _, cells in self.rows]

    def take(self, rows: Sequence[int]) -> "CsvTable":
        """The table with the rows of these indices."""
        return replace(self, rows=[self.rows[row] for row in rows])

    def place(self, row: int, index: int) -> str:
        """The file, line and column of a cell, for an error message."""
        return f"{self.path}, line {self.rows[row][0]}, column {self.columns[index]!r}"

    def numbers(self, indices: Sequence[int], *, allow_missing: bool = False) -> Float[Tensor, "rows columns"]:
        """The columns with these indices in double precision; missing cells are NaN if they are allowed.

        Errors name the line of a cell that is not a finite number.
        """
        values = torch.tensor(
            [
                [self._number(row, index, allow_missing=allow_missing) for index in indices]
                for row in range(len(self.rows))
            ],
            dtype=torch.float64,
        )
        return values.view(len(self.rows), len(indices))

    def _number(self, row: int, index: int, *, allow_missing: bool) -> float:
        cell = self.rows[row][1][index]
        if allow_missing and is_missing(cell):
            return math.nan
        if not (is_number(cell) and math.isfinite(float(cell))):
            hint = "; dates are not numbers" if looks_like_date(cell) else ""
            raise DataError(f"{self.place(row, index)}: {cell or 'an empty cell'} is not a finite number{hint}.")
        return float(cell)

    def _with_decimal_points(self, delimiter: str) -> "CsvTable":
        """Numbers with decimal commas, which files with another delimiter may contain, with decimal points."""
        every_cell = [cell for _, cells in self.rows for cell in cells]
        if delimiter == "," or not any(map(DECIMAL_COMMA.fullmatch, every_cell)):
            return self
        if any(map(DECIMAL_POINT.fullmatch, every_cell)):
            return self
        notify(f"{self.path.name}: numbers have decimal commas")
        rows = [
            (line, [cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells])
            for line, cells in self.rows
        ]
        return replace(self, rows=rows)

    def _without_row_numbers(self, header: Sequence[str]) -> "CsvTable":
        """The table without a first column that has no name and numbers the rows, as pandas writes it."""
        numbers = self.cells(0)
        counts = [[str(start + row) for row in range(len(numbers))] for start in (0, 1)]
        if not header or header[0] or self.width < 2 or numbers not in counts:
            return self
        notify(f"{self.path.name}: the first column, which numbers the rows, is left out")
        return CsvTable(self.path, self.columns[1:], [(line, cells[1:]) for line, cells in self.rows])


def is_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has the names of the columns: its types differ from those of the rows below.

    It has if a word stands above a column of numbers or dates. Otherwise no word may occur again in its column, and
    numbers must be consecutive integers, such as 0, 1, 2, which pandas writes.
    """
    columns = [
        [row[index] for row in rows if index < len(row) and not is_missing(row[index])] for index in range(len(first))
    ]
    pairs = list(zip(first, columns, strict=True))
    words = [(cell, below) for cell, below in pairs if _is_word(cell)]
    if any(below and not any(map(_is_word, below)) for _, below in words):
        return True
    numbers = [(cell, below) for cell, below in pairs if is_number(cell)]
    if any(map(looks_like_date, first)) or not words + numbers or any(cell in below for cell, below in words):
        return False
    names = [cell for cell, _ in words]
    if not numbers:
        return len(set(names)) == len(names)
    if not rows or not _are_consecutive([cell for cell, _ in numbers]):
        return False
    if words:
        return numbers[0][0] == "0" or any(len(set(below)) < len(below) for _, below in words)
    return numbers[0][0] == "0" and any(not any(map(_is_integer, below)) for _, below in numbers)


def _is_word(cell: str) -> bool:
    return not is_missing(cell) and not is_number(cell) and not looks_like_date(cell)


def _is_integer(cell: str) -> bool:
    return cell.lstrip("+-").isdecimal()


def _are_consecutive(numbers: Sequence[str]) -> bool:
    """Whether these are at least two consecutive integers such as 0, 1, 2."""
    first = numbers[0]
    if len(numbers) < 2 or not (first.isascii() and first.isdecimal()) or len(first) > 9:
        return False
    return [str(int(first) + index) for index in range(len(numbers))] == list(numbers)


def _decode(content: bytes, path: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: byte {error.start} is invalid; save it as UTF-8.") from error


def _split_rows(text: str, path: Path) -> tuple[list[CsvRow], str]:
    """The rows that are not empty, and the delimiter with which the first ones have the same number of columns."""
    consistent = [delimiter for delimiter in DELIMITERS if _has_columns(text, delimiter)]
    first_line = text.split("\n", maxsplit=1)[0]
    delimiter = consistent[0] if consistent else max(",;\t|", key=first_line.count)
    try:
        return _read_rows(text, delimiter), delimiter
    except csv.Error as error:
        raise DataError(f"{path} is not a valid CSV file: {error}.") from error


def _has_columns(text: str, delimiter: str) -> bool:
    """Whether the first rows have the same number of columns, more than one, with this delimiter."""
    try:
        widths = {len(cells) for _, cells in _read_rows(text, delimiter, INSPECTED_ROWS)}
    except csv.Error:
        return False
    return len(widths) == 1 and widths.pop() > 1


def _read_rows(text: str, delimiter: str, limit: int | None = None) -> list[CsvRow]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    rows: list[CsvRow] = []
    start = 1
    for cells in reader:
        stripped = [cell.strip() for cell in cells]
        if any(stripped):
            rows.append((start, stripped))
        start = reader.line_num + 1
        if len(rows) == limit:
            break
    return rows


def _column_names(header: Sequence[str]) -> tuple[str, ...]:
    """The names of a header; repeated and empty ones get the number of their column."""
    names: list[str] = []
    for number, name in enumerate(header, start=1):
        unique = name if name and header.count(name) == 1 else f"{name or 'column'} {number}"
        while unique in names or (unique != name and unique in header):
            unique += "_"
        names.append(unique)
    return tuple(names)
