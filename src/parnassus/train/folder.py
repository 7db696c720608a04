"""A run's folder: complete or absent, written by one run at a time.

run.json                 what was run: experiment, settings, seed, device, versions, command
metrics.csv              step, metric, value: a line each
events.out.tfevents.*    the same for TensorBoard
checkpoint.safetensors   where to go on
weights.safetensors      the trained model, when the run is done; model.json rebuilds it
figures/                 NAME.svg and NAME.png
story.json               figures, notes and tables in the order of the report
result.json              the numbers the experiment returned; present only when it is done
report.html              everything above on one page
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal

from parnassus.train.checkpoint import replace_durably
from parnassus.train.errors import RunError

Status = Literal["running", "finished", "interrupted"]


class RunFolder:
    """Reads and writes the files of one run; every file is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, root: Path, name: str, about: dict[str, object], *, stamp: bool = True) -> "RunFolder":
        """A new folder under `root`, which appears at once with its run.json or not at all."""
        root.mkdir(parents=True, exist_ok=True)
        _sweep(root)
        new = root / f".new-{os.getpid()}-{os.urandom(4).hex()}"
        new.mkdir()
        cls(new).write_json("run.json", about)
        (new / "figures").mkdir()
        for candidate in _names(name, stamp=stamp):
            try:
                new.rename(root / candidate)  # fails when the target holds a run already
            except OSError:
                if stamp:
                    continue
                shutil.rmtree(new)
                raise RunError(f"{root / candidate} exists already: choose another --name, or resume it") from None
            return cls(root / candidate)
        raise AssertionError("unreachable: names never end")

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        if not (path / "run.json").is_file():
            raise RunError(f"{path} is not a run: it has no run.json")
        return cls(path)

    @property
    def status(self) -> Status:
        if (self.path / "result.json").exists():
            return "finished"
        try:
            with self.lock(patience=0.0):
                return "interrupted"
        except RunError:
            return "running"

    @contextmanager
    def lock(self, patience: float = 1.0) -> Iterator[None]:
        """Hold the folder for one writer; the system lets go of it when the process ends, however it ends.

        `patience` seconds bridge the moment in which somebody only asks for the status.
        """
        with (self.path / ".lock").open("a") as file:
            deadline = time.monotonic() + patience
            while not _try_lock(file.fileno()):
                if time.monotonic() >= deadline:
                    raise RunError(f"{self.path} is in use by another run")
                time.sleep(0.05)
            yield

    def write_text(self, name: str, text: str) -> None:
        new = self.path / f".{name}.new"
        new.write_text(text, encoding="utf-8")
        replace_durably(new, self.path / name)

    def write_json(self, name: str, value: object) -> None:
        self.write_text(name, json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def read_json(self, name: str) -> dict[str, object]:
        """The content of a JSON file; {} when it is not there."""
        path = self.path / name
        if not path.exists():
            return {}
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise RunError(f"{path} is damaged: {error}") from None
        if not isinstance(value, dict):
            raise RunError(f"{path} is damaged: expected an object, got {type(value).__name__}")
        return value


def run_folders(root: Path) -> list[RunFolder]:
    """The runs under `root`, oldest first."""
    paths = [path.parent for path in root.glob("*/run.json") if not path.parent.name.startswith(".")]
    return [RunFolder(path) for path in sorted(paths, key=lambda path: (path / "run.json").stat().st_mtime_ns)]


def find_run(root: Path, name: str) -> RunFolder:
    """The run called `name`: a path, a folder under `root`, an unambiguous beginning, or "last"."""
    if (Path(name) / "run.json").is_file():
        return RunFolder(Path(name))
    folders = run_folders(root)
    if name == "last" and folders:
        return folders[-1]
    found = [folder for folder in folders if folder.path.name == name] or [
        folder for folder in folders if folder.path.name.startswith(name)
    ]
    if len(found) == 1:
        return found[0]
    known = ", ".join(folder.path.name for folder in (found or folders)[-5:]) or "none"
    problem = "fits several runs" if found else "is no run"
    raise RunError(f"{name!r} {problem} in {root} (there: {known})")


def _names(name: str, *, stamp: bool) -> Iterator[str]:
    if not stamp:
        yield name
        return
    base = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    yield base
    count = 2
    while True:
        yield f"{base}-{count}"
        count += 1


def _sweep(root: Path) -> None:
    """Remove what a run left behind that was killed while creating its folder."""
    for leftover in root.glob(".new-*"):
        pid = leftover.name.split("-")[1]
        if pid.isdigit() and not _alive(int(pid)):
            shutil.rmtree(leftover, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _try_lock(descriptor: int) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            getattr(msvcrt, "locking")(descriptor, 2, 1)  # noqa: B009 - LK_NBLCK; unknown to the checker elsewhere
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
