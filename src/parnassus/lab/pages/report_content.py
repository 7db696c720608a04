"""The content of a run's report: figures, notes, texts and tables in the order in which they were added."""

from collections.abc import Mapping
from pathlib import Path

from nicegui import ui

from parnassus.lab.addresses import file_address
from parnassus.lab.tags import formula_text, link, tag
from parnassus.report.formatting import column_names, display_name, format_number
from parnassus.runs import RunFolder


def add_report_item(run: str, folder: RunFolder, item: Mapping[str, object]) -> ui.element | None:
    """Add a figure, a note, a text or a table; returns the image of a figure."""
    name, kind = str(item.get("name", "")), item.get("kind")
    caption = str(item.get("caption", "") or "")
    if kind == "figure":
        return _add_figure(run, folder, name, caption)
    if kind == "note":
        tag("h3", display_name(name)).style("margin-top: 1.4rem")
        for paragraph in str(item.get("text", "")).split("\n\n"):
            formula_text(paragraph, "p")
    elif kind == "text":
        tag("h3", display_name(name)).style("margin-top: 1.4rem")
        if caption:
            formula_text(caption, "p")
        tag("pre", str(item.get("text", "")), "command")
    elif kind == "table":
        tag("h3", display_name(name)).style("margin-top: 1.4rem")
        if caption:
            formula_text(caption, "p")
        rows = item.get("rows")
        _add_table([row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else [])
    return None


def figure_source(run: str, folder: RunFolder, name: str) -> str:
    """The address of a figure, which changes with the file, so that no cached version is shown."""
    try:
        stamp = (folder.path / "figures" / Path(f"{name}.svg").name).stat().st_mtime_ns
    except (OSError, ValueError):  # missing, or not a valid file name
        stamp = 0
    return f"{file_address(run, 'figures', f'{name}.svg')}?v={stamp}"


def _add_figure(run: str, folder: RunFolder, name: str, caption: str) -> ui.element:
    with tag("figure", classes="figure"):
        image = tag("img", src=figure_source(run, folder, name), alt=caption or display_name(name), loading="lazy")
        if caption:
            formula_text(caption, "figcaption")
        with tag("div", classes="download"):
            tag("span", "Download: ")
            for ending in ("svg", "png"):
                address = file_address(run, "figures", f"{name}.{ending}")
                link(ending.upper(), address, download=f"{run}-{name}.{ending}")
                tag("span", " ")
    return image


def _add_table(rows: list[dict[str, object]]) -> None:
    names = column_names(rows)
    with tag("div", classes="scroll"), tag("table", classes="plain"):
        with tag("thead"), tag("tr"):
            for name in names:
                formula_text(str(name), "th")
        with tag("tbody"):
            for row in rows:
                with tag("tr"):
                    for name in names:
                        tag("td", format_number(row.get(name, "")))
