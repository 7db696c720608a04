"""A subject: its probes, its experiments, and its items of the sources."""

from parnassus.atlas.catalogue import AtlasRow, describe_coverage
from parnassus.lab.addresses import claim_address, experiment_address, probe_address
from parnassus.lab.frame import frame
from parnassus.lab.library import Library
from parnassus.lab.tags import formula_text, link, tag
from parnassus.report.page import split_title


def subject_page(library: Library, room: str) -> None:
    subject, rows = library.atlas.subjects.get(room), library.atlas.rows_in(room)
    title = subject.title if subject else room.capitalize()
    with frame(title, "Subjects"):
        tag("h1", title)
        tag("p", subject.line if subject else "Parts that all subjects use.", "lead")
        _add_cards(library, room)
        tag("h2", f"Items of the sources: {describe_coverage(rows)}")
        with tag("ol", classes="rows"):
            for row in rows:
                _add_row(library, row)


def _add_cards(library: Library, room: str) -> None:
    entries = [entry for entry in library.atlas.experiments.values() if entry.room == room]
    probes = [probe for probe in library.atlas.probes.values() if probe.room == room]
    if not entries and not probes:
        tag("p", "There are no experiments yet; the items below are planned.", "empty")
    _add_links("Probes", [(probe.title, probe_address(probe.name), "") for probe in probes])
    _add_links("Experiments", [(entry.title, experiment_address(entry.name), entry.name) for entry in entries])


def _add_links(name: str, cards: list[tuple[str, str, str]]) -> None:
    """Cards under a heading: a title with a link, a name, and the reference."""
    if cards:
        tag("h2", name)
    with tag("ul", classes="wide-grid"):
        for full_title, address, name_in_code in cards:
            title, reference = split_title(full_title)
            with tag("li", classes="card"):
                with tag("h3"):
                    link(title, address)
                tag("span", " · ".join(filter(None, (name_in_code, reference))), "kicker")


def _add_row(library: Library, row: AtlasRow) -> None:
    with tag("li", id=row.id):
        with tag("div", classes="row between"):
            tag("h3", f"{row.id}  {row.title}")
            tag("span", f"{row.kind}, {row.source}", "kicker")
        if row.formula:
            formula_text(row.formula, "div", "formula")
        else:
            formula_text(row.about, "div")
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
                tag("span", row.no_code or "not implemented yet", "kicker")
