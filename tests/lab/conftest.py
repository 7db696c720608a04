"""Runs to look at, and labs in processes of their own that are always stopped."""

import http.client
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cli.conftest import EXPERIMENT, clean_environment, parnassus

from parnassus.cli.main import dispatch

__all__ = ["parnassus"]  # the command line, also here
PATIENCE = 60.0
"""Seconds that a lab may take to answer on a busy machine."""
StartLab = Callable[..., "Lab"]


@dataclass
class Lab:
    """`parnassus lab` in a process of its own, listening on this machine only."""

    process: subprocess.Popen[bytes]
    root: Path
    home: Path  # the directory it runs in, with what it says in the files `said` and `errors`
    port: int = 0
    token: str | None = None
    _stopped: bool = field(default=False, repr=False)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def said(self) -> str:
        return (self.home / "said").read_text(encoding="utf-8")

    @property
    def errors(self) -> str:
        return (self.home / "errors").read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """Ask it to end, and end it when it does not."""
        if self._stopped:
            return
        self._stopped = True
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def wait_until_it_answers(self) -> None:
        """Read the address that it prints, then get an answer from there."""
        deadline = time.monotonic() + PATIENCE
        while "\n" not in self.said:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the lab did not start: {self.errors}")
            time.sleep(0.02)
        printed = re.match(r"lab: http://\S+?:(\d+)/(?:\?token=(\S+))?\n", self.said)
        assert printed is not None, self.said
        self.port, self.token = int(printed[1]), printed[2]
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", "/favicon.ico")  # the socket listens already, so this waits for the lab
        assert connection.getresponse().status == (200 if self.token is None else 401)
        connection.close()


def smoke_run(root: Path, experiment: str, *, name: str, seed: int = 0) -> Path:
    """A finished run of the smoke profile in `root`."""
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(root)]
    assert dispatch(["run", experiment, *flags, "--seed", str(seed), "--name", name]) == 0
    return root / name


@pytest.fixture(scope="session")
def lab_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three finished runs: a classifier with two seeds, and principal components."""
    root = tmp_path_factory.mktemp("lab") / "runs"
    for seed in (0, 1):
        smoke_run(root, EXPERIMENT, name=f"seed-{seed}", seed=seed)
    smoke_run(root, "pca_on_digits", name="pca")
    return root


@pytest.fixture(scope="session")
def start_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartLab]:
    """Start a lab over a folder of runs, with further flags; whatever was started is stopped at the end."""
    labs: list[Lab] = []

    def start(root: Path, *flags: str) -> Lab:
        home = tmp_path_factory.mktemp("home")
        words = ["lab", "--no-browser", "--port", "0", "--folder", str(root), *flags]
        with (home / "said").open("wb") as said, (home / "errors").open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "parnassus", *words],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=errors,
                cwd=home,
                env=clean_environment(),
            )
        labs.append(Lab(process, root, home))
        labs[-1].wait_until_it_answers()
        return labs[-1]

    yield start
    for lab in labs:
        lab.stop()


def alive(pid: int) -> bool:
    """Whether a process is still at work; one that only waits to be buried is not."""
    try:
        os.kill(pid, 0)
        return not Path("/proc/self").exists() or ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def wait_for(ready: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Look until it is so, fifty times a second; fail by its name when that takes too long."""
    deadline = time.monotonic() + patience
    while not ready():
        assert time.monotonic() < deadline, f"waited {patience:.0f} s for {what}"
        time.sleep(0.02)
