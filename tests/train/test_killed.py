"""Killed runs resume bit-identically; `make kills` does this with all experiments."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kills import FLAGS, kill_and_resume, main, run_reference

from parnassus.atlas.index import load_atlas
from parnassus.runs.folder import RunFolder


@pytest.mark.parametrize(("seed", "name"), [(0, "diffusion_on_moons"), (1, "gan_on_ring")])
def test_killed_run_resumes_bit_identically(seed: int, name: str, tmp_path: Path) -> None:
    reference = run_reference(name, tmp_path / "reference")
    assert reference.checkpoints > 10
    assert len(kill_and_resume(name, tmp_path / "killed", reference, kills=2, seed=seed)) == 2


def test_outcomes_of_kills_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "kills.json"
    state.write_text(
        json.dumps({name: {"identical": name != "gpt", "killed": ["x"]} for name in load_atlas().experiments})
    )
    assert main(["--state", str(state)]) == 1  # none is left
    assert "1 not identical: gpt" in capsys.readouterr().out


def test_sigint_saves_and_prints_the_resume_command(tmp_path: Path) -> None:
    flags = [flag if flag != "smoke" else "laptop" for flag in FLAGS]
    command = [sys.executable, "-m", "parnassus", "run", "classifier_on_digits", *flags, "--folder", str(tmp_path)]
    with subprocess.Popen(
        [*command, "--epochs", "9000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
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
