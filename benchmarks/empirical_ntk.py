"""The empirical tangent kernel beside a plain Jacobian product: at least twice as fast, in less memory.

The plain product is what one writes in three lines: jacrev under vmap for the gradients of all parameters, then an
einsum over them. Both give the same numbers, which is checked first. They take turns in one process; memory is the most
that a process of its own had beyond its libraries, modules and inputs. Run it with: python benchmarks/empirical_ntk.py
"""

import argparse
import copy
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from parnassus.kernels import ReLU, empirical_ntk, fully_connected

LIMIT = 2.0
Side: TypeAlias = Callable[[nn.Module, Tensor], Tensor]


def plain(module: nn.Module, x: Tensor) -> Tensor:
    """All gradients, then all inner products, averaged over the outputs."""
    parameters = {name: parameter.detach() for name, parameter in module.named_parameters()}

    def outputs(theta: dict[str, Tensor], point: Tensor) -> Tensor:
        made: Tensor = functional_call(module, theta, (point[None],))[0]
        return made

    gradients = vmap(jacrev(outputs), in_dims=(None, 0))(parameters, x)
    flat = [part.flatten(2) for part in gradients.values()]
    return torch.stack([torch.einsum("nkp,mkp->nm", part, part) / part.shape[1] for part in flat]).sum(0)


def wide_mlp() -> tuple[nn.Module, Tensor]:
    return fully_connected(3, ReLU()).module((64,), 1_024), torch.randn(128, 64)


def ten_outputs() -> tuple[nn.Module, Tensor]:
    return fully_connected(3, ReLU()).module((64,), 256, outputs=10), torch.randn(128, 64)


def small_cnn() -> tuple[nn.Module, Tensor]:
    """LeNet's sizes: two convolutions with pooling, three dense layers, on images of 28 × 28."""
    layers = [nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU()]
    layers += [nn.AvgPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(84, 10)), torch.randn(128, 1, 28, 28)


def all_convolutions() -> tuple[nn.Module, Tensor]:
    """Nearly all weights in convolutions at many places: there most gradients are written out on both sides."""
    layers = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1, stride=2), nn.ReLU()]
    layers += [nn.Conv2d(32, 64, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 16, 10)]
    return nn.Sequential(*layers), torch.randn(64, 3, 16, 16)


CASES = {
    "wide MLP, 1 output": wide_mlp,
    "MLP, 10 outputs": ten_outputs,
    "small CNN, 10 outputs": small_cnn,
    "convolutions alone, 10 outputs": all_convolutions,
}
SIDES: dict[str, Side] = {"plain": plain, "ours": empirical_ntk}


def _require_same(module: nn.Module, x: Tensor) -> None:
    """To 1e-6 of the largest entry in the precision of the race; each entry to 1e-6 of itself in float64."""
    ours, theirs = empirical_ntk(module, x), plain(module, x)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6 * float(theirs.abs().max()))
    exact, few = copy.deepcopy(module).double(), x[:16].double()
    torch.testing.assert_close(empirical_ntk(exact, few), plain(exact, few), rtol=1e-6, atol=0)


def memory(case: str, side: str) -> float:
    """MiB at the peak of one call, in a process of its own."""
    answer = subprocess.run(
        [sys.executable, __file__, "--memory", case, side], check=True, capture_output=True, text=True
    )
    return float(answer.stdout)


def _print_memory(case: str, side: str) -> None:
    torch.manual_seed(0)
    module, x = CASES[case]()
    SIDES[side](module, x[:2])
    before = _peak()
    SIDES[side](module, x)
    print(_peak() - before)


def _peak() -> float:
    """MiB; from Linux's own file, since a child's `ru_maxrss` begins with its parent's."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10


def main() -> None:
    """Print milliseconds, ratio and memory of each case; exit code 1 when a ratio is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5, help="calls of each side that are timed")
    parser.add_argument("--memory", nargs=2, metavar=("CASE", "SIDE"), help="print the memory of one call alone")
    options = parser.parse_args()
    if options.memory:
        _print_memory(*options.memory)
        return
    slowest = float("inf")
    for case, make in CASES.items():
        torch.manual_seed(0)
        module, x = make()
        _require_same(module, x)
        times: dict[str, list[float]] = {name: [] for name in SIDES}
        for turn in range(options.turns):
            for name in sorted(SIDES, reverse=bool(turn % 2)):
                began = time.perf_counter()
                SIDES[name](module, x)
                times[name].append(1e3 * (time.perf_counter() - began))
        ratio = statistics.median(a / b for a, b in zip(times["plain"], times["ours"], strict=True))
        slowest = min(slowest, ratio)
        taken = {name: statistics.median(own) for name, own in times.items()}
        used = {name: memory(case, name) for name in SIDES}
        print(
            f"{case}, {len(x)} inputs: plain {taken['plain']:.0f} ms and {used['plain']:.0f} MiB, "
            f"ours {taken['ours']:.0f} ms and {used['ours']:.0f} MiB: {ratio:.1f} times as fast (at least {LIMIT})"
        )
    sys.exit(1 if slowest < LIMIT else 0)


if __name__ == "__main__":
    main()
