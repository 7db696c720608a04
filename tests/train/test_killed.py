"""Runs killed at random moments resume to the bits of an uninterrupted one; PARNASSUS_KILLS says how many."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from parnassus.runs.folder import RunFolder, run_folders

KILLS = int(os.environ.get("PARNASSUS_KILLS", "3"))
EXPERIMENTS = (
    "classifier_on_digits",
    "diffusion_on_moons",
    "linear_autoencoder",
    "denoising_autoencoder_on_digits",
    "diffusion_on_digits",
)
SAME = ("metrics.csv", "weights.safetensors")


def command(*words: str, root: Path) -> list[str]:
    return [sys.executable, "-m", "parnassus", *words, "--folder", str(root)]


def launch(name: str, root: Path) -> list[str]:
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


def call(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[RunFolder, float]]:
    """Finished, undisturbed runs and how long each took; made when first asked for."""
    return {}


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_killed_run_resumes_to_the_same_bits(
    kill: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, whole: dict[str, tuple[RunFolder, float]]
) -> None:
    name = EXPERIMENTS[kill % len(EXPERIMENTS)]
    if name not in whole:
        root, began = tmp_path_factory.mktemp(name), time.monotonic()
        call(launch(name, root))
        whole[name] = RunFolder.open(root / "run"), time.monotonic() - began
    reference, seconds = whole[name]

    moments = random.Random(kill)
    words = launch(name, tmp_path)
    for _ in range(moments.choice((1, 1, 2))):  # some runs are killed again while they resume
        kill_after(words, seconds * moments.uniform(0.3, 1.0))
        words = what_next(name, tmp_path)
        if not words:
            break
    if words:
        call(words)

    resumed = RunFolder.open(tmp_path / "run")
    for file in SAME:
        if (reference.path / file).exists():
            assert (resumed.path / file).read_bytes() == (reference.path / file).read_bytes(), file
    assert resumed.read_json("result.json")["result"] == reference.read_json("result.json")["result"]
    assert (resumed.path / "report.html").exists()


def kill_after(words: list[str], seconds: float) -> None:
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()


def what_next(name: str, root: Path) -> list[str]:
    """The folder is complete or absent: start again, resume, or nothing when it is finished with its report."""
    folders = run_folders(root)
    assert len(folders) <= 1
    if not folders:
        return launch(name, root)
    (folder,) = folders
    for path in folder.path.rglob("*.json"):
        if not path.name.startswith("."):
            json.loads(path.read_text())
    assert folder.status != "running"
    if folder.status == "finished" and (folder.path / "report.html").exists():
        return []
    return command("resume", "run", root=root)


def test_ctrl_c_saves_and_says_how_to_resume(tmp_path: Path) -> None:
    words = launch("classifier_on_digits", tmp_path)
    words[words.index("smoke")] = "laptop"
    with subprocess.Popen(
        [*words, "--epochs", "9000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "run" / "checkpoint.safetensors").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "parnassus resume run" in said
    assert "Traceback" not in said
    assert RunFolder.open(tmp_path / "run").status == "interrupted"
