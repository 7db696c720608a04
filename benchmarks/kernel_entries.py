"""Benchmark of the NNGP kernel and the NTK of a five-layer ReLU network against neural-tangents, on 4,000 inputs.

neural-tangents requires jax 0.4.30 and numpy < 2, so it runs in a child process of an interpreter with its own
environment. After a first call, which includes compilation, the child reports its seconds in reply to every "go". Both
implementations process the same inputs on the same cores, alternately, so that background load affects both. They
compute in single precision, the default of neural-tangents, and in double precision. CPU seconds (summed over threads)
are also printed; they are more reliable than wall-clock seconds on a busy machine. The memory column is the peak memory
of Parnassus as a multiple of the size of the two kernels.
Limits: at least 1.5 times as fast as neural-tangents; in double precision, equal within 10⁻⁶; memory at most 1.2.
Run: python benchmarks/kernel_entries.py --python PATH (the interpreter of an environment with neural-tangents)
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from parnassus.attention import peak_memory
from parnassus.kernels import ReLU, fully_connected

DEPTH, FEATURES, LIMIT, TOLERANCE, MAX_MEMORY = 5, 784, 1.5, 1e-6, 1.2
CHILD = """
import sys, time, jax
import numpy as np
jax.config.update("jax_enable_x64", sys.argv[2] == "float64")
import jax.numpy as jnp
from neural_tangents import stax
layers = [stax.Dense(512, parameterization="ntk", b_std=None)]
for _ in range(int(sys.argv[3])):
    layers += [stax.Relu(), stax.Dense(512, W_std=2**0.5, b_std=None)]
kernel = jax.jit(lambda x: stax.serial(*layers)[2](x, None, ("nngp", "ntk")))
x = jnp.asarray(np.load(sys.argv[1] + "/x.npy").astype(sys.argv[2]))
kernels = jax.block_until_ready(kernel(x))
assert str(kernels.ntk.dtype) == sys.argv[2], kernels.ntk.dtype
np.save(sys.argv[1] + "/kernels.npy", np.stack([kernels.nngp, kernels.ntk]))
print("ready", flush=True)
for line in sys.stdin:
    del kernels
    start_time, start_cpu = time.perf_counter(), time.process_time()
    kernels = jax.block_until_ready(kernel(x))
    print("took", time.perf_counter() - start_time, time.process_time() - start_cpu, flush=True)
"""


class NeuralTangents:
    """neural-tangents in a child process of another interpreter."""

    def __init__(self, python: str, folder: Path, dtype: str) -> None:
        command = [python, "-W", "ignore", "-c", CHILD, str(folder), dtype, str(DEPTH)]
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self._read_reply("ready")

    def __call__(self) -> tuple[float, float]:
        """Return wall-clock seconds, and CPU seconds summed over threads."""
        assert self.child.stdin is not None
        print("go", file=self.child.stdin, flush=True)
        wall, cpu = self._read_reply("took")
        return wall, cpu

    def close(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait()

    def _read_reply(self, prefix: str) -> list[float]:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            if line.startswith(prefix):
                return [float(number) for number in line.split()[1:]]
        raise RuntimeError(f"the interpreter exited with code {self.child.wait()}: is neural-tangents installed?")


def time_parnassus(x: Tensor) -> tuple[float, float]:
    start_time, start_cpu = time.perf_counter(), time.process_time()
    fully_connected(DEPTH, ReLU()).kernels(x)
    return time.perf_counter() - start_time, time.process_time() - start_cpu


def measure_memory(x: Tensor) -> int:
    """Return the peak memory in bytes on one thread: other threads are not traced, and each adds a few blocks."""
    cores = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return peak_memory(lambda: fully_connected(DEPTH, ReLU()).kernels(x))
    finally:
        torch.set_num_threads(cores)


def measure(
    own: Callable[[], tuple[float, float]], baseline: Callable[[], tuple[float, float]], turns: int
) -> list[list[float]]:
    """Return the median wall-clock and CPU seconds, first of Parnassus, then of neural-tangents."""
    times: list[list[tuple[float, float]]] = [[], []]
    own()  # warm-up
    for turn in range(turns):
        for index in (0, 1) if turn % 2 else (1, 0):
            times[index].append((own, baseline)[index]())
    return [[statistics.median(column) for column in zip(*each, strict=True)] for each in times]


def main() -> None:
    """Print a table of ratios; exit with 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description="kernels of Parnassus against those of neural-tangents")
    parser.add_argument("--python", required=True, help="interpreter of an environment with neural-tangents")
    parser.add_argument("--rows", type=int, default=4_000)
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    failed = False
    x = torch.randn(args.rows, FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = x / x.norm(dim=1, keepdim=True) * torch.linspace(0.5, 2, len(x), dtype=torch.float64)[:, None]
    print(
        f"NNGP and NTK, {DEPTH} ReLU layers, {len(x):,} × {len(x):,}, {torch.get_num_threads()} threads; "
        "ratio = time of neural-tangents / time of Parnassus"
    )
    print(f"{'':10}{'ratio':>8}{'CPU ratio':>11}{'seconds':>10}{'baseline':>11}{'difference':>12}{'memory':>9}")
    for dtype in (torch.float32, torch.float64):
        name, inputs = str(dtype).removeprefix("torch."), x.to(dtype)
        with tempfile.TemporaryDirectory() as folder:
            # neural-tangents divides by the number of features, the book does not
            np.save(Path(folder) / "x.npy", (x * FEATURES**0.5).numpy())
            baseline = NeuralTangents(args.python, Path(folder), name)
            reference = torch.from_numpy(np.load(Path(folder) / "kernels.npy"))
        kernels = torch.stack(fully_connected(DEPTH, ReLU()).kernels(inputs))
        difference = float(((kernels - reference).abs() / reference.abs().clamp(min=1e-3)).max())
        del kernels, reference
        (wall, cpu), (baseline_wall, baseline_cpu) = measure(partial(time_parnassus, inputs), baseline, args.turns)
        baseline.close()
        size = 2 * len(x) ** 2 * inputs.element_size()
        memory = measure_memory(inputs) / size
        failed |= (
            baseline_wall / wall < LIMIT or memory > MAX_MEMORY or (dtype == torch.float64 and difference > TOLERANCE)
        )
        print(
            f"{name:10}{baseline_wall / wall:8.2f}{baseline_cpu / cpu:11.2f}{wall:10.2f}{baseline_wall:11.2f}"
            f"{difference:12.1e}{memory:9.3f}",
            flush=True,
        )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
