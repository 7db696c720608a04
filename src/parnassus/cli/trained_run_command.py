"""The flags of `sample`, `predict` and `evaluate`: those of the verb, and those that the run's experiment declares."""

import importlib
import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import tyro

from parnassus.atlas.reading import RUN_VERBS, Entry, read_settings
from parnassus.atlas.settings import Setting
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RUNS, RunFolder, find_run
from parnassus.train.trained import entry_of

Options = TypeVar("Options")


@dataclass(frozen=True)
class RunCommand(Generic[Options]):
    """A verb applied to runs: the experiment's own flags (`how`), the verb's `options`, and what follows the run."""

    how: Any  # the experiment's Sample, Predict or Evaluate
    options: Options
    folders: tuple[RunFolder, ...]
    inputs: tuple[str, ...]


def print_usage(verb: str, arguments: Sequence[str], follows: str = "") -> int | None:
    """The usage line where no run is named; returns the exit code, or None where one is."""
    if _positional(arguments):
        return None
    asked = bool({"-h", "--help"} & set(arguments))
    hint = f"(RUN may be `last`; flags: parnassus {verb} RUN --help)"
    print(f"{_usage(verb, follows)}    {hint}", file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2


def parse_run_command(
    verb: str, arguments: Sequence[str], options: Options, *, follows: str = ""
) -> RunCommand[Options]:
    """The run that is named first, what is named after it, and the flags.

    `follows` names what may follow the run in the usage line; "RUN" stands for more runs.
    """
    names = _positional(arguments)
    root = _runs_folder(arguments)
    folder = find_run(root, names[0])
    entry = experiment_of(folder, verb)
    followers = names[1:]
    module = importlib.import_module(entry.module)
    kind = next(kind for kind, each in RUN_VERBS.items() if each == verb)
    declared = getattr(module, kind)
    command = make_dataclass(
        "Command",
        [(verb, declared, field(default=declared())), ("command", type(options), field(default=options))],
    )
    given: Any = tyro.cli(
        command,
        prog=f"parnassus {verb} {folder.path.name}",
        description=f"{_usage(verb, follows)}\n\n{entry.title}",
        args=list(arguments[len(names) :]),
        config=(tyro.conf.OmitArgPrefixes,),
    )
    how = getattr(given, verb)
    check_limits(entry, kind, how)
    folders = [folder, *(find_run(root, name) for name in followers)] if follows == "RUN" else [folder]
    for other in folders[1:]:
        experiment_of(other, verb)
    return RunCommand(how, given.command, tuple(folders), () if follows == "RUN" else tuple(followers))


def experiment_of(folder: RunFolder, verb: str) -> Entry:
    """The experiment of a run, which must support the verb."""
    entry = entry_of(folder.read_json("run.json"))
    if verb not in entry.verbs:
        supported = " and ".join(f"`{each}`" for each in entry.verbs) or "neither `sample`, `predict` nor `evaluate`"
        raise RunError(
            f"{folder.path.name} is a run of {entry.name}, which does not support `{verb}`; it supports {supported}"
        )
    return entry


def check_limits(entry: Entry, kind: str, how: object) -> None:
    """Refuse values outside the limits of their types."""
    for setting in run_settings(entry, kind):
        violation = setting.violation(getattr(how, setting.name))
        if violation is not None:
            raise RunError(f"{setting.flag} {violation} ({setting.help})")


def run_settings(entry: Entry, kind: str) -> tuple[Setting, ...]:
    """The fields of an experiment's Sample, Predict or Evaluate, inherited ones included."""
    declared = getattr(importlib.import_module(entry.module), kind)
    return read_settings(Path(inspect.getfile(declared)), declared.__name__)


def _usage(verb: str, follows: str) -> str:
    return f"usage: parnassus {verb} RUN {follows and f'[{follows} ...] '}[flags]"


def _runs_folder(arguments: Sequence[str]) -> Path:
    """The folder of the runs is needed before the flags are parsed: the run decides which flags there are."""
    for position, argument in enumerate(arguments):
        if argument == "--folder" and position + 1 < len(arguments):
            return Path(arguments[position + 1])
        if argument.startswith("--folder="):
            return Path(argument.removeprefix("--folder="))
    return RUNS


def _positional(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments before the first flag; `-` is no flag."""
    count = next((i for i, each in enumerate(arguments) if each.startswith("-") and each != "-"), len(arguments))
    return arguments[:count]
