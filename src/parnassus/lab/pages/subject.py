"""A subject: what can be run, touched and checked in a room, and every item of the sources that belongs to it."""

from parnassus.atlas.catalogue import Row
from parnassus.lab.addresses import claim_address, experiment_address, probe_address
from parnassus.lab.frame import frame
from parnassus.lab.library import Library
from parnassus.lab.subjects import Subject, subject_of
from parnassus.lab.tags import link, maths, tag
from parnassus.report.page import heading


def subject_page(library: Library, room: str) -> None:
    atlas = library.atlas
    subject = subject_of(room) or Subject(room, room.capitalize(), "The tools that every subject uses.")
    rows = [row for row in atlas.rows.values() if row.subject == room]
    with frame(subject.title, "Ascent"):
        tag("h1", subject.title)
        tag("p", subject.line, "lead")
        _cards(library, room)
        tag("h2", f"In the sources: {sum(bool(row.symbols) for row in rows)} of {len(rows)} built")
        with tag("ol", classes="rows"):
            for row in rows:
                _row(library, row)


def _cards(library: Library, room: str) -> None:
    entries = [entry for entry in library.atlas.experiments.values() if entry.room == room]
    probes = [probe for probe in library.atlas.probes.values() if probe.room == room]
    if not entries and not probes:
        tag("p", "Nothing here can be run yet; the items below say what is to come.", "empty")
    _links("Touch", [(probe.title, probe_address(probe.name), "") for probe in probes])
    _links("Run", [(entry.title, experiment_address(entry.name), entry.name) for entry in entries])


def _links(name: str, cards: list[tuple[str, str, str]]) -> None:
    """Cards under a heading: a title that leads somewhere, and a word with the place in the sources."""
    if cards:
        tag("h2", name)
    with tag("ul", classes="wide-grid"):
        for line, address, word in cards:
            title, where = heading(line)
            with tag("li", classes="card"):
                with tag("h3"):
                    link(title, address)
                tag("span", " · ".join(filter(None, (word, where))), "kicker")


def _row(library: Library, row: Row) -> None:
    with tag("li", id=row.id):
        with tag("div", classes="row between"):
            tag("h3", f"{row.id}  {row.title}")
            tag("span", f"{row.kind}, {row.source}", "kicker")
        if row.formula:
            maths(row.formula, "div", "formula")
        else:
            maths(row.about, "div")
        for symbol in row.symbols:
            with tag("div"):
                tag("code", symbol)
        marks, entries = library.atlas.claims_of(row.id), library.atlas.experiments_of(row.id)
        with tag("div", classes="row"):
            for entry in entries:
                link(f"run {entry.name}", experiment_address(entry.name))
            if marks:
                count = f"{len(marks)} check{'s' * (len(marks) > 1)}"
                link(count, claim_address(marks[0]))
            if not row.symbols:
                tag("span", "not built yet", "kicker")
