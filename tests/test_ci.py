"""`.ci/run` prints the time of each part, also if one fails."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "run"


@pytest.mark.skipif(shutil.which("bash") is None, reason="the script needs bash")
@pytest.mark.parametrize(
    ("failing", "parts"),
    [
        ("none", ["install_chromium", "make .venv/ready", "make test", "make parity"]),
        ("test", ["install_chromium", "make .venv/ready", "make test (failed)"]),
    ],
)
def test_times_of_all_parts_are_printed(tmp_path: Path, failing: str, parts: list[str]) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(SCRIPT, tmp_path / ".ci" / "run")
    programs = {"make": f'[ "$1" != {failing} ] || exit 3', "chromium": "true"}
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    completed = subprocess.run(
        [str(tmp_path / ".ci" / "run")], capture_output=True, text=True, env=environment, check=False
    )
    assert completed.returncode == (0 if failing == "none" else 3)
    lines = [line.split(maxsplit=2) for line in completed.stdout.splitlines()]
    assert [(unit, name) for _, unit, name in lines] == [("s", part) for part in parts]
    assert all(seconds.isdecimal() for seconds, _, _ in lines)
