"""Two processes (DDP or FSDP2) with the same global batch reproduce the training curve of one, also when resumed."""

import os
import subprocess
import sys
from pathlib import Path

import distributed_training
import pytest
from safetensors.torch import load_file
from torch.testing import assert_close

from parnassus.runs import RunFolder
from parnassus.runs.metrics import read_metrics

FLAGS = ["classifier_on_digits", "--profile", "smoke", "--device", "cpu", "--threads", "1", "--quiet"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


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
    double = run_experiment([*TORCHRUN, "-m", "parnassus", "run"], tmp_path, mode, "--parallel", mode)
    expected, actual = read_metrics(single / "metrics.csv"), read_metrics(double / "metrics.csv")
    assert expected.keys() == actual.keys()
    assert len(expected["loss"][1]) >= 10
    for name, (steps, values) in expected.items():
        assert actual[name][0] == steps
        assert_close(actual[name][1], values, rtol=1e-4, atol=1e-6)
    assert_close(
        load_file(double / "weights.safetensors"), load_file(single / "weights.safetensors"), rtol=1e-3, atol=1e-5
    )


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of `distributed_training.py`, and an uninterrupted run of one process."""
    root = tmp_path_factory.mktemp("trainings")
    for mode in ("ddp", "fsdp"):
        for name in ("uninterrupted", "resumed", "2 to 1", "1 to 2"):
            RunFolder.create(root, f"{mode} {name}", {}, stamp=False)
        distributed_training.fail(root / f"{mode} 1 to 2")
    distributed_training.train(RunFolder.create(root, "single", {}, stamp=False).path)
    command = [*TORCHRUN, distributed_training.__file__, str(root)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert result.returncode == 0, result.stderr[-3000:]
    return root


@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_resumed_training_of_two_processes_is_bit_identical(mode: str, trainings: Path) -> None:
    for name in ("metrics.csv", "weights.safetensors"):
        uninterrupted, resumed = (trainings / f"{mode} {each}" / name for each in ("uninterrupted", "resumed"))
        assert resumed.read_bytes() == uninterrupted.read_bytes(), name


@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
@pytest.mark.parametrize("change", ["2 to 1", "1 to 2"])
def test_training_resumes_with_another_number_of_processes(mode: str, change: str, trainings: Path) -> None:
    if change == "2 to 1":
        distributed_training.train(trainings / f"{mode} {change}")
    expected, actual = (read_metrics(trainings / name / "metrics.csv") for name in ("single", f"{mode} {change}"))
    assert len(expected["loss"][1]) == distributed_training.STEPS
    assert actual["learning_rate"] == expected["learning_rate"]
    assert_close(actual["loss"][1], expected["loss"][1], rtol=1e-4, atol=1e-6)
    weights = (load_file(trainings / name / "weights.safetensors") for name in ("single", f"{mode} {change}"))
    assert_close(*weights, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("how", "processes", "reason"),
    [
        ("killed", 3, "process 2 of 3 was lost; continue from the last checkpoint: parnassus resume "),
        pytest.param("failed", 2, "process 1 of 2 failed: the last process has a problem; ", marks=pytest.mark.slow),
    ],
)
def test_lost_process_ends_every_other_process_with_a_sentence(
    how: str, processes: int, reason: str, tmp_path: Path
) -> None:
    RunFolder.create(tmp_path, "run", {}, stamp=False)
    command = [*TORCHRUN[:-1], str(processes), distributed_training.__file__, str(tmp_path), how]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode != 0
    for rank in range(processes - 1):
        assert (tmp_path / f"{rank}.txt").exists(), result.stderr[-3000:]
        assert (tmp_path / f"{rank}.txt").read_text().startswith(reason)
