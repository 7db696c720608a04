"""Ascent, the home page: the subjects in order, and a search over everything."""

from nicegui import ui
from nicegui.events import ValueChangeEventArguments

from parnassus.lab.addresses import run_address, subject_address
from parnassus.lab.frame import frame
from parnassus.lab.library import Library
from parnassus.lab.subjects import SUBJECTS, Subject
from parnassus.lab.tags import drawing, link, tag


def ascent(library: Library) -> None:
    with frame("Parnassus", "Ascent"):
        tag("h1", "Deep learning, from one neuron to AlphaZero")
        built = sum(bool(row.symbols) for row in library.atlas.rows.values())
        lead = (
            "Read an equation and see it run. Every method is a small part with its formula, "
            f"every claim is checked by a number. So far {built} of {len(library.atlas.rows)} items are built."
        )
        tag("p", lead, "lead")
        _search(library)
        _running(library)
        tag("h2", "The subjects")
        with tag("ul", classes="grid"):
            for subject in SUBJECTS:
                _card(library, subject)


def _search(library: Library) -> None:
    async def look(event: ValueChangeEventArguments[str | None]) -> None:
        results.clear()
        query = str(event.value or "")
        with results:
            _hits(library, query)

    field = ui.input("Search names, ids and formulas", placeholder="pca · B13.2.5-2 · √ᾱ_t", on_change=look)
    field.props('outlined clearable type="search" debounce=150').style("max-width: 34rem; width: 100%")
    results = tag("div", role="region", aria_live="polite", aria_label="Search results")


def _hits(library: Library, query: str) -> None:
    hits = library.index.find(query)
    if query.strip() and not hits:
        tag(
            "p",
            f"Nothing is called “{query[:60]}”. Try a shorter word, an id such as B4.3, or part of a formula.",
            "empty",
        )
    with tag("ul", classes="hits"):
        for hit in hits:
            with tag("li"):
                tag("span", hit.kind, "kind")
                link(hit.name, hit.address, "name")
                tag("span", f"  {hit.line}")


def _running(library: Library) -> None:
    here = [run for run in library.runs() if run.status == "running"]
    if here:
        tag("h2", "Running now")
    for run in here:
        with tag("p"):
            link(run.name, run_address(run.name))
            tag("span", f"  {run.title}", "kicker")


def _card(library: Library, subject: Subject) -> None:
    atlas = library.atlas
    rows = [row for row in atlas.rows.values() if row.subject == subject.room]
    built = sum(bool(row.symbols) for row in rows)
    counts = {
        "experiment": sum(entry.room == subject.room for entry in atlas.experiments.values()),
        "probe": sum(probe.room == subject.room for probe in atlas.probes.values()),
        "claim": sum(mark.room == subject.room for mark in atlas.marks),
    }
    classes = "card subject" + ("" if built else " unbuilt")
    with tag("li"), tag("a", classes=classes, href=subject_address(subject.room)):
        drawing(subject.picture, "picture")
        tag("h3", subject.title)
        tag("p", subject.line)
        with tag("div", classes="built"):
            with tag("div", classes="meter", aria_hidden="true"):
                tag("div").style(f"width: {100 * built / max(1, len(rows)):.0f}%")
            shown = [f"{built} of {len(rows)} built"]
            shown += [f"{count} {name}{'s' * (count > 1)}" for name, count in counts.items() if count]
            tag("span", " · ".join(shown))
