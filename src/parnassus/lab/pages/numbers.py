"""The numbers of a run beside what was expected of them."""

import ast

from parnassus.atlas.reading import Entry
from parnassus.lab.library import RunFacts
from parnassus.lab.tags import maths, tag, words
from parnassus.report.numbers import number


def number_card(entry: Entry | None, name: str, value: float, *, judged: bool) -> None:
    band = entry.expected.get(name) if entry is not None else None
    limits = str(band) if band is not None and judged else ""
    holds = band.holds(value) if band is not None and limits else None
    with tag("div", classes="number" + ("" if holds is None else " good" if holds else " bad")):
        tag("div", words(name), "name")
        tag("div", number(value), "value")
        if holds is not None:
            with tag("div", classes="band"):
                tag("span", f"expected {limits} ")
                tag("span", "✓ inside" if holds else "✗ outside", "good-text" if holds else "bad-text")
        if band is not None and band.about:
            maths(band.about, "div", "about")


def as_is(entry: Entry, run: RunFacts) -> bool:
    """Whether a run is the laptop profile with nothing changed, for which the bands were measured."""
    defaults = {each.name: ast.literal_eval(each.default) for each in entry.settings}
    return run.profile == "laptop" and run.settings == {
        name: list(value) if isinstance(value, tuple) else value for name, value in defaults.items()
    }
