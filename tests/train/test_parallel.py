"""Two processes (DDP or FSDP2) with the same global batch reproduce the training curve of one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch.testing import assert_close

from parnassus.runs.metrics import read_metrics

FLAGS = ["classifier_on_digits", "--profile", "smoke", "--device", "cpu", "--threads", "1", "--quiet"]
TORCHRUN = [
    sys.executable,
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--nproc-per-node",
    "2",
    "-m",
    "parnassus",
    "run",
]


def run_experiment(command: list[str], root: Path, name: str, *flags: str) -> Path:
    result = subprocess.run(
        [*command, *FLAGS, "--folder", str(root), "--name", name, *flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return root / name


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_experiment([sys.executable, "-m", "parnassus", "run"], tmp_path_factory.mktemp("runs"), "single")


@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_two_processes_match_a_single_process(mode: str, single: Path, tmp_path: Path) -> None:
    double = run_experiment(TORCHRUN, tmp_path, mode, "--parallel", mode)
    expected, actual = read_metrics(single / "metrics.csv"), read_metrics(double / "metrics.csv")
    assert expected.keys() == actual.keys()
    assert len(expected["loss"][1]) >= 10
    for name, (steps, values) in expected.items():
        assert actual[name][0] == steps
        assert_close(actual[name][1], values, rtol=1e-4, atol=1e-6)
    assert_close(
        load_file(double / "weights.safetensors"), load_file(single / "weights.safetensors"), rtol=1e-3, atol=1e-5
    )
