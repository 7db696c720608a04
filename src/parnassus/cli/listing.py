"""`parnassus list`, `show` and `atlas`: print entries of the index, without importing torch."""

import json
from collections.abc import Callable
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from parnassus.atlas.catalogue import AtlasRow, describe_coverage, is_part_of
from parnassus.atlas.declarations import Entry, Mark
from parnassus.atlas.index import AmbiguousError, Atlas, UnknownError, load_atlas, nearest_names
from parnassus.atlas.settings import flag_name
from parnassus.atlas.symbols import ends_with, exported_symbols, public_symbols
from parnassus.cli.plain_table import plain_table
from parnassus.cli.symbol_page import print_symbol
from parnassus.setting_types import DATA_NAMES

console = Console(highlight=False)


def list_experiments(room: str | None) -> int:
    """Print the experiments by room, with their titles."""
    atlas = load_atlas()
    entries = [entry for entry in atlas.experiments.values() if room in (None, entry.room)]
    if not entries:
        rooms = ", ".join(sorted({entry.room for entry in atlas.experiments.values()}))
        raise UnknownError(f"no subject {room!r} has experiments; those that have: {rooms}")
    indent = 4 + max(len(entry.name) for entry in entries)
    for place, group in groupby(entries, key=lambda entry: entry.room):
        console.print(f"\n[bold]{place}[/]" if room is None else f"[bold]{place}[/]")
        lines = []
        for entry in group:  # as plain text: a table of rich takes longer than everything else
            first, *others = wrap(entry.title, max(20, console.width - indent)) or [""]
            lines += [f"  {entry.name:<{indent - 2}}{first}", *(" " * indent + line for line in others)]
        console.out("\n".join(lines), highlight=False)
    console.print("\nrun one: parnassus run NAME (an unambiguous prefix of the name is enough)", style="dim")
    return 0


def show_anything(name: str) -> int:
    """Print an id or a part of one, an experiment, a room, a symbol or a data set; symbols in any case."""
    atlas = load_atlas()
    if name.upper() in atlas.rows:
        _show_row(atlas, atlas.rows[name.upper()])
        return 0
    under = [row for row in atlas.rows.values() if is_part_of(name.upper(), row.id)]
    if under:
        _print_rows(atlas, under)
    elif name.lower().replace("-", "_") in DATA_NAMES:
        _show_data(name)
    elif _show_symbols(atlas, name, str):
        pass
    elif name in atlas.rooms:
        _show_room(atlas, name)
    elif name in atlas.experiments:
        _show_experiment(atlas, atlas.experiments[name])
    elif _show_symbols(atlas, name, str.casefold):
        pass
    elif Path(name).expanduser().exists():
        _show_data(name)
    else:
        _show_experiment(atlas, _find_experiment(atlas, name))
    return 0


def _show_symbols(atlas: Atlas, name: str, case: Callable[[str], str]) -> bool:
    """Print the symbols that `name` is the end of, compared after `case`, and their rows; False if there are none."""
    dotted = dict.fromkeys(symbol for row in atlas.rows.values() for symbol in row.symbols)
    found = [
        symbol
        for symbol in public_symbols(dotted)
        if any(ends_with(case(each), case(name)) for each in symbol.dotted_names)
    ]
    names = {symbol.dotted_names[0] for symbol in found} | {
        each
        for each in dotted
        if ends_with(case(each), case(name))  # also methods
    }
    for symbol in found:
        print_symbol(console, symbol)
    rows = [row for row in atlas.rows.values() if names & set(row.symbols)]
    if rows:
        _print_rows(atlas, rows)
    return bool(names)


def _show_data(name: str) -> None:
    """Print the card of a data set, which is a built-in name or a path."""
    from parnassus.data.cards import data_card  # loads torch, which other entries do not need

    card = data_card(name)
    console.print(f"[bold]{escape(card.name)}[/]\n{escape(card.about)}\n")
    table = plain_table()
    table.show_header = False
    for _ in range(2):
        table.add_column(overflow="fold")
    for label, text in card.lines:
        table.add_row(f"[dim]{label}[/]", escape(text))
    console.print(table)


def _find_experiment(atlas: Atlas, name: str) -> Entry:
    try:
        return atlas.experiment(name)
    except AmbiguousError:
        raise
    except UnknownError:
        symbols = [symbol.name for symbol in exported_symbols()]
        near = nearest_names(name, [*atlas.experiments, *atlas.rooms, *symbols, *atlas.rows])
        raise UnknownError(f"{name!r} is not an id, an experiment, a subject, a data set or a symbol{near}") from None


def show_atlas(part: str | None, *, as_json: bool) -> int:
    """Print the coverage per chapter, or the rows of `part`."""
    atlas = load_atlas()
    chosen = [row for row in atlas.rows.values() if part is None or is_part_of(part, row.id)]
    if not chosen:
        raise UnknownError(f"no row matches {part!r}{nearest_names(part or '', atlas.rows)}")
    if as_json:
        print(json.dumps([_as_json(atlas, row) for row in chosen], ensure_ascii=False, indent=1))
    elif part is None:
        _print_chapters(atlas)
    else:
        _print_rows(atlas, chosen)
    return 0


def _as_json(atlas: Atlas, row: AtlasRow) -> dict[str, object]:
    marked = atlas.claims_of(row.id)
    return {
        **asdict(row),
        "claims": [f"{mark.module}.{mark.name}" for mark in marked if mark.kind == "claim"],
        "errata": [f"{mark.module}.{mark.name}" for mark in marked if mark.kind == "erratum"],
        "experiments": [entry.name for entry in atlas.experiments_of(row.id)],
    }


