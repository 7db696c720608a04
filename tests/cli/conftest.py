"""The command line, in a process of its own or in this one."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from parnassus.cli.main import dispatch

Command = Callable[..., subprocess.CompletedProcess[str]]
EXPERIMENT = "classifier_on_digits"


def clean_environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PARNASSUS_")}
    return kept | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"} | more


@pytest.fixture
def parnassus(tmp_path: Path) -> Command:
    """`parnassus ARGUMENTS` as a person would type it, in an empty directory."""

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


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two finished runs that differ in their seed."""
    root = tmp_path_factory.mktemp("runs")
    for seed in ("0", "1"):
        flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(root)]
        assert dispatch(["run", EXPERIMENT, *flags, "--seed", seed, "--name", f"seed-{seed}"]) == 0
    return root


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of agents: two learners with a pole, and one with a pendulum."""
    root = tmp_path_factory.mktemp("agents")
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(root)]
    assert dispatch(["run", "ppo", *flags, "--name", "two"]) == 0
    swinging = ["--env", "Pendulum-v1", "--learners", "1", "--horizon", "64", "--batch", "64"]
    assert dispatch(["run", "ppo", *flags, *swinging, "--name", "one"]) == 0
    return root
