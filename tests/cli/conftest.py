"""The command line in a subprocess."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXPERIMENT = "classifier_on_digits"
Command = Callable[..., subprocess.CompletedProcess[str]]


def clean_environment(**variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PARNASSUS_")}
    return inherited | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"} | variables


@pytest.fixture
def parnassus(tmp_path: Path) -> Command:
    """Run `parnassus ARGUMENTS` in an empty directory."""

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "parnassus", *arguments],
            capture_output=True,
            encoding="utf-8",
            cwd=tmp_path,
            env=clean_environment(**environment),
            timeout=120,
            check=False,
        )

    return call
