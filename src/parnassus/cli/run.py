"""`parnassus run` and `parnassus resume`: execute an experiment and print its results."""

import importlib
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import tyro

from parnassus.atlas.bands import judge
from parnassus.atlas.declarations import Entry
from parnassus.atlas.index import Atlas, load_atlas
from parnassus.atlas.reading import settings_of
from parnassus.atlas.settings import check_limits
from parnassus.cli.flags import flags_of, from_flags, print_usage_line
from parnassus.errors import convert_computation_errors, convert_value_errors
from parnassus.report.formatting import display_name, format_number
from parnassus.report.formulas import Formula
from parnassus.runs.errors import RunError, RunInterrupted
from parnassus.runs.folder import RUNS, RunFolder
from parnassus.runs.lookup import LATEST, check_root, command_for, find_run
from parnassus.runs.metrics import read_metrics
from parnassus.train.devices import choose_device
from parnassus.train.execute import Experiment, Recipe, execute, options_from, start
from parnassus.train.options import Options
from parnassus.train.parallel import is_under_torchrun, world_from_environment
from parnassus.train.trained import find_entry, rebuild_experiment

Profile = Literal["smoke", "laptop", "gpu"]


@dataclass(frozen=True)
class Launch:
    """Profile of the run, and its location."""

    profile: Profile = "laptop"  # preset of the settings: smoke takes seconds, gpu needs a GPU
    name: str | None = None  # name of the run's folder; by default the experiment's name and the time
    folder: Path = RUNS  # folder that contains the runs


LAYER_SIZES = re.compile(r"\d+( → \d+)+")
"""A formula that gives the sizes of the source's network, which are not those of the run's."""


def run(arguments: list[str]) -> int:
    """Run the experiment given by the first argument with the flags that follow."""
    if not arguments or arguments[0].startswith("-"):
        usage = "usage: parnassus run NAME [flags]    (flags: parnassus run NAME --help; names: parnassus list)"
        return print_usage_line(usage, arguments)
    atlas = load_atlas()
    entry = atlas.experiment(arguments[0])
    with convert_value_errors():
        experiment, options, launch = parse(entry, arguments[1:])
    recipe = find_recipe(atlas, entry, experiment, launch.profile)
    check_options(options, launch)
    check_limits(entry.settings, experiment)
    folder = start(recipe, options, launch.folder, name=launch.name)
    try:
        return execute_and_print(recipe, options, folder)
    except Exception:
        if world_from_environment().rank == 0 and has_no_progress(folder):
            shutil.rmtree(folder.path, ignore_errors=True)
        raise


def resume_run(name: str, root: Path, *, device: str | None = None) -> int:
    """Resume the run in a folder."""
    folder = find_run(root, name)
    entry, experiment, options = find_entry(folder), rebuild_experiment(folder), options_from(folder)
    profile = folder.read_json("run.json").get("profile", "laptop")
    recipe = find_recipe(load_atlas(), entry, experiment, str(profile))
    return execute_and_print(recipe, replace(options, device=device) if device else options, folder)


def execute_and_print(recipe: Recipe, options: Options, folder: RunFolder) -> int:
    """Execute the experiment, then print its results."""
    try:
        with convert_computation_errors():
            numbers = execute(recipe, options, folder)
    except RunInterrupted:
        print(
            f"\nstopped; the state is saved. Resume with: {command_for(folder, 'resume')}",
            file=sys.stderr,
        )
        return 130
    if world_from_environment().rank == 0:
        print_results(recipe, numbers, folder)
    return 0


def check_options(options: Options, launch: Launch) -> None:
    """Reject invalid options before the folder is created."""
    choose_device(options.device)
    check_limits(settings_of(Options), options)
    check_root(launch.folder)
    name = launch.name
    if name is not None and (not name or name != Path(name).name or name.startswith((".", "-")) or name == LATEST):
        raise RunError(
            f"--name must be a plain folder name; got {name!r}: choose one that does not begin with . or - and is not "
            f"{LATEST!r}, and the location with --folder"
        )
    if options.parallel == "fsdp" and not is_under_torchrun():
        raise RunError("--parallel fsdp needs several processes, started by torchrun; got one: omit it on one device")


