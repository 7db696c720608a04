"""Find runs: all runs of a folder, the run that a name or a path identifies, and the command that names it again."""

import os
import shlex
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from parnassus.runs.errors import RunError
from parnassus.runs.folder import RUNS, RunFolder

LATEST = "last"
"""The name of the run that was started last."""
MAX_CANDIDATES = 5
TRACES = ("run.json", "checkpoint.safetensors", "weights.safetensors", "result.json")
"""Files by which a folder is recognised as a run, also if it is damaged."""


class UnknownRunError(RunError):
    """No run has this name."""


class AmbiguousRunError(RunError):
    """Several runs have names with this beginning."""


def run_folders(root: Path) -> list[RunFolder]:
    """The runs in `root`, oldest first, including damaged ones."""
    check_root(root)
    try:
        paths = [path for path in root.iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []
    dated = [(started, path) for path in paths if (started := _start_time(path)) is not None]
    return [RunFolder(path) for _, path in sorted(dated)]


def find_run(root: Path, name: str) -> RunFolder:
    """The run that `name` identifies: its path, its name in `root`, `last`, or an unambiguous beginning of its name.

    A name without a separator is searched for in `root` first, then in the current directory.
    """
    path = Path(name)
    if name and path.name != name:
        return _run_at(path)
    folders = run_folders(root)
    exact = [folder for folder in folders if folder.path.name == name]
    if exact:
        return exact[0]
    if name and os.path.lexists(path / "run.json"):
        return RunFolder(path)
    if name == LATEST and folders:
        return folders[-1]
    found = [folder for folder in folders if name and folder.path.name.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousRunError(f"{name!r} matches several runs in {root}; the latest are: {_candidates(found)}")
    raise UnknownRunError(f"{name!r} is not a run in {root}; the latest are: {_candidates(folders)}")


def command_for(folder: RunFolder, verb: str, *arguments: str) -> str:
    """The command line that applies a verb to the run, quoted for a shell in the current directory."""
    name, root = folder.path.name, folder.path.parent
    if name.startswith("-"):  # as a flag; a path is not
        return shlex.join(["parnassus", *verb.split(), str(Path.cwd() / folder.path), *arguments])
    is_default = os.path.realpath(root) == os.path.realpath(RUNS)
    place = [] if is_default else ["--folder", str(root)]
    return shlex.join(["parnassus", *verb.split(), name, *arguments, *place])


def check_root(root: Path) -> None:
    """Raise a RunError if the folder of runs is a file."""
    if os.path.lexists(root) and not root.is_dir():
        raise RunError(f"--folder must be a folder of runs; got {root}, which is not a folder: choose another one")


def _run_at(path: Path) -> RunFolder:
    if not os.path.lexists(path / "run.json"):
        raise UnknownRunError(f"{path} is not a run: it has no file run.json; see: parnassus runs --folder FOLDER")
    return RunFolder(path)


def _start_time(path: Path) -> int | None:
    """When run.json was written, in nanoseconds; the time of another file if it is missing; None if it is no run."""
    for name in TRACES:
        try:
            return (path / name).lstat().st_mtime_ns  # links are not followed
        except OSError:  # no such file, no folder, or deleted by another process in the meantime
            continue
    return None


def _candidates(folders: Iterable[RunFolder]) -> str:
    """The names of the latest runs with the times of their starts, the latest first."""
    latest = list(folders)[: -MAX_CANDIDATES - 1 : -1]
    return ", ".join(f"{each.path.name} ({_format_time(_start_time(each.path))})" for each in latest) or "none"


def _format_time(nanoseconds: int | None) -> str:
    try:
        return f"{datetime.fromtimestamp((nanoseconds or 0) / 1e9):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):  # a time beyond the calendar
        return "unknown date"
