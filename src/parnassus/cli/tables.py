"""Output of rows as a table in the terminal, as JSON or as CSV."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from math import isfinite
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from parnassus.cli.plain_table import plain_table
from parnassus.report.formatting import column_names, format_number
from parnassus.runs.errors import RunError


def print_rows(rows: Iterable[Mapping[str, object]], *, as_json: bool, out: Path | None = None) -> None:
    """Print a table, or JSON only; if `out` is given, also write the rows to it in the format of its suffix."""
    found = [dict(row) for row in rows]
    if out is not None:
        write_rows(found, out)
    if as_json:
        print(_json(found))
        return
    Console(highlight=False).print(_table(found))
    if out is not None:
        print(f"written: {out}")


def write_rows(rows: Sequence[Mapping[str, object]], out: Path) -> None:
    """Write rows to a .csv or a .json file."""
    if out.suffix == ".json":
        text = _json(rows) + "\n"
    elif out.suffix == ".csv":
        page = StringIO()
        writer = csv.DictWriter(page, column_names(rows), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        text = page.getvalue()
    else:
        raise RunError(f"--out must end in .csv or .json; got {out}")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")


def _table(rows: Sequence[Mapping[str, object]]) -> Table:
    table = plain_table()
    columns = [name for name in column_names(rows) if not any(isinstance(row.get(name), list) for row in rows)]
    for name in columns:
        is_number = all(isinstance(row.get(name), int | float | None) for row in rows)
        table.add_column(name.replace("_", " "), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in columns))
    return table


def _cell(value: object) -> str:
    if value is None:
        return "—"
    return format_number(value) if isinstance(value, float) else escape(str(value))


def _json(rows: Sequence[Mapping[str, object]]) -> str:
    """The rows as JSON; numbers that are not finite become null."""
    plain = [
        {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in row.items()}
        for row in rows
    ]
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
