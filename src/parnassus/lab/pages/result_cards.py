"""The results of a run with their expected ranges."""

from parnassus.atlas.bands import MeasuredValue, Verdict, judge
from parnassus.atlas.reading import Entry
from parnassus.lab.library import RunSummary
from parnassus.lab.tags import formula_text, tag
from parnassus.report.formatting import display_name, format_number


def judge_run(entry: Entry | None, run: RunSummary) -> Verdict:
    """The results of a run with a verdict; without an experiment there are no expected ranges."""
    return judge(entry.expected if entry else {}, run.result, applies=entry is not None and has_defaults(entry, run))


def add_result_card(measured: MeasuredValue) -> None:
    holds = measured.holds
    with tag("div", classes="number" + ("" if holds is None else " good" if holds else " bad")):
        tag("div", display_name(measured.name), "name")
        tag("div", format_number(measured.value), "value")
        if holds is not None:
            with tag("div", classes="band"):
                tag("span", f"expected {measured.band} ")
                tag("span", measured.verdict, "good-text" if holds else "bad-text")
        if measured.about:
            formula_text(measured.about, "div", "about")


def has_defaults(entry: Entry, run: RunSummary) -> bool:
    """Whether a run is the laptop profile with its default settings, to which the expected ranges apply."""
    return run.profile == "laptop" and run.settings == {
        name: list(value) if isinstance(value, tuple) else value for name, value in entry.defaults.items()
    }
