"""The details of a run: results, settings, environment, commands to repeat or continue it, and downloads."""

from nicegui import ui

from parnassus.atlas.bands import MeasuredValue, Verdict, judge
from parnassus.atlas.declarations import Entry
from parnassus.lab.addresses import file_address
from parnassus.lab.frame import copyable_text
from parnassus.lab.library import RunSummary
from parnassus.lab.tags import definition_list, formula_text, link, tag
from parnassus.report.formatting import display_name, format_number
from parnassus.runs import RunFolder, Status, command_for
from parnassus.runs.environment import describe_environment

DOWNLOADS = {
    "weights.safetensors": "Weights (safetensors)",
    "metrics.csv": "Metrics (CSV)",
    "result.json": "Result (JSON)",
}


def judge_run(entry: Entry | None, run: RunSummary) -> Verdict:
    """Compare the results of a run with the expected ranges of its experiment, if there are any."""
    applies = entry is not None and entry.bands_apply(run.profile, run.settings)
    return judge(entry.expected if entry else {}, run.result, applies=applies)


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


def add_details(folder: RunFolder, run: RunSummary) -> ui.element:
    """Add all sections; returns the list of downloads, which is empty at first."""
    details = folder.read_json("run.json")
    with tag("div", classes="two"):
        with tag("section"):
            tag("h2", "Settings")
            definition_list((display_name(name), format_number(value)) for name, value in run.settings.items())
        with tag("section"):
            tag("h2", "This run")
            definition_list(describe_environment(details, run.seconds).items())
        with tag("section"):
            tag("h2", "Repeat and continue")
            copyable_text(str(details.get("command", "")), "command", "Command of this run")
            copyable_text(command_for(folder, "resume"), "resume", "Continue after an interruption")
            link("Compare with another run", f"/runs?like={run.experiment}")
        with tag("section"):
            tag("h2", "Downloads")
            return tag("ul")


def list_downloads(element: ui.element, folder: RunFolder, status: Status) -> None:
    """Fill the list with the files that exist."""
    element.clear()
    with element:
        for name, label in DOWNLOADS.items():
            if (folder.path / name).exists():
                with tag("li"):
                    link(label, file_address(folder.path.name, name))
        if status == "running":
            tag("li", "The weights are available when the run is finished.", "kicker")
