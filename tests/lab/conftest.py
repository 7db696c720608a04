"""Finished runs, and labs in separate processes that are stopped at the end of the session."""

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

__all__ = ["parnassus"]  # the fixture of the command line
PATIENCE = 60.0
"""Seconds after which a waiting test fails."""
StartLab = Callable[..., "Lab"]


@dataclass
class Lab:
    """`parnassus lab` in a separate process."""

    process: subprocess.Popen[bytes]
    root: Path
    home: Path  # its working directory, with its output in the files `stdout` and `errors`
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
    def stdout(self) -> str:
        return (self.home / "stdout").read_text(encoding="utf-8")

    @property
    def errors(self) -> str:
        return (self.home / "errors").read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """Terminate the process, or kill it after ten seconds."""
        if self._stopped:
            return
        self._stopped = True
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def wait_until_ready(self) -> None:
        """Read the printed address, then wait for a response."""
        deadline = time.monotonic() + PATIENCE
        while "\n" not in self.stdout:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the lab did not start: {self.errors}")
            time.sleep(0.02)
        printed = re.match(r"lab: http://\S+?:(\d+)/(?:\?token=(\S+))?\n", self.stdout)
        assert printed is not None, self.stdout
        self.port, self.token = int(printed[1]), printed[2]
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", "/favicon.ico")  # the socket listens already, so this waits
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
    """Start a lab over a folder of runs, with further flags; all labs are stopped at the end."""
    labs: list[Lab] = []

    def start(root: Path, *flags: str) -> Lab:
        home = tmp_path_factory.mktemp("home")
        words = ["lab", "--no-browser", "--port", "0", "--folder", str(root), *flags]
        with (home / "stdout").open("wb") as stdout, (home / "errors").open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "parnassus", *words],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=errors,
                cwd=home,
                env=clean_environment(),
            )
        labs.append(Lab(process, root, home))
        labs[-1].wait_until_ready()
        return labs[-1]

    yield start
    for lab in labs:
        lab.stop()


def is_alive(pid: int) -> bool:
    """Whether a process is running and not a zombie."""
    try:
        os.kill(pid, 0)
        return not Path("/proc/self").exists() or ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def wait_for(ready: Callable[[], object], description: str, patience: float = PATIENCE) -> None:
    """Poll fifty times per second; fail with the description `what` after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not ready():
        assert time.monotonic() < deadline, f"waited {patience:.0f} s for {description}"
        time.sleep(0.02)
