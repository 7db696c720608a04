"""Starting and stopping runs: the same processes that the command line starts, on their own from the first moment."""

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
    """A process that was started here: it has no folder yet, then one, or it said why not and went."""

    words: tuple[str, ...]
    process: subprocess.Popen[bytes]
    said: IO[bytes]
    root: Path
    began: float = field(default_factory=time.time)
    name: str | None = None  # of its folder, once it was found

    @property
    def folder(self) -> RunFolder | None:
        """The folder that the process holds, or held last."""
        for found in reversed(run_folders(self.root)):
            if found.owner == self.process.pid and (found.path / ".pid").stat().st_mtime >= self.began - 1:
                self.name = found.path.name
                return found
        return None

    @property
    def over(self) -> bool:
        return self.process.poll() is not None

    def failure(self) -> str:
        """What the process said before it gave up, in its last sentence."""
        self.said.seek(0)
        lines = self.said.read()[-4000:].decode(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("parnassus: ") if lines else f"it ended with code {self.process.returncode}"


class Jobs:
    """Starts runs in a folder; they outlive whoever starts them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._started: list[Job] = []

    def start(self, words: Sequence[str]) -> Job:
        """Start `parnassus WORDS` in a session of its own, so that neither Ctrl-C here nor our end reaches it."""
        program = [str(COMMAND)] if COMMAND.exists() else [sys.executable, "-m", "parnassus"]
        said = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - it is written to, at its end, while we read and after
        windows = os.name == "nt"  # there: a process group of its own, without our console
        process = subprocess.Popen(  # noqa: S603 - the words were made by us from checked values
            [*program, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env={**os.environ, "PARNASSUS_RUNS": str(self.root)},
            start_new_session=not windows,
            creationflags=0x00000208 if windows else 0,
        )
        threading.Thread(target=process.wait, daemon=True).start()  # buries it when it ends
        job = Job(tuple(words), process, said, self.root)
        self._started.append(job)
        return job

    def of(self, name: str) -> Job | None:
        """The job that last ran in the folder of this name, if it was started here."""
        return next((job for job in reversed(self._started) if job.name == name), None)

    def resume(self, folder: RunFolder) -> Job:
        if folder.status not in ("interrupted", "failed"):
            raise RunError(f"{folder.path.name} is {folder.status}: there is nothing to resume")
        return self.start(["resume", str(folder.path.absolute())])  # a name could be a flag, or mean another run


def stop(folder: RunFolder) -> None:
    """Ask the process that holds the folder to save and stop, as Ctrl-C would."""
    number = folder.process
    if number is None:
        raise RunError(f"{folder.path.name} is {folder.status}: there is nothing to stop")
    try:
        os.kill(number, signal.SIGTERM)
    except ProcessLookupError:
        return  # it ended by itself in between
    except PermissionError:
        raise RunError(f"{folder.path.name} is run by somebody else: stop it where it was started") from None
