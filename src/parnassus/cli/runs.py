"""`parnassus runs`: list runs, compare runs in a table and a plot, open a report, or keep a result."""

import json
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from parnassus.cli.plain_table import plain_table
from parnassus.report.formatting import display_name, format_number
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RunFolder
from parnassus.runs.lookup import find_run, run_folders
from parnassus.runs.metrics import read_metrics

if TYPE_CHECKING:
    from parnassus.cli.verbs import RunsAction

console = Console(highlight=False)


def show_runs(action: "RunsAction", names: list[str], *, metric: str, note: str, root: Path) -> int:
    """Perform the action: list, compare, open or keep."""
    match action:
        case "list":
            return list_runs(root)
        case "compare":
            return compare([find_run(root, name) for name in names], metric, root)
        case "open":
            return open_report(find_run(root, names[0] if names else "last"))
        case "keep":
            return keep(find_run(root, names[0] if names else "last"), note)


def list_runs(root: Path) -> int:
    folders = run_folders(root)
    if not folders:
        console.print(f"no runs in {root} yet; start one with: parnassus run NAME")
        return 0
    width = max(len(folder.path.name) for folder in folders)
    console.print(f"{'run':<{width}}  {'status':<11}  profile  seconds", style="dim", soft_wrap=True)
    for folder in folders:
        try:
            facts, shown = describe_run(folder)
        except (RunError, OSError) as error:
            facts, shown = "damaged", str(error)
        console.print(f"{folder.path.name:<{width}}  {facts}".rstrip(), markup=False, soft_wrap=True)
        if shown:
            console.print(Padding(Text(shown, style="dim"), (0, 0, 0, 2)))
    return 0


def describe_run(folder: RunFolder) -> tuple[str, str]:
    """Status, profile and seconds of a run in columns, and its results; raises an error for a damaged run."""
    _ = folder.experiment, folder.read_json("model.json")  # raise
    profile, seconds = folder.read_json("run.json").get("profile"), folder.read_json("result.json").get("seconds", "")
    facts = f"{folder.status:<11}  {profile!s:<7}  {seconds!s:>7}"
    return facts, " · ".join(f"{display_name(name)} {format_number(value)}" for name, value in folder.results.items())


def compare(folders: list[RunFolder], metric: str, root: Path) -> int:
    """Print the settings that differ and the results, and plot one metric."""
    if len(folders) < 2:
        raise RunError(f"compare needs at least two runs; got {len(folders)}: parnassus runs compare RUN OTHER …")
    table = plain_table("", *(folder.path.name for folder in folders))
    settings, results = [_flat(folder) for folder in folders], [folder.results for folder in folders]
    for key in dict.fromkeys(key for each in settings for key in each):
        values = [str(each.get(key, "—")) for each in settings]
        if len(set(values)) > 1:
            table.add_row(display_name(key), *(f"[yellow]{escape(value)}[/]" for value in values))
    table.add_section()
    for key in dict.fromkeys(key for each in results for key in each):
        table.add_row(
            f"[bold]{display_name(key)}[/]", *(f"{each[key]:.5g}" if key in each else "—" for each in results)
        )
    console.print(table)
    return _plot(folders, metric, root)


def open_report(folder: RunFolder) -> int:
    report = folder.path / "report.html"
    if not report.exists():
        raise RunError(f"{folder.path.name} has no report: it is {folder.status}")
    console.print(str(report), soft_wrap=True)
    webbrowser.open(report.resolve().as_uri())
    return 0


def keep(folder: RunFolder, note: str = "", results: Path = Path("results")) -> int:
    """Write the results of a finished run, with command, seed, machine and versions, to results/RUN.json."""
    about, result = folder.read_json("run.json"), folder.read_json("result.json")
    if not folder.results:
        raise RunError(f"{folder.path.name} has no result to keep: it is {folder.status}")
    _ = folder.experiment  # raises if run.json is damaged
    results.mkdir(exist_ok=True)
    path = results / f"{folder.path.name}.json"
    kept = {**about, **result, **({"note": note} if note else {})}
    path.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    console.print(f"kept: {path}", soft_wrap=True)
    return 0


def _plot(folders: list[RunFolder], metric: str, root: Path) -> int:
    from parnassus.report import curves, save_figure
    from parnassus.report.page import are_positive

    found = {folder.path.name: read_metrics(folder.path / "metrics.csv") for folder in folders}
    lines = {name: each[metric] for name, each in found.items() if metric in each}
    if not lines:
        known = sorted({key for each in found.values() for key in each})
        raise RunError(f"none of these runs has a metric {metric!r}; choose --metric from {', '.join(known) or 'none'}")
    path, log_y = root / "comparison", metric.endswith("loss") and are_positive(lines)
    save_figure(curves(dict(lines), x_label="step", y_label=display_name(metric), log_y=log_y), path)
    console.print(f"\nplot: {path.with_suffix('.png')}", soft_wrap=True)
    return 0


def _flat(folder: RunFolder) -> dict[str, object]:
    """Experiment, profile, settings and options in one flat dictionary."""
    about = folder.read_json("run.json")
    flat: dict[str, object] = {"experiment": folder.experiment, "profile": about.get("profile")}
    for part in (about.get("settings"), about.get("options")):
        flat |= part if isinstance(part, dict) else {}
    return flat
