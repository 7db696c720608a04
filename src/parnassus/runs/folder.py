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
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Literal

from parnassus.runs.durable import replace_durably
from parnassus.runs.errors import RunError
from parnassus.runs.progress import Progress

RUNS = Path(os.environ.get("PARNASSUS_RUNS", "runs"))
"""Default folder of runs: $PARNASSUS_RUNS, or the folder `runs` of the current directory."""
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
                if stamp:
                    continue
                shutil.rmtree(new)
                raise RunError(f"{root / candidate} already exists: choose another --name, or resume it") from None
            return cls(root / candidate)
        raise AssertionError("unreachable: names never end")

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        if not (path / "run.json").is_file():
            raise RunError(f"{path} is not a run: run.json is missing")
        return cls(path)

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
        with (self.path / ".lock").open("a") as file:
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
        with (self.path / "log.txt").open("a", encoding="utf-8") as file:
            file.write(f"{datetime.now():%H:%M:%S}  {text}\n")

    def show_progress(self, progress: Progress) -> None:
        """Replace progress.json atomically, without waiting for the disk."""
        new = self.path / ".progress.json.new"
        new.write_text(json.dumps(asdict(progress)), encoding="utf-8")
        new.replace(self.path / "progress.json")

    @property
    def progress(self) -> Progress | None:
        """The progress of the run; None before the first loop."""
        try:
            return Progress.read(self.read_json("progress.json"))
        except RunError:
            return None

    def write_text(self, name: str, text: str) -> None:
        new = self.path / f".{name}.new"
        new.write_text(text, encoding="utf-8")
        replace_durably(new, self.path / name)

    def write_json(self, name: str, value: object) -> None:
        self.write_text(name, json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def read_json(self, name: str) -> dict[str, object]:
        """The content of a JSON file; {} if it does not exist."""
        path = self.file(name)
        if not path.exists():
            return {}
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:  # invalid JSON or UTF-8, too many digits or nested brackets
            raise RunError(f"{path} is damaged: {error}") from None
        if not isinstance(value, dict):
            raise RunError(f"{path} is damaged: expected a JSON object, got {type(value).__name__}")
        return value

    def file(self, name: str) -> Path:
        """The path of a file of this folder, which need not exist; links that point outside the folder are rejected."""
        path = self.path / name
        if path.is_symlink() and path.resolve().parent != self.path.resolve():
            raise RunError(f"{path} points outside the run's folder")
        return path


def run_folders(root: Path) -> list[RunFolder]:
    """The runs in `root`, oldest first."""
    found = []
    for about in root.glob("*/run.json"):
        with suppress(FileNotFoundError):  # deleted by another process in the meantime
            if not about.parent.name.startswith("."):
                found.append((about.stat().st_mtime_ns, about.parent))
    return [RunFolder(path) for _, path in sorted(found)]


def find_run(root: Path, name: str) -> RunFolder:
    """The run called `name`: a path, a folder in `root`, an unambiguous prefix, or "last"."""
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
    problem = "matches several runs" if found else "is not a run"
    raise RunError(f"{name!r} {problem} in {root}; the latest are: {known}")


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
