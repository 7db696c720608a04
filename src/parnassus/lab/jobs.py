"""Starting and stopping runs, and drawing samples, as independent processes of the command line."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from parnassus.runs import RunError, RunFolder, run_folders

COMMAND = Path(sys.executable).with_name("parnassus.exe" if os.name == "nt" else "parnassus")


@dataclass
class Job:
    """A process that was started by the lab; a run creates its folder, or exits with an error message."""

    arguments: tuple[str, ...]
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]
    root: Path
    started_at: float = field(default_factory=time.time)
    name: str | None = None  # name of its folder, once it exists

    @property
    def folder(self) -> RunFolder | None:
        """The folder of the run that the process writes or wrote last."""
        for folder in reversed(run_folders(self.root)):
            if folder.owner == self.process.pid and (folder.path / ".pid").stat().st_mtime >= self.started_at - 1:
                self.name = folder.path.name
                return folder
        return None

    @property
    def is_finished(self) -> bool:
        return self.process.poll() is not None

    def failure(self) -> str:
        """The last line of the error output of the process."""
        self.stderr.seek(0)
        lines = self.stderr.read()[-4000:].decode(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("parnassus: ") if lines else f"it exited with code {self.process.returncode}"


class Jobs:
    """Starts runs in a folder; they continue after the lab has ended."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._started: list[Job] = []

    def start(self, arguments: Sequence[str]) -> Job:
        """Start `parnassus ARGUMENTS` in its own session, independent of Ctrl-C and of the end of the lab."""
        program = [str(COMMAND)] if COMMAND.exists() else [sys.executable, "-m", "parnassus"]
        stderr = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - the process writes to it after this call
        is_windows = os.name == "nt"  # there: a new process group without our console
        process = subprocess.Popen(  # noqa: S603 - the arguments come from validated values
            [*program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env={**os.environ, "PARNASSUS_RUNS": str(self.root)},
            start_new_session=not is_windows,
            creationflags=0x00000208 if is_windows else 0,
        )
        threading.Thread(target=process.wait, daemon=True).start()  # collects its exit status
        job = Job(tuple(arguments), process, stderr, self.root)
        self._started.append(job)
        return job

    def find(self, name: str) -> Job | None:
        """The last job in the folder with this name; None if it was not started by this lab."""
        return next((job for job in reversed(self._started) if job.name == name), None)

    def resume(self, folder: RunFolder) -> Job:
        if folder.status not in ("interrupted", "failed"):
            raise RunError(f"{folder.path.name} is {folder.status}: it cannot be resumed")
        return self.start(["resume", str(folder.path.absolute())])  # a name could be read as a flag or as another run


def stop(folder: RunFolder) -> None:
    """Send the signal to save and stop to the process of a run, as Ctrl-C does."""
    number = folder.process
    if number is None:
        raise RunError(f"{folder.path.name} is {folder.status}: it cannot be stopped")
    try:
        os.kill(number, signal.SIGTERM)
    except ProcessLookupError:
        return  # the process has ended in the meantime
    except PermissionError:
        raise RunError(f"{folder.path.name} belongs to another user: stop it where it was started") from None