def _print_chapters(atlas: Atlas) -> None:
    table = plain_table("chapter", *["rows", "implemented", "claims", "errata", "experiments"], "not implemented yet")
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
    rows = describe_coverage(atlas.rows.values())
    console.print(f"\nrows of the sources: {rows}; the rows of a chapter: parnassus atlas B4", style="dim")


def _print_rows(atlas: Atlas, rows: list[AtlasRow]) -> None:
    table = plain_table("id", "title", "implementation")
    for row in rows:
        built = [_symbol(symbol, console.width // 2 - 7) for symbol in row.symbols] or [
            f"[dim]{row.no_code or 'not implemented yet'}[/]"
        ]
        built += _counts(atlas.claims_of(row.id))
        built += [f"[dim]run[/] {entry.name}" for entry in atlas.experiments_of(row.id)]
        table.add_row(row.id, f"{escape(row.title)}\n[dim]{row.source}[/]", "\n".join(built))
    console.print(table)


def _reason(row: AtlasRow) -> str:
    """Why a row has no symbols."""
    return f"needs no implementation: {row.no_code}" if row.no_code else "not implemented yet"


def _symbol(symbol: str, width: int) -> str:
    """A dotted name, with a line break before its last part if it is longer than `width`."""
    short = symbol.removeprefix("parnassus.")
    module, _, name = short.rpartition(".")
    return short if len(short) <= width else f"{module}.\n  {name}"


def _counts(marked: list[Mark]) -> list[str]:
    claims, errata = (sum(mark.kind == kind for mark in marked) for kind in ("claim", "erratum"))
    counts = [f"{claims} claim{'s' * (claims > 1)}"] * bool(claims)
    counts += [f"{errata} errat{'a' if errata > 1 else 'um'}"] * bool(errata)
    return [", ".join(counts)] if counts else []


def _show_row(atlas: Atlas, row: AtlasRow) -> None:
    console.print(f"[bold]{row.id}  {escape(row.title)}[/]")
    console.print(f"[dim]{row.kind} in {row.subject}, {row.source}[/]\n\n{escape(row.about)}")
    if row.formula:
        console.print("")
        _print_indented(escape(row.formula), 4)
    if row.note:
        console.print(f"\n[dim]note:[/] {escape(row.note)}")
    if row.symbols:
        console.print("\n[dim]implemented by[/]", "".join(f"\n  {symbol}" for symbol in row.symbols))
    else:
        console.print(f"\n{_reason(row)}", style="dim")
    _print_marks(atlas.claims_of(row.id), f"parnassus check {row.id}")
    for entry in atlas.experiments_of(row.id):
        console.print(f"\n[dim]run it:[/] parnassus run {entry.name}   [dim]{escape(entry.title)}[/]")


def _print_marks(marked: list[Mark], command: str) -> None:
    for kind in ("claim", "erratum"):
        chosen = [mark for mark in marked if mark.kind == kind]
        if chosen:
            console.print(f"\n[dim]{'claims' if kind == 'claim' else 'errata'} (check them: {command})[/]")
        for mark in chosen:
            _print_indented(f"· {escape(mark.summary)}", 4, first=2)
            if kind == "erratum":
                _print_indented(f"[dim]printed:[/]   {escape(mark.printed)}", 15, first=4)
                _print_indented(f"[dim]corrected:[/] {escape(mark.right)}", 15, first=4)


def _print_indented(text: str, indent: int, *, first: int | None = None) -> None:
    """Print wrapped text indented by `indent` columns, its first line by `first`."""
    lines = Text.from_markup(text).wrap(console, max(20, console.width - indent))
    for number, line in enumerate(lines):
        console.print(Padding(line, (0, 0, 0, indent if number or first is None else first)))


def _show_room(atlas: Atlas, room: str) -> None:
    marked = [mark for mark in atlas.marks if mark.room == room]
    rows = describe_coverage(atlas.rows_in(room))
    console.print(f"[bold]{room}[/]: rows of the sources: {rows}; {len(marked)} claims and errata")
    if any(entry.room == room for entry in atlas.experiments.values()):
        console.print("")
        list_experiments(room)
    _print_marks(marked, f"parnassus check {room}")


def _show_experiment(atlas: Atlas, entry: Entry) -> None:
    console.print(f"[bold]{entry.name}[/]  [dim]in {entry.room}[/]\n{escape(entry.title)}")
    if entry.text:
        console.print(f"\n{escape(entry.text)}")
    for row in atlas.rows_of(entry):
        console.print("")
        _print_indented(f"[dim]{row.id}, {row.source}:[/] {escape(row.title)}", 2, first=0)
        if row.formula:
            _print_indented(escape(row.formula), 4)
    table = plain_table("flag", "default", "description")
    for setting in entry.settings:
        table.add_row(setting.flag, escape(setting.default.strip("'")), escape(setting.help))
    console.print("")
    console.print(table)
    for name, presets in entry.tuned.items():
        for value, preset in presets.items():
            changed = ", ".join(f"{flag_name(key)} {number}" for key, number in preset.items())
            _print_indented(f"[dim]defaults with {flag_name(name)} {value}:[/] {changed}", 4, first=0)
    if entry.expected:
        table = plain_table("result", "expected", "description")
        for name, band in entry.expected.items():
            table.add_row(name.replace("_", " "), str(band), escape(band.about))
        console.print("")
        console.print(table)
    console.print(f"\n[dim]run it:[/] parnassus run {entry.name} --profile {'|'.join(('laptop', *entry.profiles))}")
    for verb in entry.verbs:
        console.print(f"[dim]then use it:[/] parnassus {verb} last")
