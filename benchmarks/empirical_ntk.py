"""Benchmark of `empirical_ntk` against a direct computation of the empirical neural tangent kernel with torch.func.

The direct computation takes jacrev under vmap for the gradients with respect to all parameters and contracts them with
einsum. The values of both implementations are compared first. Time is measured alternately in one process, memory as
the peak of a separate process per implementation in excess of its libraries, modules and inputs.
Limit: at least 2 times as fast as the direct computation; memory is only printed.
Run: python benchmarks/empirical_ntk.py
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
Implementation: TypeAlias = Callable[[nn.Module, Tensor], Tensor]


def plain(module: nn.Module, x: Tensor) -> Tensor:
    """Compute all gradients, then all inner products, averaged over the outputs."""
    parameters = {name: parameter.detach() for name, parameter in module.named_parameters()}

    def outputs(theta: dict[str, Tensor], point: Tensor) -> Tensor:
        output: Tensor = functional_call(module, theta, (point[None],))[0]
        return output

    gradients = vmap(jacrev(outputs), in_dims=(None, 0))(parameters, x)
    flat = [part.flatten(2) for part in gradients.values()]
    return torch.stack([torch.einsum("nkp,mkp->nm", part, part) / part.shape[1] for part in flat]).sum(0)


def wide_mlp() -> tuple[nn.Module, Tensor]:
    return fully_connected(3, ReLU()).module((64,), 1_024), torch.randn(128, 64)


def ten_outputs() -> tuple[nn.Module, Tensor]:
    return fully_connected(3, ReLU()).module((64,), 256, outputs=10), torch.randn(128, 64)


def small_cnn() -> tuple[nn.Module, Tensor]:
    """LeNet: two convolutions with pooling and three dense layers, on 28 × 28 images."""
    layers = [nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU()]
    layers += [nn.AvgPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(84, 10)), torch.randn(128, 1, 28, 28)


def all_convolutions() -> tuple[nn.Module, Tensor]:
    """Nearly all weights in convolutions with many positions, where both implementations materialise most gradients."""
    layers = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1, stride=2), nn.ReLU()]
    layers += [nn.Conv2d(32, 64, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 16, 10)]
    return nn.Sequential(*layers), torch.randn(64, 3, 16, 16)


CASES = {
    "wide MLP, 1 output": wide_mlp,
    "MLP, 10 outputs": ten_outputs,
    "small CNN, 10 outputs": small_cnn,
    "convolutions alone, 10 outputs": all_convolutions,
}
IMPLEMENTATIONS: dict[str, Implementation] = {"plain": plain, "ours": empirical_ntk}


def _assert_equal_kernels(module: nn.Module, x: Tensor) -> None:
    """Compare to 1e-6 of the largest entry in the benchmarked precision, and to 1e-6 per entry in float64."""
    kernel, reference = empirical_ntk(module, x), plain(module, x)
    torch.testing.assert_close(kernel, reference, rtol=0, atol=1e-6 * float(reference.abs().max()))
    double_module, subset = copy.deepcopy(module).double(), x[:16].double()
    torch.testing.assert_close(empirical_ntk(double_module, subset), plain(double_module, subset), rtol=1e-6, atol=0)


def memory(case: str, implementation: str) -> float:
    """Return the peak memory of one call in MiB, measured in a separate process."""
    process = subprocess.run(
        [sys.executable, __file__, "--memory", case, implementation], check=True, capture_output=True, text=True
    )
    return float(process.stdout)


def _print_memory(case: str, implementation: str) -> None:
    torch.manual_seed(0)
    module, x = CASES[case]()
    IMPLEMENTATIONS[implementation](module, x[:2])
    before = _peak()
    IMPLEMENTATIONS[implementation](module, x)
    print(_peak() - before)


def _peak() -> float:
    """Return the peak memory of this process in MiB, from /proc: a child inherits `ru_maxrss` from its parent."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10


def main() -> None:
    """Print milliseconds, ratio and memory of each case; exit with 1 if a ratio is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5, help="number of timed calls per implementation")
    parser.add_argument("--memory", nargs=2, metavar=("CASE", "SIDE"), help="only print the peak memory of one call")
    args = parser.parse_args()
    if args.memory:
        _print_memory(*args.memory)
        return
    min_ratio = float("inf")
    for case, make_case in CASES.items():
        torch.manual_seed(0)
        module, x = make_case()
        _assert_equal_kernels(module, x)
        times: dict[str, list[float]] = {name: [] for name in IMPLEMENTATIONS}
        for turn in range(args.turns):
            for name in sorted(IMPLEMENTATIONS, reverse=bool(turn % 2)):
                start_time = time.perf_counter()
                IMPLEMENTATIONS[name](module, x)
                times[name].append(1e3 * (time.perf_counter() - start_time))
        ratio = statistics.median(a / b for a, b in zip(times["plain"], times["ours"], strict=True))
        min_ratio = min(min_ratio, ratio)
        milliseconds = {name: statistics.median(each) for name, each in times.items()}
        mebibytes = {name: memory(case, name) for name in IMPLEMENTATIONS}
        print(
            f"{case}, {len(x)} inputs: direct {milliseconds['plain']:.0f} ms and {mebibytes['plain']:.0f} MiB, "
            f"Parnassus {milliseconds['ours']:.0f} ms and {mebibytes['ours']:.0f} MiB: "
            f"{ratio:.1f} times as fast (limit: at least {LIMIT})"
        )
    sys.exit(1 if min_ratio < LIMIT else 0)


if __name__ == "__main__":
    main()
