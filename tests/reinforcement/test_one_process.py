"""Agents under torchrun raise an error."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from parnassus.atlas.index import Atlas
from parnassus.cli.run import with_profile
from parnassus.reinforcement.agents.multi_learner import MultiLearnerAgent
from parnassus.runs.folder import RunFolder
from parnassus.train import Options, Run

ENTRIES = {
    name: entry
    for name, entry in Atlas().experiments.items()
    if entry.room == "reinforcement" and issubclass(importlib.import_module(entry.module).Experiment, MultiLearnerAgent)
}


def test_all_agents_are_found() -> None:
    assert {"a2c", "dqn", "ppo", "reinforce", "trpo"} <= set(ENTRIES)


@pytest.mark.parametrize("name", ENTRIES)
def test_several_processes_raise_value_error(name: str, tmp_path: Path) -> None:
    run = Run(RunFolder.create(tmp_path, name, {}), Options(device="cpu", quiet=True))
    run.world_size = 4
    with pytest.raises(
        ValueError, match=r"one process; got 4 processes: .* torchrun .*--num-workers, .*--n-envs .*cuda"
    ):
        with_profile(ENTRIES[name], "smoke")(run)
    run.close()


@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_torchrun_fails_with_a_message_and_creates_no_run(mode: str, tmp_path: Path) -> None:
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "parnassus", "run", "ppo"]
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--parallel", mode, "--folder", str(tmp_path)]
    result = subprocess.run(
        [sys.executable, *command, *flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode != 0
    assert "parnassus: agents must be trained in one process; got 2 processes: instead of torchrun" in result.stderr
    assert "Traceback" not in result.stderr.split("parnassus: agents")[0]
    assert list(tmp_path.iterdir()) == []
