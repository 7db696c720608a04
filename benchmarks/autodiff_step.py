"""Benchmark of a training step of `parnassus.autodiff.tape` against PyTorch autograd, on a 64-128-10 digits network.

Both implementations perform the same step (forward, backward, SGD) in float32 on one thread. They are timed alternately
in one process, so that background load affects both. The losses after the last step are compared as well.
Limits: at most 3 times the duration of the PyTorch step; relative difference of the final losses at most 10⁻³.
Run: python benchmarks/autodiff_step.py
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by the BLAS library of NumPy on import
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

TURNS, STEPS, LIMIT, LEARNING_RATE = 60, 100, 3.0, 0.01
BATCHES = (64, 256)
Array = np.ndarray


def make_tape_step(weights: list[Array], x: Array, labels: Array) -> Callable[[], float]:
    def step() -> float:
        w1, b1, w2, b2 = variables = [Variable(weight) for weight in weights]
        loss = cross_entropy(relu(x @ w1 + b1) @ w2 + b2, labels)
        for weight, gradient in zip(weights, gradients(loss, variables), strict=True):
            np.subtract(weight, LEARNING_RATE * gradient, out=weight)
        return float(loss.value)

    return step


def make_torch_step(weights: list[Array], x: Array, labels: Array) -> Callable[[], float]:
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    with torch.no_grad():
        for parameter, weight in zip(network.parameters(), weights, strict=True):
            parameter.copy_(torch.from_numpy(weight.T))
    optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE)
    inputs, targets = torch.from_numpy(x), torch.from_numpy(labels)

    def step() -> float:
        loss = torch_cross_entropy(network(inputs), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def compare(batch: int) -> tuple[float, float, float]:
    """Return the median ratio Parnassus / PyTorch, microseconds per PyTorch step and the relative loss difference."""
    digits = load_digits().train
    assert digits.y is not None
    x, labels = digits.x[:batch].flatten(1).numpy(), digits.y[:batch].numpy()
    rng = np.random.default_rng(0)
    shapes = ((64, 128), (128,), (128, 10), (10,))
    weights = [rng.normal(0, 0.1, shape).astype(np.float32) for shape in shapes]
    steps = {
        "torch": make_torch_step(weights, x, labels),
        "parnassus": make_tape_step([weight.copy() for weight in weights], x, labels),
    }
    ratios, torch_times, losses = [], [], {}
    for turn in range(TURNS + 1):
        names = ("torch", "parnassus") if turn % 2 else ("parnassus", "torch")
        times = {}
        for name in names:
            start_time = time.perf_counter()
            for _ in range(STEPS):
                losses[name] = steps[name]()
            times[name] = time.perf_counter() - start_time
        if turn:  # the first turn is a warm-up
            ratios.append(times["parnassus"] / times["torch"])
            torch_times.append(times["torch"])
    return (
        statistics.median(ratios),
        1e6 * statistics.median(torch_times) / STEPS,
        abs(losses["parnassus"] - losses["torch"]) / losses["torch"],
    )


def main() -> None:
    """Print the ratio for each batch size; exit with 1 if a ratio exceeds the limit or the losses differ."""
    torch.set_num_threads(1)
    failed = False
    for batch in BATCHES:
        ratio, microseconds, loss_difference = compare(batch)
        failed |= ratio > LIMIT or loss_difference > 1e-3
        print(
            f"batch {batch}: Parnassus / PyTorch = {ratio:.2f} (limit: at most {LIMIT}); "
            f"PyTorch step: {microseconds:.0f} µs; "
            f"relative loss difference after {(TURNS + 1) * STEPS} steps: {loss_difference:.1e}"
        )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
