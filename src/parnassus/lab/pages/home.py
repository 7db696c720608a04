"""The home page: the subjects in order, a search, and the runs in progress."""

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from parnassus.atlas.catalogue import describe_coverage
from parnassus.atlas.rooms import Room, read_picture
from parnassus.lab.addresses import run_address, subject_address
from parnassus.lab.frame import frame
from parnassus.lab.library import Library
from parnassus.lab.tags import link, svg_element, tag


def home_page(library: Library) -> None:
    with frame("Parnassus", "Subjects"):
        tag("h1", "Deep learning, from one neuron to AlphaZero")
        lead = (
            "Methods of three texts, with their formulas, with experiments to run, and with claims "
            f"that are checked numerically. Items of the texts: {describe_coverage(library.atlas.rows.values())}."
        )
        tag("p", lead, "lead")
        _add_search(library)
        _list_running(library)
        tag("h2", "Subjects")
        with tag("ul", classes="grid"):
            for subject in library.atlas.subjects.values():
                _card(library, subject)


def _add_search(library: Library) -> None:
    async def search(event: ValueChangeEventArguments[str | None]) -> None:
        results.clear()
        query = str(event.value or "")
        with results:
            _list_hits(library, query)

    field = ui.input("Search names, ids and formulas", placeholder="pca · B13.2.5-2 · √ᾱ_t", on_change=search)
    field.props('outlined clearable type="search" debounce=150').style("max-width: 34rem; width: 100%")
    results = tag("div", role="region", aria_live="polite", aria_label="Search results")


def _list_hits(library: Library, query: str) -> None:
    hits = library.index.find(query)
    if query.strip() and not hits:
        advice = "Try a shorter word, an id such as B4.3, or part of a formula."
        tag("p", f"No results for “{query[:60]}”. {advice}", "empty")
    with tag("ul", classes="hits"):
        for hit in hits:
            with tag("li"):
                tag("span", hit.kind, "kind")
                link(hit.name, hit.address, "name")
                tag("span", f"  {hit.line}")


def _list_running(library: Library) -> None:
    running = [run for run in library.runs() if run.status == "running"]
    if running:
        tag("h2", "Runs in progress")
    for run in running:
        with tag("p"):
            link(run.name, run_address(run.name))
            tag("span", f"  {run.title}", "kicker")


def _card(library: Library, subject: Room) -> None:
    atlas = library.atlas
    rows = atlas.rows_in(subject.name)
    implemented = sum(bool(row.symbols) for row in rows)
    counts = {
        "experiment": sum(entry.room == subject.name for entry in atlas.experiments.values()),
        "probe": sum(probe.room == subject.name for probe in atlas.probes.values()),
        "claim": sum(mark.room == subject.name for mark in atlas.marks),
    }
    classes = "card subject" + ("" if implemented else " planned")
    with tag("li"), tag("a", classes=classes, href=subject_address(subject.name)):
        svg_element(read_picture(subject.name), "image")
        tag("h3", subject.title)
        tag("p", subject.line)
        with tag("div", classes="progress"):
            with tag("div", classes="meter", aria_hidden="true"):
                tag("div").style(f"width: {100 * implemented / max(1, len(rows)):.0f}%")
            parts = [describe_coverage(rows)]
            parts += [f"{count} {name}{'s' * (count > 1)}" for name, count in counts.items() if count]
            tag("span", " · ".join(parts))
