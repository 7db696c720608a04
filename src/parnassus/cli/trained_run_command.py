"""The arguments of `sample`, `predict` and `evaluate`: runs, inputs, and flags of the verb and of the experiment."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, TypeVar

import tyro
from tyro.conf import Positional

from parnassus.atlas.declarations import RUN_VERBS, Entry
from parnassus.atlas.reading import settings_of
from parnassus.atlas.settings import check_limits
from parnassus.cli.flags import flags_of, from_flags, is_help_requested, print_usage_line
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RunFolder
from parnassus.runs.lookup import find_run
from parnassus.train.trained import find_entry


class RunOptions(Protocol):
    """The options of a verb: a dataclass with the folder of the runs."""

    @property
    def folder(self) -> Path: ...


Options = TypeVar("Options", bound=RunOptions)
FOLLOWERS = {
    "": "",
    "INPUT": "files, folders of files, or - for standard input",
    "RUN": "further runs with the same kind of evaluation",
}
"""Placeholders of the arguments that follow the run, with their help texts."""


@dataclass(frozen=True)
class RunCommand(Generic[Options]):
    """A parsed command line: the experiment's flags (`how`), the verb's `options`, the runs, and further inputs."""

    how: Any  # the experiment's Sample, Predict or Evaluate
    options: Options
    folders: tuple[RunFolder, ...]
    inputs: tuple[str, ...]


def print_usage(verb: str, arguments: Sequence[str], options: RunOptions, follows: str = "") -> int | None:
    """Print the usage line and return the exit code if no run is given; otherwise return None."""
    if read_options(verb, arguments, options)[1]:
        return None
    usage = f"usage: parnassus {verb} RUN {follows and f'[{follows} ...] '}[flags]"
    return print_usage_line(f"{usage}    (RUN may be `last`; flags: parnassus {verb} RUN --help)", arguments)


def parse_run_command(
    verb: str,
    arguments: Sequence[str],
    options: Options,
    *,
    follows: str = "",
    options_for: Callable[[type], Options] | None = None,
) -> RunCommand[Options]:
    """Parse a run, the arguments that follow it, and the flags, in any order as long as the run precedes its flags.

    `follows` is a key of FOLLOWERS; "RUN" means that the further arguments are runs too. `options_for` returns the
    options for a Sample, Predict or Evaluate, if not all runs have the same `options`.
    """
    common, rest = read_options(verb, arguments, options)
    folder = find_run(common.folder, run_argument(verb, rest))
    entry, declared = find_declared(folder, verb)
    if options_for is not None:
        options = options_for(declared)
    command = command_type(verb, flags_of(declared(), entry.verb_settings[verb]), options, follows)
    parser = partial(
        tyro.cli,
        command,
        prog=f"parnassus {verb} {folder.path.name}",
        description=entry.title,
        config=(tyro.conf.OmitArgPrefixes,),
    )
    if is_help_requested(arguments):
        parser(args=["--help"])  # alone, since tyro omits the positional arguments that it has parsed from the page
    given: Any
    given, rest = parser(args=list(arguments), return_unknown_args=True)
    if any(map(is_flag, rest)):
        parser(args=list(dropwhile(is_positional, rest)))  # prints an error that names them, and exits
    positional: list[str] = [*getattr(given, "followers", ()), *rest]
    names = positional[1:]  # without the run
    how: Any = from_flags(declared, getattr(given, verb))
    check_limits(entry.verb_settings[verb], how)
    check_limits(settings_of(type(options)), given.general)
    if follows != "RUN":
        return RunCommand(how, given.general, (folder,), tuple(names))
    others = [find_run(common.folder, name) for name in names]
    for other in others:
        check_same_implementation(verb, folder, other)
    return RunCommand(how, given.general, (folder, *others), ())


def read_options(verb: str, arguments: Sequence[str], options: Options) -> tuple[Options, list[str]]:
    """The options of the verb, and all other arguments: runs, inputs, and flags of the experiment."""
    given = [each for each in arguments if each not in ("-h", "--help")]
    parsed: tuple[Options, list[str]] = tyro.cli(
        type(options), prog=f"parnassus {verb} RUN", default=options, args=given, return_unknown_args=True
    )
    return parsed


def run_argument(verb: str, rest: Sequence[str]) -> str:
    """The first of the arguments that remain, which must not be a flag: the run determines which flags exist."""
    flags = list(takewhile(is_flag, rest))
    if flags:
        raise RunError(f"write the run before the flags of its experiment: parnassus {verb} RUN {flags[0]} …")
    return rest[0]


def is_flag(argument: str) -> bool:
    return argument.startswith("-") and argument != "-"


def is_positional(argument: str) -> bool:
    return not is_flag(argument)


def command_type(verb: str, flags: object, options: RunOptions, follows: str) -> type:
    """The dataclass of all arguments of a command for a run; the run itself is the first of the `followers`."""
    named = tyro.conf.arg(metavar=f"[{follows} ...]", help=FOLLOWERS[follows], help_behavior_hint="")
    followers = Annotated[Positional[tuple[str, ...]], named]
    return make_dataclass(
        "Command",
        [
            *([("followers", followers, field(default=()))] if follows else []),
            (verb, type(flags), field(default=flags)),
            ("general", type(options), field(default=options)),
        ],
    )


def find_declared(folder: RunFolder, verb: str) -> tuple[Entry, type]:
    """The experiment of a run, which must support the verb, and its Sample, Predict or Evaluate."""
    entry = find_entry(folder)
    if verb not in entry.verbs:
        supported = " and ".join(f"`{each}`" for each in entry.verbs) or "neither `sample`, `predict` nor `evaluate`"
        raise RunError(
            f"{folder.path.name} is a run of {entry.name}, which does not support `{verb}`; it supports {supported}"
        )
    name = next(name for name, each in RUN_VERBS.items() if each == verb)
    declared: type = getattr(importlib.import_module(entry.module), name)
    return entry, declared


def check_same_implementation(verb: str, first: RunFolder, other: RunFolder) -> None:
    """Reject two runs whose experiments implement the verb differently, since one call serves both."""
    (entry, declared), (other_entry, other_declared) = find_declared(first, verb), find_declared(other, verb)
    if implementation(declared) is not implementation(other_declared):
        raise RunError(
            f"{first.path.name} is a run of {entry.name} and {other.path.name} of {other_entry.name}, which have "
            f"different kinds of evaluation: {verb} them separately"
        )


def implementation(declared: type) -> type:
    """The class that defines how a Sample, Predict or Evaluate is called: itself or a base class."""
    return next(each for each in declared.__mro__ if "__call__" in vars(each))
