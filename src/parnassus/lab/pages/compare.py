"""Several runs beside each other: what differs in their settings, what came out, their curves in one chart."""

from typing import Any

from nicegui import ui

from parnassus.lab.addresses import run_address
from parnassus.lab.charts import chart, curves
from parnassus.lab.components import Range
from parnassus.lab.frame import frame
from parnassus.lab.library import Library, RunFacts
from parnassus.lab.tags import link, tag, words
from parnassus.report.numbers import number
from parnassus.runs import RunError, RunFolder, read_metrics


def compare_page(library: Library, names: list[str]) -> None:
    known = {run.name: run for run in library.runs()}
    runs = [known[name] for name in dict.fromkeys(names[:8]) if name in known]
    with frame("Compare", "Runs"):
        tag("h1", "Runs compared")
        if len(runs) < 2:
            with tag("p", classes="empty"):
                tag("span", "A comparison needs two runs that are there. Choose them in the ")
                link("list of runs", "/runs")
                tag("span", ".")
            return
        _differences(runs)
        _results(runs)
        _curves([RunFolder(library.root / run.name) for run in runs])


def _differences(runs: list[RunFacts]) -> None:
    tag("h2", "Settings")
    settings: list[dict[str, object]] = [
        {"experiment": run.experiment, "profile": run.profile, **run.settings, **run.options} for run in runs
    ]
    rows = [
        (key, [number(each.get(key, "—")) for each in settings])
        for key in dict.fromkeys(k for s in settings for k in s)
    ]
    different = [key for key, values in rows if len(set(values)) > 1]
    tag("p", f"Different: {', '.join(map(words, different))}." if different else "All settings are the same.")
    ordered = sorted(rows, key=lambda row: len(set(row[1])) == 1)
    _table(runs, [(words(key), values, len(set(values)) > 1) for key, values in ordered])


def _results(runs: list[RunFacts]) -> None:
    tag("h2", "Numbers")
    keys = dict.fromkeys(key for run in runs for key in run.result)
    rows = [(words(key), [number(run.result.get(key)) for run in runs], False) for key in keys]
    _table(runs, [("status", [run.status for run in runs], False), *rows])


def _table(runs: list[RunFacts], rows: list[tuple[str, list[str], bool]]) -> None:
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


def _curves(folders: list[RunFolder]) -> None:
    tag("h2", "Curves")
    found = {}
    for folder in folders:
        try:
            found[folder.path.name] = read_metrics(folder.file("metrics.csv"))
        except RunError:
            continue
    metrics = list(dict.fromkeys(key for each in found.values() for key in each))
    if not metrics:
        tag("p", "None of these runs has a curve.", "empty")
        return

    def options() -> dict[str, Any]:
        metric = choice.value if choice.value in metrics else metrics[0]
        lines = {name: each[metric] for name, each in found.items() if metric in each}
        positive = all(value > 0 for _, values in lines.values() for value in values)
        log_y = bool(log.value) and positive
        return curves(lines, x_label="step", y_label=words(metric), log_y=log_y, smooth=smoothing.value)

    def draw() -> None:
        box.clear()
        with box:
            chart(options(), f"{choice.value} by step, one line a run")

    with tag("div", classes="row").style("gap: 1.4rem"):
        choice = ui.select({name: words(name) for name in metrics}, value=metrics[0], label="Metric", on_change=draw)
        choice.props("outlined dense").style("min-width: 14rem")
        log = ui.switch("Log scale", value=metrics[0].endswith("loss"), on_change=draw)
        tag("span", "Smoothing", "kicker", id="smoothing-label")
        smoothing = Range(0.0, 0.98, 0.0, lambda _: draw(), step=0.02).style("width: 11rem")
        smoothing.props["aria-labelledby"] = "smoothing-label"
    box = tag("div", classes="card").style("margin-top: .8rem")
    draw()