def has_no_progress(folder: RunFolder) -> bool:
    """Whether a run stopped before it saved a checkpoint or logged a metric."""
    return not (folder.path / "checkpoint.safetensors").exists() and not read_metrics(folder.path / "metrics.csv")


def print_results(recipe: Recipe, numbers: dict[str, float], folder: RunFolder) -> None:
    """Print the results with their bands, and the path of the report."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    verdict = judge(recipe.expected, numbers, applies=recipe.bands_apply)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("measured", no_wrap=True)
    table.add_column("", justify="right")
    table.add_column("expected" if verdict.applies else "", no_wrap=True)
    table.add_column("", style="dim")
    for each in verdict.values:
        colour = "green" if each.holds else "red"
        expected = each.band and f"{each.band} [{colour}]{each.verdict}[/]"
        table.add_row(display_name(each.name), format_number(each.value, 5), expected, escape(each.about))
    console = Console(highlight=False)
    console.print(table)
    if verdict.remark:
        console.print(verdict.remark, style="dim")
    console.print(f"report: {folder.path / 'report.html'}", soft_wrap=True)


def parse(entry: Entry, arguments: list[str]) -> tuple[Experiment, Options, Launch]:
    """Parse the flags into settings, launch options and run options; tyro derives the flags from the dataclasses."""
    profile = cast("Profile", _flag_value("--profile", arguments) or "laptop")
    choices = {name: value for name in entry.tuned if (value := _flag_value(f"--{name}", arguments)) is not None}
    preset = with_profile(entry, profile, choices)
    flags = flags_of(preset, entry.settings)
    command = make_dataclass(
        "Command",
        [
            ("experiment", type(flags), field(default=flags)),
            ("launch", Launch, field(default=Launch(profile=profile))),
            ("machine", Options, field(default=Options())),
        ],
    )
    given: Any = tyro.cli(
        command,
        prog=f"parnassus run {entry.name}",
        description=f"{entry.title}\n\n{entry.text}".strip(),
        args=arguments,
        config=(tyro.conf.OmitArgPrefixes,),
    )
    return from_flags(type(preset), given.experiment), given.machine, given.launch


def with_profile(entry: Entry, profile: str, choices: Mapping[str, object] | None = None) -> Experiment:
    """The experiment with the presets of a profile and those tuned for the settings in `choices`."""
    if profile not in ("laptop", *entry.profiles):
        raise RunError(f"{entry.name} has no profile {profile!r}; available: {', '.join(('laptop', *entry.profiles))}")
    values = {**entry.preset(profile, choices or {}), **(choices or {})}
    return cast("Experiment", importlib.import_module(entry.module).Experiment(**values))


def find_recipe(atlas: Atlas, entry: Entry, experiment: Experiment, profile: str) -> Recipe:
    """The experiment with its title, formulas and bands."""
    covered = atlas.rows_of(entry)
    shown = [row for row in covered if row.formula and not LAYER_SIZES.fullmatch(row.formula)]
    formulas = [Formula(row.title, f"{row.id} · {row.source}", row.formula) for row in shown]
    return Recipe(
        name=entry.name,
        title=title_for(entry, experiment),
        experiment=experiment,
        expected=entry.expected,
        formulas=tuple(formulas[:4]),
        profile=profile,
        bands_apply=entry.bands_apply(profile, asdict(experiment)),
    )


def title_for(entry: Entry, experiment: Experiment) -> str:
    """The title of the experiment, or, for other data than its default and its presets, its method and the data."""
    data, default = getattr(experiment, "data", None), entry.defaults.get("data")
    if not isinstance(data, str) or data in (default, *(preset.get("data") for preset in entry.presets.values())):
        return entry.title
    method = entry.name.partition("_on_")[0].removesuffix(f"_{default}").replace("_", " ")
    return f"{method} on {Path(data).name}"


def _flag_value(flag: str, arguments: list[str]) -> str | None:
    """The value of a flag that must be read before all others, because it sets their defaults."""
    for position, argument in enumerate(arguments):
        if argument == flag and position + 1 < len(arguments):
            return arguments[position + 1]
        if argument.startswith(f"{flag}="):
            return argument.removeprefix(f"{flag}=")
    return None
