"""Cells of a table as text: missing cells, numbers and dates."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "?"})
"""Cells that mean that a value is missing, in lower case."""
DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T]\d{1,2}:\d{2}(:\d{2})?)?")
DAY_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%d/%m/%Y", "%m/%d/%Y")
TIME_FORMATS = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S")
SECONDS_PER_DAY = 86_400


def is_missing(cell: str) -> bool:
    """Whether a cell means that its value is missing."""
    return cell.lower() in MISSING


def is_number(cell: str) -> bool:
    """Whether a cell is a number, possibly infinite, in decimal notation."""
    try:
        value = float(cell)
    except ValueError:
        return False
    return not math.isnan(value) and "_" not in cell


def looks_like_date(cell: str) -> bool:
    return DATE.fullmatch(cell) is not None


def date_formats(cells: Sequence[str]) -> tuple[str, ...]:
    """The formats in which all cells are dates; two if the day and the month cannot be told apart."""
    if not cells or not all(map(looks_like_date, cells)):
        return ()
    formats = (day + time for time in TIME_FORMATS for day in DAY_FORMATS)
    return tuple(each for each in formats if all(parse_date(cell, each) is not None for cell in cells))


def parse_date(cell: str, date_format: str) -> float | None:
    """Days since 1 January 1970, or None if the cell is not a date in this format."""
    try:
        return datetime.strptime(cell, date_format).replace(tzinfo=UTC).timestamp() / SECONDS_PER_DAY
    except (ValueError, OverflowError):
        return None
