"""What a step of ours costs beside a bare hand-written loop: at most 1.05 for a small MLP, 1.02 for a small CNN.

Both loops train the same model on the same data in one process and take turns, so that a noisy machine slows both.
Run it with: python benchmarks/overhead.py
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
    """Logits and their cross-entropy."""

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


def bare(net: nn.Module, data: Split) -> Iterator[None]:
    """The loop one would write by hand: a permutation an epoch, forward, backward, step, a loss read now and then."""
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


def ours(run: Run, net: nn.Module, data: Split) -> Iterator[None]:
    """The same through Run and descend: seeded steps, progress, metrics, checkpoints."""
    model, optimizer = run.prepare(Classifier(net), partial(SGD, lr=0.01))
    for step, loss in descend(run, model, optimizer, data.pairs(BATCH, (TURNS + 2) * STEPS)):
        run.log(step, loss=loss)
        yield


def ratio(build: Callable[[], nn.Module], folder: Path) -> tuple[float, float]:
    """The median over turns of our time a step by the bare loop's, and the bare loop's microseconds a step."""
    data = load_digits().train
    run = Run(RunFolder.create(folder, "overhead", {}), Options(threads=1))
    loops = {"bare": bare(build(), data), "ours": ours(run, build(), data)}
    for loop in loops.values():  # warm up
        _seconds(loop)
    ratios, bare_times = [], []
    for turn in range(TURNS):
        names = ("bare", "ours") if turn % 2 else ("ours", "bare")
        times = {name: _seconds(loops[name]) for name in names}
        ratios.append(times["ours"] / times["bare"])
        bare_times.append(times["bare"])
    return statistics.median(ratios), 1e6 * statistics.median(bare_times) / STEPS


def _seconds(loop: Iterator[None]) -> float:
    began = time.perf_counter()
    for _ in range(STEPS):
        next(loop)
    return time.perf_counter() - began


def main() -> None:
    """Print both ratios; exit code 1 when one is over its limit."""
    torch.set_num_threads(1)
    over = False
    with tempfile.TemporaryDirectory() as folder:
        for (name, limit), build in zip(LIMITS.items(), (mlp, cnn), strict=True):
            found, microseconds = ratio(build, Path(folder))
            over |= found > limit
            print(f"{name}: ours / bare = {found:.3f} (at most {limit}); the bare step takes {microseconds:.0f} µs")
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
