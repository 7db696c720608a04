"""The verbs with fixed flags: list, show, check, atlas, runs, resume, lab and doctor; others have their own parsers."""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Literal, TypeAlias

import tyro
from tyro.conf import Positional

from parnassus.atlas.declarations import Command
from parnassus.atlas.index import load_atlas
from parnassus.runs.folder import RUNS

RunsAction: TypeAlias = Literal["list", "compare", "open", "keep"]


def list_(room: Positional[str | None] = None, /) -> int:
    """List the experiments that `parnassus run` can run.

    Args:
        room: only the experiments of this subject
    """
    from parnassus.cli.listing import list_experiments

    return list_experiments(room)


def show(name: Positional[str], /) -> int:
    """Show an item of the sources (by id), an experiment, a subject, a symbol, or the card of a data set.

    Args:
        name: for example B4.3-4, B4.3, vae, latent, PCA, mnist or my.csv
    """
    from parnassus.cli.listing import show_anything

    return show_anything(name)


def run() -> int:
    """Run an experiment: parnassus run NAME [flags]; parnassus run NAME --help lists its flags."""
    raise AssertionError("handled by dispatch")


def sample() -> int:
    """Draw samples from a trained generative run, or generate text: parnassus sample RUN [flags]."""
    raise AssertionError("handled by dispatch")


def predict() -> int:
    """Apply a trained run to new input: parnassus predict RUN photo.jpg folder/ [flags]."""
    raise AssertionError("handled by dispatch")


def evaluate() -> int:
    """Evaluate trained runs on other data, or over episodes: parnassus evaluate RUN [RUN ...] [flags]."""
    raise AssertionError("handled by dispatch")


def check(ids: Positional[tuple[str, ...]] = (), /, *, failed: bool = False) -> int:
    """Run claims and errata, all by default; the exit code is 1 if one does not hold.

    Args:
        ids: ids or parts of ids (B4.3-4, B4, D1), subjects (latent) or names of claims
        failed: show only claims that do not hold
    """
    from parnassus.cli.check import check_claims

    return check_claims(list(ids), only_failed=failed)


def atlas(part: Positional[str | None] = None, /, *, json: bool = False) -> int:
    """Show the coverage of the sources by chapter, or the rows of one part.

    Args:
        part: a chapter or section, such as B13 or B13.2
        json: print the rows as JSON
    """
    from parnassus.cli.listing import show_atlas

    return show_atlas(part, as_json=json)


def runs(
    action: Positional[RunsAction] = "list",
    names: Positional[tuple[str, ...]] = (),
    /,
    *,
    metric: str = "loss",
    note: str = "",
    folder: Path = RUNS,
) -> int:
    """List runs, compare them in a table and a plot, open a report, or keep a result.

    Args:
        action: list, compare, open (the report in a browser) or keep (the result in results/)
        names: runs to compare, open or keep: an unambiguous prefix of the name, or `last`
        metric: the metric that compare plots
        note: remark to store with a kept result
        folder: folder that contains the runs
    """
    from parnassus.cli.runs import show_runs

    return show_runs(action, list(names), metric=metric, note=note, root=folder)


def resume(name: Positional[str], /, *, folder: Path = RUNS, device: str | None = None) -> int:
    """Resume an interrupted run; the final weights are bitwise identical to those of an uninterrupted run.

    Args:
        name: the run: an unambiguous prefix of the name, or `last`
        folder: folder that contains the runs
        device: device to use instead of the one on which the run was started
    """
    from parnassus.cli.run import resume_run

    return resume_run(name, folder, device=device)


def lab(*, host: str | None = None, port: int | None = None, folder: Path = RUNS, browser: bool = True) -> int:
    """Open the lab: a web page on this machine with runs, claims and interactive probes.

    Args:
        host: address to listen on instead of loopback; other machines need the printed token
        port: port to listen on; by default the first free port from 8700
        folder: folder that contains the runs
        browser: open a browser
    """
    from parnassus.cli.lab import open_lab

    return open_lab(folder, host=host, port=port, browser=browser)


def doctor() -> int:
    """Report installed packages, devices and data sets, and how to get missing ones."""
    from parnassus.cli.doctor import examine_machine

    return examine_machine()


VERBS: dict[str, Callable[..., int]] = {
    "list": list_,
    "show": show,
    "run": run,
    "check": check,
    "atlas": atlas,
    "runs": runs,
    "resume": resume,
    "sample": sample,
    "predict": predict,
    "evaluate": evaluate,
    "lab": lab,
    "doctor": doctor,
}


def parse(arguments: list[str], description: str) -> int:
    """Parse the verb and its flags with tyro, and call the verb."""
    if arguments not in ([], ["-h"], ["--help"]):
        return _call(VERBS, arguments, description)
    verbs = {**VERBS, **{verb: _help_stub(command) for verb, command in load_atlas().commands.items()}}
    page = _Page()
    try:
        with redirect_stdout(page):
            return _call(verbs, ["--help"], description)
    finally:  # shorten the usage line: the verbs are listed one by one below it
        print(page.getvalue().replace("{" + ",".join(verbs) + "}", "VERB [flags]"), end="")


class _Page(StringIO):
    """A buffer for printed text, which reports the terminal status of standard output so that colours are kept."""

    def isatty(self) -> bool:
        return sys.__stdout__ is not None and sys.__stdout__.isatty()


def _help_stub(command: Command) -> Callable[[], int]:
    """A stand-in for a room's verb on the help page; `dispatch` calls the room's own function."""

    def verb() -> int:
        raise AssertionError("handled by dispatch")

    verb.__doc__ = command.help
    return verb


def _call(verbs: dict[str, Callable[..., int]], arguments: list[str], description: str) -> int:
    code: int = tyro.extras.subcommand_cli_from_dict(
        verbs, prog="parnassus", description=description, args=arguments, sort_subcommands=False
    )
    return code
