"""Execute an experiment: create its folder, run it, and write its results and its report."""

import os
import platform
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import Field, asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

import numpy as np
import torch

from parnassus import __version__
from parnassus.atlas.bands import Band, judge
from parnassus.atlas.reading import settings_of
from parnassus.notices import pass_notices
from parnassus.report.formulas import Formula
from parnassus.report.page import Page, render
from parnassus.runs.environment import describe_environment
from parnassus.runs.errors import RunError, RunInterrupted
from parnassus.runs.folder import RunFolder
from parnassus.runs.lookup import command_for
from parnassus.runs.metrics import read_metrics
from parnassus.train import parallel
from parnassus.train.devices import choose_device
from parnassus.train.next_commands import next_commands
from parnassus.train.options import Options
from parnassus.train.peers import explain_lost_processes
from parnassus.train.run import Run


@runtime_checkable
class Experiment(Protocol):
    """A frozen dataclass of settings whose call runs the experiment."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __call__(self, run: Run) -> Mapping[str, float]: ...


@dataclass(frozen=True)
class Recipe:
    """An experiment with its title, bands, formulas and profile."""

    name: str
    title: str
    experiment: Experiment
    expected: Mapping[str, Band]
    formulas: tuple[Formula, ...] = ()
    profile: str = "laptop"
    bands_apply: bool = True  # False for other settings than those to which the bands apply

    @property
    def settings(self) -> dict[str, object]:
        return asdict(self.experiment)


def start(recipe: Recipe, options: Options, runs: Path, *, name: str | None = None) -> RunFolder:
    """Create a folder for this run; under torchrun the first process creates it and broadcasts its path."""
    world = parallel.world_from_environment()
    path = ""
    if world.rank == 0:
        about: dict[str, object] = {
            "experiment": recipe.name,
            "title": recipe.title,
            "profile": recipe.profile,
            "settings": recipe.settings,
            "options": asdict(options),
            "command": command_line(),
            "started": datetime.now().astimezone().isoformat(timespec="seconds"),
            "versions": versions(),
            "machine": machine(options),
        }
        path = str(RunFolder.create(runs, name or recipe.name, about, stamp=name is None).path)
    if world.size > 1:
        parallel.join(choose_device(options.device, world.local_rank))
        path = parallel.broadcast_from_first(path)
    return RunFolder(Path(path))


def execute(recipe: Recipe, options: Options, folder: RunFolder) -> dict[str, float]:
    """Run the experiment in its folder, from its last checkpoint if there is one; returns its results."""
    if folder.status == "finished" and not lacks_weights(folder):
        return _complete_finished(recipe, folder)
    if parallel.world_from_environment().rank:
        return _execute(recipe, options, folder)
    with folder.lock(), _log_outcome(folder), _keep_notices(folder):
        numbers = _execute(recipe, options, folder)
        write_report(recipe, folder)
    return numbers


@contextmanager
def _log_outcome(folder: RunFolder) -> Iterator[None]:
    """Log the start and the outcome of the run in log.txt, and an error in error.json."""
    resumed = (folder.path / "checkpoint.safetensors").exists()
    (folder.path / "error.json").unlink(missing_ok=True)
    folder.log(f"{'resumed' if resumed else 'started'} by process {os.getpid()}")
    try:
        yield
    except RunInterrupted:
        folder.log("stopped; the state is saved")
        raise
    except Exception as error:
        folder.log("".join(traceback.format_exception(error)).rstrip())
        folder.write_json("error.json", {"error": f"{error}", "kind": type(error).__name__})
        raise
    folder.log("finished")


@contextmanager
def _keep_notices(folder: RunFolder) -> Iterator[None]:
    """Store the messages on the data in data.json, for the report, and in log.txt."""
    notices: list[str] = []

    def keep(line: str) -> None:
        notices.append(line)
        folder.log(line)
        folder.write_json("data.json", {"notices": notices})

    with pass_notices(keep):
        yield


def _complete_finished(recipe: Recipe, folder: RunFolder) -> dict[str, float]:
    """The results of a finished run; its report is written if the run was killed before that."""
    if (folder.path / "report.html").exists():
        raise RunError(f"{folder.path} is already finished: {folder.path / 'report.html'}")
    write_report(recipe, folder)
    return folder.results


def lacks_weights(folder: RunFolder) -> bool:
    """Whether a model was built whose weights are missing; executing the run again writes them."""
    return (folder.path / "model.json").exists() and not (folder.path / "weights.safetensors").exists()


def _execute(recipe: Recipe, options: Options, folder: RunFolder) -> dict[str, float]:
    threads = torch.get_num_threads()
    run = Run(folder, options)
    try:
        with explain_lost_processes(folder):
            with _stop_at_signals(run):
                numbers = recipe.experiment(run)
            missing = set(recipe.expected) - set(numbers)
            if missing:
                raise RunError(f"{recipe.name} must return {', '.join(sorted(missing))}, as declared in `expected`")
            return run.finish(numbers)
    except KeyboardInterrupt:
        raise RunInterrupted from None
    finally:
        run.close()
        torch.set_num_threads(threads)
        parallel.leave()


def write_report(recipe: Recipe, folder: RunFolder) -> Path:
    """Write report.html from the files of the folder, replacing an existing one."""
    about, result = folder.read_json("run.json"), folder.read_json("result.json")
    verdict = judge(recipe.expected, folder.results, applies=recipe.bands_apply)
    page = Page(
        title=recipe.title,
        name=folder.path.name,
        formulas=recipe.formulas,
        values=verdict.values,
        remark=verdict.remark,
        content=cast("list[dict[str, object]]", list(folder.read_json("story.json").values())),
        metrics=read_metrics(folder.path / "metrics.csv"),
        settings=recipe.settings,
        facts=describe_environment(about, result.get("seconds")) | describe_data(folder),
        commands={
            "Repeat this run": str(about.get("command", "")),
            **next_commands(recipe.name, recipe.experiment, folder),
            "Compare it with another run": command_for(folder, "runs compare", "OTHER"),
        },
    )
    folder.write_text("report.html", render(page, folder.file("figures")))
    return folder.path / "report.html"


def describe_data(folder: RunFolder) -> dict[str, str]:
    """How the data of a run were read, if they are the user's own."""
    notices = folder.read_json("data.json").get("notices")
    return {"data": "; ".join(map(str, notices))} if isinstance(notices, list) and notices else {}


