"""Benchmark of the optimizers of `parnassus.optim` against those of torch.optim, at a million parameters.

Both update tensors of the same shapes with the same gradients and are timed alternately in one process, so that
background load affects both. The measurement is repeated with new allocations of the tensors. torch.optim is measured
twice: with its default settings and with foreach=True. If a GPU is available, the steps are also timed there.
Limit: at most 1.05 times the duration of either torch.optim step.
Run: python benchmarks/optimisers.py
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import nn
from torch.optim import Optimizer

from parnassus.optim import SGD, AdaGrad, Adam, AdamW, Momentum, NesterovMomentum, RMSProp

ALLOCATIONS, TURNS, STEPS, LIMIT = 6, 10, 5, 1.05
SHAPES = [(224, 224), (224,)] * 20  # weights and biases of twenty layers: 1,008,000 parameters
OptimizerFactory = Callable[[Iterable[nn.Parameter]], Optimizer]
PAIRS: dict[str, tuple[OptimizerFactory, Callable[..., Optimizer]]] = {
    "SGD": (partial(SGD, lr=1e-3), partial(torch.optim.SGD, lr=1e-3)),
    "Momentum": (partial(Momentum, lr=1e-3), partial(torch.optim.SGD, lr=1e-3, momentum=0.9)),
    "NesterovMomentum": (
        partial(NesterovMomentum, lr=1e-3),
        partial(torch.optim.SGD, lr=1e-3, momentum=0.9, nesterov=True),
    ),
    "AdaGrad": (partial(AdaGrad, lr=1e-3), partial(torch.optim.Adagrad, lr=1e-3)),
    "RMSProp": (partial(RMSProp, lr=1e-3), partial(torch.optim.RMSprop, lr=1e-3)),
    "Adam": (partial(Adam, lr=1e-3), partial(torch.optim.Adam, lr=1e-3)),
    "AdamW": (partial(AdamW, lr=1e-3), partial(torch.optim.AdamW, lr=1e-3)),
}


def parameters(device: str) -> list[nn.Parameter]:
    """Create parameters with gradients, identical at every call."""
    generator = torch.Generator().manual_seed(0)
    tensors = [nn.Parameter(torch.randn(shape, generator=generator).to(device)) for shape in SHAPES]
    for tensor in tensors:
        tensor.grad = torch.randn(tensor.shape, generator=generator).to(device)
    return tensors


def seconds(optimizer: Optimizer, device: str) -> float:
    """Return the seconds of `STEPS` steps."""
    start_time = time.perf_counter()
    for _ in range(STEPS):
        optimizer.step()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start_time


def compare(make_own: OptimizerFactory, make_torch: Callable[..., Optimizer], device: str) -> dict[str, float]:
    """Return the median time ratios Parnassus / torch.optim and the microseconds per step of Parnassus."""
    times: dict[str, list[float]] = {"parnassus": [], "default": [], "foreach": []}
    for _ in range(ALLOCATIONS):
        optimizers: dict[str, Optimizer] = {
            "parnassus": make_own(parameters(device)),
            "default": make_torch(parameters(device)),
            "foreach": make_torch(parameters(device), foreach=True),
        }
        for turn in range(-1, TURNS):
            for name in sorted(optimizers, reverse=bool(turn % 2)):
                elapsed = seconds(optimizers[name], device)
                if turn >= 0:  # the first turn is a warm-up
                    times[name].append(elapsed)
    ratios = {
        name: statistics.median(own / baseline for own, baseline in zip(times["parnassus"], times[name], strict=True))
        for name in ("default", "foreach")
    }
    return {**ratios, "microseconds": 1e6 * statistics.median(times["parnassus"]) / STEPS}


def main() -> None:
    """Print a table of ratios; exit with 1 if a ratio exceeds the limit."""
    torch.set_num_threads(1)
    failed = False
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        print(f"{device}: time ratio Parnassus / torch.optim (limit: at most {LIMIT})")
        print(f"{'':18}{'default':>9}{'foreach':>9}{'µs':>9}")
        for name, (make_own, make_torch) in PAIRS.items():
            result = compare(make_own, make_torch, device)
            failed |= max(result["default"], result["foreach"]) > LIMIT
            print(f"{name:18}{result['default']:9.3f}{result['foreach']:9.3f}{result['microseconds']:9.0f}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
