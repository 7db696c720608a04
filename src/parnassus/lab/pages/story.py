"""What a run tells: its figures, notes and tables."""

from collections.abc import Mapping
from pathlib import Path

from nicegui import ui

from parnassus.lab.addresses import file_address
from parnassus.lab.tags import link, maths, tag, words
from parnassus.report.numbers import number
from parnassus.report.page import columns
from parnassus.runs import RunFolder


def story_item(run: str, folder: RunFolder, item: Mapping[str, object]) -> ui.element | None:
    """A figure, a note, a text or a table; of a figure, the image comes back."""
    name, kind = str(item.get("name", "")), item.get("kind")
    caption = str(item.get("caption", "") or "")
    if kind == "figure":
        return _figure(run, folder, name, caption)
    if kind == "note":
        tag("h3", words(name)).style("margin-top: 1.4rem")
        for paragraph in str(item.get("text", "")).split("\n\n"):
            maths(paragraph, "p")
    elif kind == "text":
        tag("h3", words(name)).style("margin-top: 1.4rem")
        if caption:
            maths(caption, "p")
        tag("pre", str(item.get("text", "")), "command")
    elif kind == "table":
        tag("h3", words(name)).style("margin-top: 1.4rem")
        if caption:
            maths(caption, "p")
        rows = item.get("rows")
        _table([row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else [])
    return None


def figure_source(run: str, folder: RunFolder, name: str) -> str:
    """Where a figure is; its address changes with it, so that no old one is shown."""
    try:
        stamp = (folder.path / "figures" / Path(f"{name}.svg").name).stat().st_mtime_ns
    except (OSError, ValueError):  # not there yet, or no name for a file
        stamp = 0
    return f"{file_address(run, 'figures', f'{name}.svg')}?v={stamp}"


def _figure(run: str, folder: RunFolder, name: str, caption: str) -> ui.element:
    with tag("figure", classes="shown"):
        image = tag("img", src=figure_source(run, folder, name), alt=caption or words(name), loading="lazy")
        if caption:
            maths(caption, "figcaption")
        with tag("div", classes="take"):
            tag("span", "Take it: ")
            for ending in ("svg", "png"):
                address = file_address(run, "figures", f"{name}.{ending}")
                link(ending.upper(), address, download=f"{run}-{name}.{ending}")
                tag("span", " ")
    return image


def _table(rows: list[dict[str, object]]) -> None:
    names = columns(rows)
    with tag("div", classes="scroll"), tag("table", classes="plain"):
        with tag("thead"), tag("tr"):
            for name in names:
                maths(str(name), "th")
        with tag("tbody"):
            for row in rows:
                with tag("tr"):
                    for name in names:
                        tag("td", number(row.get(name, "")))
