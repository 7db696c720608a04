"""What a step of our optimisers costs beside torch's: at most 1.05 at a million parameters.

Both sides update tensors of the same shapes with the same gradients in one process and take turns, so that a noisy
machine slows both, at several places in memory. torch is taken twice: with its default settings and with foreach=True.
On a machine with a GPU the steps are timed there too.
Run it with: python benchmarks/optimisers.py
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

PLACES, TURNS, STEPS, LIMIT = 6, 10, 5, 1.05
SHAPES = [(224, 224), (224,)] * 20  # weights and biases of twenty layers: 1,008,000 numbers
Make = Callable[[Iterable[nn.Parameter]], Optimizer]
PAIRS: dict[str, tuple[Make, Callable[..., Optimizer]]] = {
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
    """Tensors with gradients, the same at every call."""
    source = torch.Generator().manual_seed(0)
    tensors = [nn.Parameter(torch.randn(shape, generator=source).to(device)) for shape in SHAPES]
    for tensor in tensors:
        tensor.grad = torch.randn(tensor.shape, generator=source).to(device)
    return tensors


def seconds(optimizer: Optimizer, device: str) -> float:
    """The time of `STEPS` steps."""
    began = time.perf_counter()
    for _ in range(STEPS):
        optimizer.step()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def compare(ours: Make, theirs: Callable[..., Optimizer], device: str) -> dict[str, float]:
    """The median over turns of our time by torch's, and our microseconds a step."""
    times: dict[str, list[float]] = {"ours": [], "default": [], "foreach": []}
    for _ in range(PLACES):
        sides: dict[str, Optimizer] = {
            "ours": ours(parameters(device)),
            "default": theirs(parameters(device)),
            "foreach": theirs(parameters(device), foreach=True),
        }
        for turn in range(-1, TURNS):
            for name in sorted(sides, reverse=bool(turn % 2)):
                taken = seconds(sides[name], device)
                if turn >= 0:  # the first warms up
                    times[name].append(taken)
    ratios = {
        name: statistics.median(mine / other for mine, other in zip(times["ours"], times[name], strict=True))
        for name in ("default", "foreach")
    }
    return {**ratios, "microseconds": 1e6 * statistics.median(times["ours"]) / STEPS}


def main() -> None:
    """Print a table of ratios; exit code 1 when one is over the limit."""
    torch.set_num_threads(1)
    over = False
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        print(f"{device}: our step by torch's, at most {LIMIT}")
        print(f"{'':18}{'default':>9}{'foreach':>9}{'µs':>9}")
        for name, (ours, theirs) in PAIRS.items():
            found = compare(ours, theirs, device)
            over |= max(found["default"], found["foreach"]) > LIMIT
            print(f"{name:18}{found['default']:9.3f}{found['foreach']:9.3f}{found['microseconds']:9.0f}")
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
