"""Output of rows as a table in the terminal, as JSON or as CSV, and its options."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from parnassus.cli.plain_table import plain_table
from parnassus.report.formatting import column_names, display_name, format_json, format_number
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RUNS

SUFFIXES = (".csv", ".json")


@dataclass(frozen=True)
class TableOptions:
    """Output options."""

    json: bool = False  # print JSON only
    out: Path | None = None  # also write the table to this .csv or .json file
    folder: Path = RUNS  # folder that contains the runs


def check_output(options: TableOptions) -> None:
    """Raise a RunError for a file of another format, before anything is computed."""
    if options.out is not None and options.out.suffix not in SUFFIXES:
        raise RunError(f"--out must end in {' or '.join(SUFFIXES)}; got {options.out}")


def print_rows(rows: Iterable[Mapping[str, object]], options: TableOptions) -> None:
    """Print a table, or JSON only; with --out, also write the rows to a file in the format of its suffix."""
    found = [dict(row) for row in rows]
    if options.out is not None:
        write_rows(found, options.out)
    if options.json:
        print(format_json(found))
        return
    Console(highlight=False).print(_table(found))
    if options.out is not None:
        print(f"written: {options.out}")


def write_rows(rows: Sequence[Mapping[str, object]], out: Path) -> None:
    """Write rows to a .csv or a .json file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(format_json(rows) + "\n" if out.suffix == ".json" else _csv(rows), encoding="utf-8")


def _table(rows: Sequence[Mapping[str, object]]) -> Table:
    table = plain_table()
    columns = [name for name in column_names(rows) if not any(isinstance(row.get(name), list) for row in rows)]
    for name in columns:
        is_number = all(isinstance(row.get(name), int | float | None) for row in rows)
        table.add_column(display_name(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in columns))
    return table


def _cell(value: object) -> str:
    if value is None:
        return "—"
    return format_number(value) if isinstance(value, float) else escape(str(value))


def _csv(rows: Sequence[Mapping[str, object]]) -> str:
    page = StringIO()
    writer = csv.DictWriter(page, column_names(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return page.getvalue()
