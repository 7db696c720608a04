"""The verbs with few flags: list, show, check, watch, evaluate, atlas, runs …; the others parse for themselves."""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from parnassus.cli.places import RUNS


def list_(room: Positional[str | None] = None, /) -> int:
    """List the experiments: what `parnassus run` can run.

    Args:
        room: only those of this room
    """
    from parnassus.cli.listing import list_experiments

    return list_experiments(room)


def show(name: Positional[str], /) -> int:
    """Show an id, an experiment, a room or a symbol: what it is, where it stands, how to run it.

    Args:
        name: B4.3-4, B4.3, autoencoder_on_fashion, latent, PCA …
    """
    from parnassus.cli.listing import show_anything

    return show_anything(name)


def run() -> int:
    """Run an experiment: parnassus run NAME [flags]; parnassus run NAME --help lists its flags."""
    raise AssertionError("handled by dispatch")


def sample() -> int:
    """Draw from a trained generative run: parnassus sample RUN [flags]; RUN may be `last`."""
    raise AssertionError("handled by dispatch")


def explain() -> int:
    """Say what each feature contributed to a prediction: parnassus explain --model RUN --data my.csv --row 17."""
    raise AssertionError("handled by dispatch")


def watch(
    name: Positional[str],
    /,
    *,
    episodes: int = 1,
    learner: int | None = None,
    drawn: bool = False,
    seed: int = 0,
    out: Path | None = None,
    device: str = "cpu",
    folder: Path = RUNS,
) -> int:
    """Let the agent of a trained run play, and write a film of it; says what every episode returned.

    Args:
        name: the run; an unambiguous beginning will do, and `last`
        episodes: one after the other
        learner: which of those that learned side by side, from 1; unless told, the best
        drawn: draw actions as in training, instead of taking the best
        seed: another seed, other episodes
        out: where to write the film; unless told, RUN/films/seed-N.gif
        device: where to compute
        folder: where the runs are
    """
    from parnassus.cli.playing import find_player
    from parnassus.cli.seeds import demand_a_seed
    from parnassus.cli.watch import watch

    demand_a_seed(seed)
    player = find_player(name, folder, device=device, drawn=drawn)
    path = out or player.folder / "films" / f"seed-{seed}"
    return watch(player, episodes=episodes, learner=learner, seed=seed, out=path)


def evaluate(
    names: Positional[tuple[str, ...]] = (),
    /,
    *,
    episodes: int = 100,
    drawn: bool = False,
    seed: int = 0,
    device: str = "auto",
    folder: Path = RUNS,
    json: bool = False,
) -> int:
    """Say what the agents of trained runs return: mean, spread and interquartile mean over their seeds.

    Args:
        names: the runs; an unambiguous beginning will do, and `last`, which it is unless told
        episodes: of each learner
        drawn: draw actions as in training, instead of taking the best
        seed: another seed, other episodes
        device: where to compute
        folder: where the runs are
        json: print JSON and nothing else
    """
    from parnassus.cli.evaluate import evaluate_runs
    from parnassus.cli.playing import find_player
    from parnassus.cli.seeds import demand_a_seed

    demand_a_seed(seed)
    players = [find_player(name, folder, device=device, drawn=drawn) for name in names or ("last",)]
    return evaluate_runs(players, episodes=episodes, seed=seed, as_json=json)


def check(ids: Positional[tuple[str, ...]] = (), /, *, failed: bool = False) -> int:
    """Check claims and errata by running them; all of them without ids. Exit code 1 when one does not hold.

    Args:
        ids: ids or parts of ids (B4.3-4, B4, D1), rooms (latent) or names of claims
        failed: show only what does not hold
    """
    from parnassus.cli.check import check_claims

    return check_claims(list(ids), only_failed=failed)


def atlas(part: Positional[str | None] = None, /, *, json: bool = False) -> int:
    """Show how much of the sources is built, per chapter; with an id or a part of one, its rows.

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
    """List runs, compare two or more of them in a table and a plot, open a report, or keep a result.

    Args:
        action: list, compare, open (the report in a browser) or keep (the result in results/)
        names: runs to compare, open or keep; an unambiguous beginning will do, and `last`
        metric: the curve that compare plots
        note: what a reader of a kept result must know beside it
        folder: where the runs are
    """
    from parnassus.cli.runs import show_runs

    return show_runs(action, list(names), metric=metric, note=note, root=folder)


def resume(name: Positional[str], /, *, folder: Path = RUNS, device: str | None = None) -> int:
    """Go on with an interrupted run, to the same weights as if nothing had happened.

    Args:
        name: the run; an unambiguous beginning will do, and `last`
        folder: where the runs are
        device: compute here instead of where it started
    """
    from parnassus.cli.run import resume_run

    return resume_run(name, folder, device=device)


def lab(*, host: str | None = None, port: int | None = None, folder: Path = RUNS, browser: bool = True) -> int:
    """Open the lab: a page on this machine over the same runs, where models can be touched.

    Args:
        host: listen on this address instead of loopback, for other machines; they need the token that is printed
        port: listen here; the first free one from 8700 on unless told
        folder: where the runs are
        browser: open a browser
    """
    from parnassus.cli.lab import open_lab

    return open_lab(folder, host=host, port=port, browser=browser)


def doctor() -> int:
    """Say what is installed, which devices and data are there, what is missing and how to get it."""
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
    "explain": explain,
    "watch": watch,
    "evaluate": evaluate,
    "lab": lab,
    "doctor": doctor,
}


class _Page(StringIO):
    """What is printed, kept; whoever prints may use colours if the person sees them."""

    def isatty(self) -> bool:
        return sys.__stdout__ is not None and sys.__stdout__.isatty()


def parse(arguments: list[str], description: str) -> int:
    """Let tyro find the verb and its flags."""
    if arguments not in ([], ["-h"], ["--help"]):
        return _parsed(arguments, description)
    page = _Page()
    try:
        with redirect_stdout(page):
            return _parsed(["--help"], description)
    finally:  # all verbs in one word are wider than a screen, and they stand below
        print(page.getvalue().replace("{" + ",".join(VERBS) + "}", "VERB [flags]"), end="")


def _parsed(arguments: list[str], description: str) -> int:
    code: int = tyro.extras.subcommand_cli_from_dict(
        VERBS, prog="parnassus", description=description, args=arguments, sort_subcommands=False
    )
    return code