def options_from(folder: RunFolder) -> Options:
    """The options with which a run was started; unknown ones, of other versions, are ignored."""
    saved = folder.read_json("run.json").get("options")
    options = saved if isinstance(saved, dict) else {}
    known = [each for each in settings_of(Options) if each.name in options]
    for each in known:
        if not each.accepts(options[each.name]):
            raise RunError(
                f"{folder.path / 'run.json'} is damaged: {each.name} must be a valid {each.annotation}; "
                f"got {options[each.name]!r:.60}"
            )
    return Options(**{each.name: options[each.name] for each in known})


def command_line() -> str:
    """The command line of this process, in the form in which it would be typed."""
    program = Path(sys.argv[0]).name
    return " ".join([program if program != "__main__.py" else "python -m parnassus", *sys.argv[1:]])


def machine(options: Options) -> str:
    """Operating system, processor, number of cores and, if used, the GPU."""
    words = [f"{platform.system()} {platform.machine()}", f"{os.cpu_count()} cores"]
    if choose_device(options.device).type == "cuda":
        words.append(torch.cuda.get_device_name())
    return ", ".join(words)


def versions() -> dict[str, str]:
    return {
        "parnassus": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


@contextmanager
def _stop_at_signals(run: Run) -> Iterator[None]:
    """On Ctrl-C or SIGTERM, finish the current step and save; on a second signal, stop immediately."""
    asked = False

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked or not run.stop_soon():
            raise KeyboardInterrupt
        asked = True

    try:
        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: the caller handles signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
