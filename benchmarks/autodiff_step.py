"""A training step of our tape beside torch's: at most 3 times as long on the digits network 64-128-10.

Both sides take the same step (forward, backward, SGD) in float32 on one thread, in turns within one process, so that a
noisy machine slows both. Run it with: python benchmarks/autodiff_step.py
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by NumPy's products when it is imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy as torch_cross_entropy

from parnassus.autodiff import cross_entropy, relu
from parnassus.autodiff.tape import Variable, gradients
from parnassus.data import load_digits

TURNS, STEPS, LIMIT, RATE = 60, 100, 3.0, 0.01
BATCHES = (64, 256)
Array = np.ndarray


def ours(weights: list[Array], x: Array, labels: Array) -> Callable[[], float]:
    def step() -> float:
        w1, b1, w2, b2 = variables = [Variable(weight) for weight in weights]
        loss = cross_entropy(relu(x @ w1 + b1) @ w2 + b2, labels)
        for weight, slope in zip(weights, gradients(loss, variables), strict=True):
            np.subtract(weight, RATE * slope, out=weight)
        return float(loss.value)

    return step


def theirs(weights: list[Array], x: Array, labels: Array) -> Callable[[], float]:
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    with torch.no_grad():
        for parameter, weight in zip(network.parameters(), weights, strict=True):
            parameter.copy_(torch.from_numpy(weight.T))
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
    inputs, targets = torch.from_numpy(x), torch.from_numpy(labels)

    def step() -> float:
        loss = torch_cross_entropy(network(inputs), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def ratio(batch: int) -> tuple[float, float, float]:
    """The median over turns of our time a step by torch's, torch's microseconds, and how far the last losses differ."""
    digits = load_digits().train
    assert digits.y is not None
    x, labels = digits.x[:batch].flatten(1).numpy(), digits.y[:batch].numpy()
    source = np.random.default_rng(0)
    shapes = ((64, 128), (128,), (128, 10), (10,))
    weights = [source.normal(0, 0.1, shape).astype(np.float32) for shape in shapes]
    steps = {"torch": theirs(weights, x, labels), "ours": ours([weight.copy() for weight in weights], x, labels)}
    ratios, torch_times, losses = [], [], {}
    for turn in range(TURNS + 1):
        names = ("torch", "ours") if turn % 2 else ("ours", "torch")
        times = {}
        for name in names:
            began = time.perf_counter()
            for _ in range(STEPS):
                losses[name] = steps[name]()
            times[name] = time.perf_counter() - began
        if turn:  # the first warms up
            ratios.append(times["ours"] / times["torch"])
            torch_times.append(times["torch"])
    return (
        statistics.median(ratios),
        1e6 * statistics.median(torch_times) / STEPS,
        abs(losses["ours"] - losses["torch"]) / losses["torch"],
    )


def main() -> None:
    """Print the ratio of each batch size; exit code 1 when one is over the limit or the two sides part."""
    torch.set_num_threads(1)
    wrong = False
    for batch in BATCHES:
        found, microseconds, apart = ratio(batch)
        wrong |= found > LIMIT or apart > 1e-3
        print(
            f"batch {batch}: ours / torch = {found:.2f} (at most {LIMIT}); torch's step takes {microseconds:.0f} µs; "
            f"after {(TURNS + 1) * STEPS} steps the losses differ by {apart:.1e}"
        )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
