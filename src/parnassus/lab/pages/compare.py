"""Comparison of runs: settings, results, and curves in one chart."""

from typing import Any

from nicegui import ui

from parnassus.lab.addresses import run_address
from parnassus.lab.charts import add_chart, line_chart
from parnassus.lab.components import Slider
from parnassus.lab.frame import frame
from parnassus.lab.library import Library, RunSummary
from parnassus.lab.tags import link, tag
from parnassus.report.formatting import display_name, format_number
from parnassus.report.page import are_positive
from parnassus.runs import RunError, RunFolder, read_metrics


def compare_page(library: Library, names: list[str]) -> None:
    known = {run.name: run for run in library.runs()}
    runs = [known[name] for name in dict.fromkeys(names[:8]) if name in known]
    with frame("Compare", "Runs"):
        tag("h1", "Comparison of runs")
        if len(runs) < 2:
            with tag("p", classes="empty"):
                tag("span", "A comparison needs two existing runs. Choose them in the ")
                link("list of runs", "/runs")
                tag("span", ".")
            return
        _add_settings(runs)
        _add_results(runs)
        _add_curves([RunFolder(library.root / run.name) for run in runs])


def _add_settings(runs: list[RunSummary]) -> None:
    tag("h2", "Settings")
    settings: list[dict[str, object]] = [
        {"experiment": run.experiment, "profile": run.profile, **run.settings, **run.options} for run in runs
    ]
    rows = [
        (key, [format_number(each.get(key, "—")) for each in settings])
        for key in dict.fromkeys(k for s in settings for k in s)
    ]
    different = [key for key, values in rows if len(set(values)) > 1]
    tag("p", f"Different: {', '.join(map(display_name, different))}." if different else "All settings are the same.")
    ordered = sorted(rows, key=lambda row: len(set(row[1])) == 1)
    _add_table(runs, [(display_name(key), values, len(set(values)) > 1) for key, values in ordered])


def _add_results(runs: list[RunSummary]) -> None:
    tag("h2", "Results")
    keys = dict.fromkeys(key for run in runs for key in run.result)
    rows = [(display_name(key), [format_number(run.result.get(key)) for run in runs], False) for key in keys]
    _add_table(runs, [("status", [run.status for run in runs], False), *rows])


def _add_table(runs: list[RunSummary], rows: list[tuple[str, list[str], bool]]) -> None:
    with tag("div", classes="scroll"), tag("table", classes="plain"):
        with tag("thead"), tag("tr"):
            tag("th", "")
            for run in runs:
                with tag("th"):
                    link(run.name, run_address(run.name))
        with tag("tbody"):
            for name, values, differs in rows:
                with tag("tr", classes="differs" if differs else ""):
                    tag("td", name)
                    for value in values:
                        tag("td", value)


def _add_curves(folders: list[RunFolder]) -> None:
    tag("h2", "Curves")
    curves = {}
    for folder in folders:
        try:
            curves[folder.path.name] = read_metrics(folder.file("metrics.csv"))
        except RunError:
            continue
    metrics = list(dict.fromkeys(key for each in curves.values() for key in each))
    if not metrics:
        tag("p", "These runs have no curves.", "empty")
        return

    def options() -> dict[str, Any]:
        metric = choice.value if choice.value in metrics else metrics[0]
        lines = {name: each[metric] for name, each in curves.items() if metric in each}
        log_y = bool(log.value) and are_positive(lines)
        return line_chart(lines, x_label="step", y_label=display_name(metric), log_y=log_y, smooth=smoothing.value)

    def draw() -> None:
        box.clear()
        with box:
            add_chart(options(), f"{choice.value} by step, one line per run")

    with tag("div", classes="row").style("gap: 1.4rem"):
        choice = ui.select(
            {name: display_name(name) for name in metrics}, value=metrics[0], label="Metric", on_change=draw
        )
        choice.props("outlined dense").style("min-width: 14rem")
        log = ui.switch("Log scale", value=metrics[0].endswith("loss"), on_change=draw)
        tag("span", "Smoothing", "kicker", id="smoothing-label")
        smoothing = Slider(0.0, 0.98, 0.0, lambda _: draw(), step=0.02).style("width: 11rem")
        smoothing.props["aria-labelledby"] = "smoothing-label"
    box = tag("div", classes="card").style("margin-top: .8rem")
    draw()
