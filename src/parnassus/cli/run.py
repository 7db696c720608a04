"""`parnassus run` and `parnassus resume`."""

import importlib
import shutil
import sys
from dataclasses import dataclass, field, make_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, cast

import tyro

from parnassus.atlas.index import Atlas
from parnassus.atlas.reading import Entry
from parnassus.cli.places import RUNS
from parnassus.report.formulas import Formula
from parnassus.report.numbers import number
from parnassus.runs.errors import Interrupted, RunError
from parnassus.runs.folder import RunFolder, find_run
from parnassus.runs.metrics import read_metrics
from parnassus.train.devices import choose_device
from parnassus.train.execute import Experiment, Recipe, execute, options_from, start
from parnassus.train.options import Options
from parnassus.train.trained import experiment_from

Profile = Literal["smoke", "laptop", "gpu"]


@dataclass(frozen=True)
class Launch:
    """Which preset, and where the run is kept."""

    profile: Profile = "laptop"  # a preset of the experiment's flags: smoke takes seconds, gpu wants one
    name: str | None = None  # name of the run's folder; by default experiment and time
    folder: Path = RUNS  # where runs are kept


def run(arguments: list[str]) -> int:
    """Run the experiment named first, with the flags that follow."""
    if not arguments or arguments[0].startswith("-"):
        asked = bool({"-h", "--help"} & set(arguments))
        usage = "usage: parnassus run NAME [flags]    (flags: parnassus run NAME --help; names: parnassus list)"
        print(usage, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    atlas = Atlas()
    entry = atlas.experiment(arguments[0])
    module = importlib.import_module(entry.module)
    experiment, options, launch = parse(entry, module, arguments[1:])
    preset = with_profile(module, launch.profile)
    recipe = recipe_of(atlas, entry, module, experiment, launch.profile, as_is=experiment == preset)
    demand_sense(options, launch)
    demand_counts(entry, experiment)
    folder = start(recipe, options, launch.folder, name=launch.name)
    try:
        return carry_out(recipe, options, folder)
    except Exception:
        if nothing_done(folder):
            shutil.rmtree(folder.path, ignore_errors=True)
        raise


def resume_run(name: str, root: Path, *, device: str | None = None) -> int:
    """Go on where the run in a folder stopped."""
    folder = find_run(root, name)
    about = folder.read_json("run.json")
    atlas = Atlas()
    entry = atlas.experiment(str(about["experiment"]))
    module = importlib.import_module(entry.module)
    experiment = experiment_from(module, about)
    profile = cast("Profile", about.get("profile", "laptop"))
    as_is = experiment == with_profile(module, profile)
    recipe = recipe_of(atlas, entry, module, experiment, profile, as_is=as_is)
    options = options_from(about)
    return carry_out(recipe, replace(options, device=device) if device else options, folder)


def carry_out(recipe: Recipe, options: Options, folder: RunFolder) -> int:
    """Execute, then say what came out."""
    try:
        numbers = execute(recipe, options, folder)
    except Interrupted:
        print(
            f"\nstopped; everything up to here is saved. Go on with: parnassus resume {folder.path.name}",
            file=sys.stderr,
        )
        return 130
    from parnassus.train.parallel import world_from_environment

    if world_from_environment().rank == 0:
        say(recipe, numbers, folder)
    return 0


def demand_sense(options: Options, launch: Launch) -> None:
    """Refuse flags that cannot work, before there is a folder."""
    choose_device(options.device)
    if options.threads is not None and options.threads < 1:
        raise RunError(f"threads must be positive; got {options.threads}")
    if launch.name is not None and (launch.name != Path(launch.name).name or launch.name.startswith(".")):
        raise RunError(f"name must be the plain name of a folder; got {launch.name!r}: choose the place with --folder")


def demand_counts(entry: Entry, experiment: Experiment) -> None:
    """Refuse numbers of things that are none, and fewer: what fails for want of them fails far from here."""
    for setting in entry.settings:
        given = getattr(experiment, setting.name)
        for value in given if isinstance(given, tuple) else (given,):
            if setting.least is not None and value is not None and value < setting.least:
                flag = f"--{setting.name.replace('_', '-')}"
                raise RunError(f"{flag} must be at least {setting.least}; got {value} ({setting.help})")


def nothing_done(folder: RunFolder) -> bool:
    """Whether a run stopped before it had anything worth keeping."""
    return not (folder.path / "checkpoint.safetensors").exists() and not read_metrics(folder.path / "metrics.csv")


def say(recipe: Recipe, numbers: dict[str, float], folder: RunFolder) -> None:
    """The numbers beside their bands, and where the report is."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    judged = recipe.profile == "laptop" and recipe.as_is
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("measured", no_wrap=True)
    table.add_column("", justify="right")
    table.add_column("expected" if judged else "", no_wrap=True)
    table.add_column("", style="dim")
    for name, value in numbers.items():
        band = recipe.expected.get(name)
        limits = str(band) if band is not None and judged else ""
        about = band.about if band is not None else ""
        verdict = _verdict(holds=band.holds(value)) if band is not None and limits else ""
        table.add_row(name.replace("_", " "), number(value, 5), limits + verdict, escape(about))
    console = Console(highlight=False)
    console.print(table)
    if not judged:
        console.print("Expected bands hold for the laptop profile with its own settings: none is shown.", style="dim")
    console.print(f"report: {folder.path / 'report.html'}", soft_wrap=True)


def _verdict(*, holds: bool) -> str:
    return " [green]✓[/]" if holds else " [red]✗ outside[/]"


def parse(entry: Entry, module: ModuleType, arguments: list[str]) -> tuple[Experiment, Options, Launch]:
    """Settings, options and launch from flags; tyro makes the flags from the three dataclasses."""
    preset = with_profile(module, _profile_in(arguments))
    command = make_dataclass(
        "Command",
        [
            ("experiment", type(preset), field(default=preset)),
            ("launch", Launch, field(default=Launch(profile=_profile_in(arguments)))),
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
    return given.experiment, given.machine, given.launch


def with_profile(module: ModuleType, profile: str) -> Experiment:
    """The experiment with the presets of a profile."""
    presets: dict[str, dict[str, Any]] = {"laptop": {}, **getattr(module, "profiles", {})}
    if profile not in presets:
        raise RunError(f"{module.__name__.split('.')[-1]} has no profile {profile!r}, only {', '.join(presets)}")
    return cast("Experiment", module.Experiment(**presets[profile]))


def recipe_of(
    atlas: Atlas, entry: Entry, module: ModuleType, experiment: Experiment, profile: str, *, as_is: bool
) -> Recipe:
    """The experiment with its title, formulas and bands."""
    covered = [atlas.rows[row] for row in entry.covers if row in atlas.rows]
    formulas = [Formula(row.title, f"{row.id} · {row.source}", row.formula) for row in covered if row.formula]
    return Recipe(
        name=entry.name,
        title=entry.title,
        experiment=experiment,
        expected=getattr(module, "expected", {}),
        formulas=tuple(formulas[:4]),
        profile=profile,
        as_is=as_is,
    )


def _profile_in(arguments: list[str]) -> Profile:
    """The profile is needed before the flags are parsed: it sets their defaults."""
    for position, argument in enumerate(arguments):
        if argument == "--profile" and position + 1 < len(arguments):
            return cast("Profile", arguments[position + 1])
        if argument.startswith("--profile="):
            return cast("Profile", argument.removeprefix("--profile="))
    return "laptop"
