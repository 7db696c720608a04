"""A training that is interrupted and resumed; run by torchrun, it leaves folders for `test_parallel.py`."""

import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data import Split
from parnassus.runs import RunError, RunFolder
from parnassus.train import Options, Run, descend, parallel
from parnassus.train.execute import Recipe, execute

STEPS, FAIL_AT = 40, 20
"""The checkpoint before the failure is that after 16 steps."""


class Regression(nn.Module):
    """Two layers with a square loss."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))

    def loss(self, x: Tensor) -> Tensor:
        y: Tensor = self.network(x)
        return (y[:, 0] - x.sum(1)).square().mean()


def make_optimizer(parameters: Iterable[nn.Parameter]) -> AdamW:
    """AdamW with two groups, in another order than the parameters of the model."""
    first, *others = parameters
    groups: list[dict[str, object]] = [{"params": others, "weight_decay": 0.1}, {"params": [first]}]
    return AdamW(groups, lr=0.05)


def train(path: Path, mode: str = "ddp", *, fail: bool = False) -> None:
    """Train in the folder, from its checkpoint if there is one; with `fail`, stop with a ZeroDivisionError."""
    options = Options(quiet=True, device="cpu", threads=1, save_steps=16, parallel="fsdp" if mode == "fsdp" else "ddp")
    run = Run(RunFolder(path), options)
    data = Split(torch.randn(50, 3, generator=torch.Generator().manual_seed(0)))
    try:
        model, optimizer, schedule = run.prepare(
            Regression(), make_optimizer, partial(OneCycleLR, max_lr=0.05, total_steps=STEPS + 1)
        )
        for step, loss in descend(run, model, optimizer, data.batches(8, STEPS)):
            schedule.step()
            run.log(step, loss=loss, learning_rate=schedule.get_last_lr()[0])
            if fail and step == FAIL_AT:
                raise ZeroDivisionError
        run.finish({})
    finally:
        run.close()


def fail(path: Path, mode: str = "ddp") -> None:
    try:
        train(path, mode, fail=True)
    except ZeroDivisionError:
        return
    raise AssertionError("the training did not fail")


@dataclass(frozen=True)
class Lost:
    """An experiment whose last process is killed or fails at step 5."""

    killed: bool

    def __call__(self, run: Run) -> dict[str, float]:
        model, optimizer = run.prepare(Regression(), make_optimizer)
        for step, _ in descend(run, model, optimizer, Split(torch.ones(64, 3)).batches(12, STEPS)):
            if step == 5 and run.rank == run.world_size - 1:
                if self.killed:
                    os.kill(os.getpid(), signal.SIGKILL)
                raise ValueError("the last process has a problem")
        return {}


def lose_a_process(root: Path, *, killed: bool) -> None:
    """Write the message of the RunError of each remaining process to RANK.txt."""
    try:
        execute(Recipe("toy", "A toy", Lost(killed), {}), Options(quiet=True, device="cpu"), RunFolder(root / "run"))
    except RunError as error:
        (root / f"{os.environ['RANK']}.txt").write_text(str(error))
        sys.exit(2)


def main(root: Path) -> None:
    """In both modes: an uninterrupted run, a resumed one, an interrupted one, and the rest of one of one process."""
    for mode in ("ddp", "fsdp"):
        train(root / f"{mode} uninterrupted", mode)
        fail(root / f"{mode} resumed", mode)
        train(root / f"{mode} resumed", mode)
        fail(root / f"{mode} 2 to 1", mode)
        train(root / f"{mode} 1 to 2", mode)
    parallel.leave()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        lose_a_process(Path(sys.argv[1]), killed=sys.argv[2] == "killed")
    else:
        main(Path(sys.argv[1]))
