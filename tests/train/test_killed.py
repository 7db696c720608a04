"""Killed runs resume bit-identically; the environment variable PARNASSUS_KILLS sets their number."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from parnassus.runs.folder import RunFolder
from parnassus.runs.lookup import run_folders

KILLS = int(os.environ.get("PARNASSUS_KILLS", "3"))
EXPERIMENTS = (
    "classifier_on_digits",
    "diffusion_on_moons",
    "linear_autoencoder",
    "denoising_autoencoder_on_digits",
    "diffusion_on_digits",
)
COMPARED_FILES = ("metrics.csv", "weights.safetensors")


def command(*command_line: str, root: Path) -> list[str]:
    return [sys.executable, "-m", "parnassus", *command_line, "--folder", str(root)]


def run_command(name: str, root: Path) -> list[str]:
    flags = (
        "--profile",
        "smoke",
        "--name",
        "run",
        "--save-seconds",
        "0.05",
        "--device",
        "cpu",
        "--threads",
        "1",
        "--quiet",
    )
    return command("run", name, *flags, root=root)


def check_call(command_line: list[str]) -> None:
    result = subprocess.run(command_line, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def reference_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[RunFolder, float]]:
    """Cache of uninterrupted runs and their durations in seconds."""
    return {}


@pytest.mark.parametrize("kill", range(KILLS))
def test_killed_run_resumes_bit_identically(
    kill: int,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    reference_runs: dict[str, tuple[RunFolder, float]],
) -> None:
    name = EXPERIMENTS[kill % len(EXPERIMENTS)]
    if name not in reference_runs:
        root, start = tmp_path_factory.mktemp(name), time.monotonic()
        check_call(run_command(name, root))
        reference_runs[name] = RunFolder.open(root / "run"), time.monotonic() - start
    reference, seconds = reference_runs[name]

    rng = random.Random(kill)
    command_line = run_command(name, tmp_path)
    for _ in range(rng.choice((1, 1, 2))):  # some runs are killed again while resuming
        kill_after(command_line, seconds * rng.uniform(0.3, 1.0))
        command_line = next_command(name, tmp_path)
        if not command_line:
            break
    if command_line:
        check_call(command_line)

    resumed = RunFolder.open(tmp_path / "run")
    for file in COMPARED_FILES:
        if (reference.path / file).exists():
            assert (resumed.path / file).read_bytes() == (reference.path / file).read_bytes(), file
    assert resumed.read_json("result.json")["result"] == reference.read_json("result.json")["result"]
    assert (resumed.path / "report.html").exists()


def kill_after(command_line: list[str], seconds: float) -> None:
    process = subprocess.Popen(command_line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()


def next_command(name: str, root: Path) -> list[str]:
    """Check the run folder and return the command to start or resume the run, empty if it is finished."""
    folders = run_folders(root)
    assert len(folders) <= 1
    if not folders:
        return run_command(name, root)
    (folder,) = folders
    for path in folder.path.rglob("*.json"):
        if not path.name.startswith("."):
            json.loads(path.read_text())
    assert folder.status != "running"
    if folder.status == "finished" and (folder.path / "report.html").exists():
        return []
    return command("resume", "run", root=root)


def test_sigint_saves_and_prints_the_resume_command(tmp_path: Path) -> None:
    command_line = run_command("classifier_on_digits", tmp_path)
    command_line[command_line.index("smoke")] = "laptop"
    with subprocess.Popen(
        [*command_line, "--epochs", "9000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "run" / "checkpoint.safetensors").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "parnassus resume run" in stderr
    assert "Traceback" not in stderr
    assert RunFolder.open(tmp_path / "run").status == "interrupted"
