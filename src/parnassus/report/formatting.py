"""Numbers, names and tables as text, in reports, in the lab and on the command line."""

import json
from collections.abc import Iterable, Mapping
from math import isfinite

LARGE, HUGE = 9_999.5, 1e15
"""Numbers from LARGE on are rounded to integers; numbers from HUGE on are written as powers of ten."""


def format_number(value: object, digits: int = 4) -> str:
    """A number with `digits` significant digits and thousands separators; other values as text, None as a dash."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "—" if value is None else str(value)
    is_integer = isinstance(value, int) or (abs(value) < HUGE and value == int(value))
    if is_integer or LARGE <= abs(value) < HUGE:
        return f"{round(value):,}"
    return f"{value:.{digits}g}"


def display_name(name: str) -> str:
    """The name of a setting or a metric as it is displayed."""
    return name.replace("_", " ")


def column_names(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """The keys of all rows, in the order of their first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))


def format_json(value: object) -> str:
    """The value as JSON that every reader accepts: numbers that are not finite become null."""
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    """The value with None in the place of numbers that are not finite."""
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value
