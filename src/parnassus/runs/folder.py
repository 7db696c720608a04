"""The folder of a run; it is created atomically and written by one process at a time.

run.json                 experiment, settings, seed, device, versions, command
metrics.csv              one line per value: step, metric, value
events.out.tfevents.*    the same values for TensorBoard
checkpoint.safetensors   state to resume from
weights.safetensors      the trained model of a finished run
model.json               the arguments from which the model is rebuilt
figures/                 NAME.svg and NAME.png
story.json               figures, notes and tables in the order of the report
progress.json            progress, updated twice per second during training
log.txt                  events with their times
error.json               the error of a failed run
result.json              the results; present only if the run is finished
report.html              results, figures, metrics and settings on one page
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Literal

from parnassus.runs.checked_json import format_json, parse_json
from parnassus.runs.durable import open_file, replace_durably, sync_folder, temporary_file
from parnassus.runs.errors import RunError
from parnassus.runs.progress import Progress

RUNS = Path(os.environ.get("PARNASSUS_RUNS", "runs"))
"""Default folder of runs: $PARNASSUS_RUNS, or the folder `runs` of the current directory."""
WITH_CHECKSUM = ("run.json", "model.json", "table.json", "result.json")
Status = Literal["running", "finished", "interrupted", "failed"]


class RunFolder:
    """Read and write the files of one run; JSON and text files are replaced atomically.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = RunFolder.create(Path(tempfile.mkdtemp()), "vae", {"experiment": "vae"})
    >>> folder.status
    'interrupted'
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, root: Path, name: str, about: dict[str, object], *, stamp: bool = True) -> "RunFolder":
        """Create a folder in `root` atomically, with its run.json; `stamp` appends the time to its name."""
        root.mkdir(parents=True, exist_ok=True)
        _sweep(root)
        new = root / f".new-{os.getpid()}-{os.urandom(4).hex()}"
        new.mkdir()
        cls(new).write_json("run.json", about)
        (new / "figures").mkdir()
        for candidate in _names(name, stamp=stamp):
            try:
                new.rename(root / candidate)  # fails if the target already contains a run
            except OSError:
                is_taken = os.path.lexists(root / candidate)
                if stamp and is_taken:
                    continue
                shutil.rmtree(new)
                if not is_taken:  # such as a name that is too long
                    raise
                raise RunError(f"{root / candidate} already exists: choose another --name, or resume it") from None
            sync_folder(root)
            return cls(root / candidate)
        raise AssertionError("unreachable: names never end")

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        if not (path / "run.json").is_file():
            raise RunError(f"{path} is not a run: run.json is missing")
        return cls(path)

    @property
    def experiment(self) -> str:
        """The name of the experiment; raises a RunError if run.json is damaged."""
        name = self.read_json("run.json").get("experiment")
        if not isinstance(name, str):
            raise RunError(f"{self.path / 'run.json'} is damaged: it must name the experiment; got {name!r}")
        return name

    @property
    def results(self) -> dict[str, float]:
        """The results of a finished run, {} for others; raises a RunError if result.json is damaged."""
        content = self.read_json("result.json")
        found = content.get("result", {} if not content else None)
        if not isinstance(found, dict) or not all(map(_is_number, found.values())):
            raise RunError(f"{self.path / 'result.json'} is damaged: its results must be numbers; got {found!r:.100}")
        return {str(name): value for name, value in found.items()}

    @property
    def status(self) -> Status:
        if (self.path / "result.json").exists():
            return "finished"
        if self._is_held():
            return "running"
        return "failed" if (self.path / "error.json").exists() else "interrupted"

    @property
    def owner(self) -> int | None:
        """The id of the process that last held the write lock; it may have ended."""
        try:
            return int((self.path / ".pid").read_text())
        except (OSError, ValueError):
            return None

    @property
    def process(self) -> int | None:
        """The id of the process that holds the write lock; None if there is none."""
        return self.owner if self._is_held() else None

    @contextmanager
    def lock(self, patience: float = 1.0) -> Iterator[None]:
        """Acquire the write lock; the operating system releases it when the process ends, also after a crash.

        Waits up to `patience` seconds, because reading the status holds a shared lock for a moment.
        """
        with open_file(self.path / ".lock", "ab") as file:
            deadline = time.monotonic() + patience
            while not _try_lock(file.fileno()):
                if time.monotonic() >= deadline:
                    raise RunError(f"{self.path} is in use by another run")
                time.sleep(0.05)
            self.write_text(".pid", str(os.getpid()))
            yield

    def _is_held(self) -> bool:
        """Whether a process holds the write lock; concurrent readers do not block each other."""
        path = self.path / ".lock"
        if not path.exists():
            return False
        with path.open("r") as file:
            return not _try_lock(file.fileno(), shared=True)

    def delete(self) -> None:
        """Remove the folder atomically; raises a RunError while the run is in progress."""
        if self._is_held():
            raise RunError(f"{self.path.name} is running: stop it first")
        gone = self.path.with_name(f".gone-{os.getpid()}-{os.urandom(4).hex()}")
        self.path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def log(self, text: str) -> None:
        """Append a line to log.txt, with the time of day."""
        with open_file(self.path / "log.txt", "ab") as file:
            file.write(f"{datetime.now():%H:%M:%S}  {text}\n".encode())

    def show_progress(self, progress: Progress) -> None:
        """Replace progress.json atomically, without waiting for the disk."""
        path = self.path / "progress.json"
        new = temporary_file(path)
        with new.open("x", encoding="utf-8") as file:
            file.write(json.dumps(asdict(progress)))
        new.replace(path)

    @property
    def progress(self) -> Progress | None:
        """The progress of the run; None before the first loop."""
        try:
            return Progress.read(self.read_json("progress.json"))
        except RunError:
            return None

    def write_text(self, name: str, text: str) -> None:
        new = temporary_file(self.path / name)
        with new.open("x", encoding="utf-8") as file:
            file.write(text)
        replace_durably(new, self.path / name)

    def write_json(self, name: str, value: Mapping[str, object]) -> None:
        """Write a JSON object; if results depend on the file, with the checksum of its content as its last member."""
        self.write_text(name, format_json(value, has_checksum=name in WITH_CHECKSUM))

    def read_json(self, name: str) -> dict[str, object]:
        """The content of a JSON file, without its checksum, which must match if there is one; {} without a file."""
        path = self.file(name)
        if not path.exists():
            return {}
        return parse_json(path.read_bytes(), path)

    def file(self, name: str) -> Path:
        """The path of a file of this folder, which need not exist; links that point elsewhere are rejected."""
        path = self.path / name
        target = Path(os.path.realpath(path))  # ends at a loop of links, unlike Path.resolve, which raises
        if not target.is_relative_to(os.path.realpath(self.path)):
            raise RunError(f"{path} points outside the run's folder: replace the link by the file")
        if path.is_symlink() and not target.is_file():
            raise RunError(f"{path} is a link to no file: replace it by the file")
        return path


def _is_number(value: object) -> bool:
    """Whether a value is a float, also one that is not finite, or an integer that a float can represent."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= sys.float_info.max
    return isinstance(value, float)


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
    """Remove temporary folders of processes that were killed while creating or deleting a run."""
    for leftover in (*root.glob(".new-*"), *root.glob(".gone-*")):
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


def _try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Acquire the lock if it is free; a `shared` lock blocks only writers (not available on Windows)."""
    try:
        if os.name == "nt":
            import msvcrt

            getattr(msvcrt, "locking")(descriptor, 2, 1)  # noqa: B009 - LK_NBLCK; unknown to the checker elsewhere
        else:
            import fcntl

            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
