"""Benchmark of the overhead of Run and descend per training step against a minimal hand-written loop.

Both loops train the same model on the same data and are timed alternately in one process, so that background load
affects both.
Limits: at most 1.05 times the duration of the minimal loop for a small MLP, 1.02 times for a small CNN.
Run: python benchmarks/overhead.py
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD

from parnassus.data import Split, load_digits
from parnassus.runs import RunFolder
from parnassus.train import Options, Run, descend

TURNS, STEPS, BATCH = 60, 150, 64
LIMITS = {"MLP 64-128-10": 1.05, "small CNN": 1.02}


class Classifier(nn.Module):
    """A network of logits with the cross-entropy loss."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(self.net(x), y)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def cnn() -> nn.Module:
    convolutions = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, 10))


def minimal_loop(net: nn.Module, data: Split) -> Iterator[None]:
    """Train with a minimal loop: a permutation per epoch, forward, backward, step, and occasional reads of the loss."""
    assert data.y is not None
    optimizer = SGD(net.parameters(), lr=0.01)
    losses, step, per_epoch = [], 0, len(data) // BATCH
    while True:
        order = torch.randperm(len(data))
        for index in range(per_epoch):
            rows = order[index * BATCH : (index + 1) * BATCH]
            loss = cross_entropy(net(data.x[rows]), data.y[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % (TURNS * STEPS // 200) == 0:
                losses.append(loss.item())
            step += 1
            yield


def parnassus_loop(run: Run, net: nn.Module, data: Split) -> Iterator[None]:
    """Train with Run and descend: seeded steps, progress, metrics, checkpoints."""
    model, optimizer = run.prepare(Classifier(net), partial(SGD, lr=0.01))
    for step, loss in descend(run, model, optimizer, data.pairs(BATCH, (TURNS + 2) * STEPS)):
        run.log(step, loss=loss)
        yield


def compare(build: Callable[[], nn.Module], folder: Path) -> tuple[float, float]:
    """Return the median time ratio Parnassus / minimal loop and the microseconds per step of the minimal loop."""
    data = load_digits().train
    run = Run(RunFolder.create(folder, "overhead", {}), Options(threads=1))
    loops = {"minimal": minimal_loop(build(), data), "parnassus": parnassus_loop(run, build(), data)}
    for loop in loops.values():  # warm-up
        _seconds(loop)
    ratios, minimal_times = [], []
    for turn in range(TURNS):
        names = ("minimal", "parnassus") if turn % 2 else ("parnassus", "minimal")
        times = {name: _seconds(loops[name]) for name in names}
        ratios.append(times["parnassus"] / times["minimal"])
        minimal_times.append(times["minimal"])
    return statistics.median(ratios), 1e6 * statistics.median(minimal_times) / STEPS


def _seconds(loop: Iterator[None]) -> float:
    start_time = time.perf_counter()
    for _ in range(STEPS):
        next(loop)
    return time.perf_counter() - start_time


def main() -> None:
    """Print both ratios; exit with 1 if a ratio exceeds its limit."""
    torch.set_num_threads(1)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for (name, limit), build in zip(LIMITS.items(), (mlp, cnn), strict=True):
            ratio, microseconds = compare(build, Path(folder))
            failed |= ratio > limit
            print(
                f"{name}: Parnassus / minimal loop = {ratio:.3f} (limit: at most {limit}); "
                f"minimal loop: {microseconds:.0f} µs per step"
            )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
