"""Two processes at the same global batch follow the single process's curve, copied (DDP) or sharded (FSDP2)."""

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


def run(words: list[str], root: Path, name: str, *more: str) -> Path:
    done = subprocess.run(
        [*words, *FLAGS, "--folder", str(root), "--name", name, *more],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return root / name


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run([sys.executable, "-m", "parnassus", "run"], tmp_path_factory.mktemp("runs"), "single")


@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_two_processes_follow_the_curve_of_one(mode: str, single: Path, tmp_path: Path) -> None:
    double = run(TORCHRUN, tmp_path, mode, "--parallel", mode)
    one, two = read_metrics(single / "metrics.csv"), read_metrics(double / "metrics.csv")
    assert one.keys() == two.keys()
    assert len(one["loss"][1]) >= 10
    for name, (steps, values) in one.items():
        assert two[name][0] == steps
        assert_close(two[name][1], values, rtol=1e-4, atol=1e-6)
    assert_close(
        load_file(double / "weights.safetensors"), load_file(single / "weights.safetensors"), rtol=1e-3, atol=1e-5
    )
