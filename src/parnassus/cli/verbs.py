"""The verbs with fixed flags: list, show, check, atlas, runs, resume, lab, doctor; the others parse their own."""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from parnassus.atlas.index import Atlas
from parnassus.atlas.reading import Command
from parnassus.runs.folder import RUNS


def list_(room: Positional[str | None] = None, /) -> int:
    """List the experiments that `parnassus run` can run.

    Args:
        room: only the experiments of this subject
    """
    from parnassus.cli.listing import list_experiments

    return list_experiments(room)


def show(name: Positional[str], /) -> int:
    """Describe an id of the sources, an experiment, a subject or a symbol.

    Args:
        name: for example B4.3-4, B4.3, vae, latent or PCA
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
    """Measure trained runs on other data, or over episodes: parnassus evaluate RUN [RUN ...] [flags]."""
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
    """Show how much of the sources is implemented: by chapter, or the rows of one part.

    Args:
        part: a chapter or section, such as B13 or B13.2
        json: print every row as JSON
    """
    from parnassus.cli.listing import show_atlas

    return show_atlas(part, as_json=json)


def runs(
    action: Positional[Annotated[str, tyro.conf.arg(metavar="{list,compare,open,keep}")]] = "list",
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
        names: runs to compare, open or keep: a prefix that fits one run, or `last`
        metric: the metric that compare plots
        note: remark to store with a kept result
        folder: where the runs are
    """
    from parnassus.cli.runs import show_runs

    return show_runs(action, list(names), metric=metric, note=note, root=folder)


def resume(name: Positional[str], /, *, folder: Path = RUNS, device: str | None = None) -> int:
    """Resume an interrupted run; the weights are bit for bit those of an uninterrupted one.

    Args:
        name: the run: a prefix that fits one run, or `last`
        folder: where the runs are
        device: compute here instead of on the device it started on
    """
    from parnassus.cli.run import resume_run

    return resume_run(name, folder, device=device)


def lab(*, host: str | None = None, port: int | None = None, folder: Path = RUNS, browser: bool = True) -> int:
    """Open the lab: a web page on this machine with runs, claims and interactive probes.

    Args:
        host: listen on this address instead of loopback; other machines need the token that is printed
        port: port to listen on; by default the first free one from 8700
        folder: where the runs are
        browser: open a browser
    """
    from parnassus.cli.lab import open_lab

    return open_lab(folder, host=host, port=port, browser=browser)


def doctor() -> int:
    """Report installed versions, devices and data, and how to get what is missing."""
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
    """Let tyro find the verb and its flags."""
    if arguments not in ([], ["-h"], ["--help"]):
        return _call(VERBS, arguments, description)
    verbs = {**VERBS, **{verb: _help_stub(command) for verb, command in Atlas().commands.items()}}
    page = _Page()
    try:
        with redirect_stdout(page):
            return _call(verbs, ["--help"], description)
    finally:  # the list of all verbs in one line is wider than a screen; they stand below it, one by one
        print(page.getvalue().replace("{" + ",".join(verbs) + "}", "VERB [flags]"), end="")


class _Page(StringIO):
    """Printed text, kept; it may have colours if standard output may."""

    def isatty(self) -> bool:
        return sys.__stdout__ is not None and sys.__stdout__.isatty()


def _help_stub(command: Command) -> Callable[[], int]:
    """A verb of a room for the help page; `dispatch` calls the room itself."""

    def verb() -> int:
        raise AssertionError("handled by dispatch")

    verb.__doc__ = command.help
    return verb


def _call(verbs: dict[str, Callable[..., int]], arguments: list[str], description: str) -> int:
    code: int = tyro.extras.subcommand_cli_from_dict(
        verbs, prog="parnassus", description=description, args=arguments, sort_subcommands=False
    )
    return code
