"""`parnassus list`, `show` and `atlas`: answers from reading the files, without torch."""

import json
from dataclasses import asdict

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from parnassus.atlas.catalogue import Row, part_of
from parnassus.atlas.index import Atlas, UnknownError, _nearest
from parnassus.atlas.reading import Entry, Mark

console = Console(highlight=False)


def list_experiments(room: str | None) -> int:
    """The experiments by room, with their titles."""
    atlas = Atlas()
    entries = [entry for entry in atlas.experiments.values() if room in (None, entry.room)]
    if not entries:
        rooms = ", ".join(sorted({entry.room for entry in atlas.experiments.values()}))
        raise UnknownError(f"no room {room!r} has experiments; those that have: {rooms}")
    table = _table("room", "experiment", "what it shows")
    last = ""
    for entry in entries:
        table.add_row("" if entry.room == last else f"[bold]{entry.room}[/]", entry.name, escape(entry.title))
        last = entry.room
    console.print(table)
    console.print("\nrun one: parnassus run NAME (any unambiguous beginning of a name will do)", style="dim")
    return 0


def show_anything(name: str) -> int:
    """An id or part of one, an experiment, a room, or a symbol."""
    atlas = Atlas()
    if name in atlas.rows:
        _show_row(atlas, atlas.rows[name])
        return 0
    under = [row for row in atlas.rows.values() if part_of(name, row.id)]
    of_symbol = [row for row in atlas.rows.values() if any(symbol.split(".")[-1] == name for symbol in row.symbols)]
    rooms = {entry.room for entry in atlas.experiments.values()} | {mark.room for mark in atlas.marks}
    if under or of_symbol:
        _print_rows(atlas, under or of_symbol)
    elif name in rooms:
        _show_room(atlas, name)
    else:
        try:
            _show_experiment(atlas, atlas.experiment(name))
        except UnknownError as error:
            near = _nearest(name, [*atlas.rows, *rooms, *atlas.experiments])
            raise (
                error
                if "could be" in str(error)
                else UnknownError(f"{name!r} is no id, experiment, room or symbol{near}")
            ) from None
    return 0


def show_atlas(part: str | None, *, as_json: bool) -> int:
    """Coverage per chapter, or the rows under `part`."""
    atlas = Atlas()
    chosen = [row for row in atlas.rows.values() if part is None or part_of(part, row.id)]
    if not chosen:
        raise UnknownError(f"no row lies under {part!r}{_nearest(part or '', list(atlas.rows))}")
    if as_json:
        print(json.dumps([_as_json(atlas, row) for row in chosen], ensure_ascii=False, indent=1))
    elif part is None:
        _print_chapters(atlas)
    else:
        _print_rows(atlas, chosen)
    return 0


def _as_json(atlas: Atlas, row: Row) -> dict[str, object]:
    marked = atlas.claims_of(row.id)
    return {
        **asdict(row),
        "claims": [f"{mark.module}.{mark.name}" for mark in marked if mark.kind == "claim"],
        "errata": [f"{mark.module}.{mark.name}" for mark in marked if mark.kind == "erratum"],
        "experiments": [entry.name for entry in atlas.experiments_of(row.id)],
    }


def _print_chapters(atlas: Atlas) -> None:
    table = _table("chapter", *["rows", "implemented", "claims", "errata", "experiments"], "rows still empty")
    for column in table.columns[1:6]:
        column.justify = "right"
    chapters = atlas.chapters()
    for chapter in chapters:
        numbers = (chapter.rows, chapter.implemented, chapter.claims, chapter.errata, chapter.experiments)
        shown = [str(number) if number else "[dim]·[/]" for number in numbers]
        table.add_row(
            f"[bold]{chapter.name}[/]", *shown, f"{len(chapter.empty)}" if chapter.empty else "[green]none[/]"
        )
    console.print(table)
    total, built = sum(chapter.rows for chapter in chapters), sum(chapter.implemented for chapter in chapters)
    console.print(f"\n{built} of {total} rows implemented; the rows of a chapter: parnassus atlas B4", style="dim")


def _print_rows(atlas: Atlas, rows: list[Row]) -> None:
    table = _table("id", "title", "source", "implemented by", "claims", "experiments")
    for row in rows:
        symbols = "\n".join(symbol.removeprefix("parnassus.") for symbol in row.symbols)
        runs = "\n".join(entry.name for entry in atlas.experiments_of(row.id))
        table.add_row(
            row.id, escape(row.title), row.source, symbols or "[dim]empty[/]", str(len(atlas.claims_of(row.id))), runs
        )
    console.print(table)


def _show_row(atlas: Atlas, row: Row) -> None:
    console.print(f"[bold]{row.id}  {escape(row.title)}[/]")
    console.print(f"[dim]{row.kind} in {row.subject}, {row.source}[/]\n\n{escape(row.about)}")
    if row.formula:
        console.print(f"\n    {escape(row.formula)}")
    if row.note:
        console.print(f"\n[dim]note:[/] {escape(row.note)}")
    console.print("\n[dim]implemented by[/]", "".join(f"\n  {symbol}" for symbol in row.symbols) or "nothing yet")
    _print_marks(atlas.claims_of(row.id), f"parnassus check {row.id}")
    for entry in atlas.experiments_of(row.id):
        console.print(f"\n[dim]run it:[/] parnassus run {entry.name}   [dim]{escape(entry.title)}[/]")


def _print_marks(marked: list[Mark], command: str) -> None:
    for kind in ("claim", "erratum"):
        chosen = [mark for mark in marked if mark.kind == kind]
        if chosen:
            console.print(f"\n[dim]{'claims' if kind == 'claim' else 'errata'} (check them: {command})[/]")
        for mark in chosen:
            console.print(f"  {escape(mark.statement.splitlines()[0])}")
            if kind == "erratum":
                console.print(f"    [dim]printed:[/] {escape(mark.printed)}\n    [dim]right:[/]   {escape(mark.right)}")


def _show_room(atlas: Atlas, room: str) -> None:
    marked = [mark for mark in atlas.marks if mark.room == room]
    built = [row for row in atlas.rows.values() if any(symbol.split(".")[1] == room for symbol in row.symbols)]
    console.print(f"[bold]parnassus.{room}[/]: {len(built)} rows, {len(marked)} claims and errata\n")
    list_experiments(room)
    _print_marks(marked, f"parnassus check {room}")


def _show_experiment(atlas: Atlas, entry: Entry) -> None:
    console.print(f"[bold]{entry.name}[/]  [dim]in {entry.room}[/]\n{escape(entry.title)}")
    if entry.text:
        console.print(f"\n{escape(entry.text)}")
    covered = [atlas.rows[row_id] for row_id in entry.covers if row_id in atlas.rows]
    for row in covered:
        console.print(f"\n[dim]{row.id}, {row.source}:[/] {escape(row.title)}")
        if row.formula:
            console.print(f"    {escape(row.formula)}")
    table = _table("flag", "default", "what it is")
    for setting in entry.settings:
        table.add_row(f"--{setting.name.replace('_', '-')}", escape(setting.default), escape(setting.help))
    console.print("")
    console.print(table)
    if entry.expected:
        console.print("\n[dim]a good run gives[/] " + ", ".join(f"{name} {band}" for name, band in entry.expected))
    console.print(f"\n[dim]run it:[/] parnassus run {entry.name} --profile {'|'.join(('laptop', *entry.profiles))}")
    if entry.generative:
        console.print("[dim]then draw from it:[/] parnassus sample last")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
