"""NNGP and NTK of a five-layer ReLU network on 4,000 × 4,000 inputs: ours at least 1.5 × as fast as neural-tangents.

neural-tangents needs jax 0.4.30 and numpy < 2, so it lives in an environment of its own and runs as a child process of
that interpreter; it answers each "go" with its seconds, after a first call in which it compiles. Both sides work on the
same inputs on the same cores and take turns, so that a noisy machine slows both. It computes in single precision as it
does by default, and in double where it is told to; the kernels of the latter must agree to 10⁻⁶. The CPU seconds, of
all threads, tell more than those of the clock where others use the machine. A matrix product alone takes part of both.
Run it with: python benchmarks/kernel_entries.py --python /its/environment/bin/python
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

DEPTH, FEATURES, LIMIT, TOLERANCE, MEMORY = 5, 784, 1.5, 1e-6, 1.2
THEIRS = """
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
found = jax.block_until_ready(kernel(x))
assert str(found.ntk.dtype) == sys.argv[2], found.ntk.dtype
np.save(sys.argv[1] + "/theirs.npy", np.stack([found.nngp, found.ntk]))
print("ready", flush=True)
for line in sys.stdin:
    del found
    began, busy = time.perf_counter(), time.process_time()
    found = jax.block_until_ready(kernel(x))
    print("took", time.perf_counter() - began, time.process_time() - busy, flush=True)
"""


class Theirs:
    """neural-tangents in another interpreter."""

    def __init__(self, python: str, folder: Path, dtype: str) -> None:
        command = [python, "-W", "ignore", "-c", THEIRS, str(folder), dtype, str(DEPTH)]
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self._answer("ready")

    def __call__(self) -> tuple[float, float]:
        """Seconds by the clock, and of all its threads together."""
        assert self.child.stdin is not None
        print("go", file=self.child.stdin, flush=True)
        wall, busy = self._answer("took")
        return wall, busy

    def close(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait()

    def _answer(self, word: str) -> list[float]:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            if line.startswith(word):
                return [float(number) for number in line.split()[1:]]
        raise RuntimeError(f"the other interpreter ended with code {self.child.wait()}: is neural_tangents there?")


def ours(x: Tensor) -> tuple[float, float]:
    began, busy = time.perf_counter(), time.process_time()
    fully_connected(DEPTH, ReLU()).kernels(x)
    return time.perf_counter() - began, time.process_time() - busy


def own_memory(x: Tensor) -> int:
    """The most bytes that lived at once on one thread: others are not seen, and each adds some blocks."""
    cores = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return peak_memory(lambda: fully_connected(DEPTH, ReLU()).kernels(x))
    finally:
        torch.set_num_threads(cores)


def race(
    mine: Callable[[], tuple[float, float]], other: Callable[[], tuple[float, float]], turns: int
) -> list[list[float]]:
    """Medians over turns: our clock and CPU seconds, then theirs."""
    times: list[list[tuple[float, float]]] = [[], []]
    mine()  # warms up
    for turn in range(turns):
        for side in (0, 1) if turn % 2 else (1, 0):
            times[side].append((mine, other)[side]())
    return [[statistics.median(column) for column in zip(*side, strict=True)] for side in times]


def main() -> None:
    """Print a table of ratios; exit code 1 when one is under the limit, or kernels disagree."""
    parser = argparse.ArgumentParser(description="our kernels beside those of neural-tangents")
    parser.add_argument("--python", required=True, help="an interpreter with neural-tangents")
    parser.add_argument("--rows", type=int, default=4_000)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    failed = False
    x = torch.randn(arguments.rows, FEATURES, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = x / x.norm(dim=1, keepdim=True) * torch.linspace(0.5, 2, len(x), dtype=torch.float64)[:, None]
    print(
        f"NNGP and NTK, {DEPTH} ReLU layers, {len(x):,} × {len(x):,}, {torch.get_num_threads()} threads; theirs by ours"
    )
    print(f"{'':10}{'ratio':>8}{'CPU ratio':>11}{'ours, s':>10}{'theirs, s':>11}{'difference':>12}{'memory':>9}")
    for dtype in (torch.float32, torch.float64):
        name, inputs = str(dtype).removeprefix("torch."), x.to(dtype)
        with tempfile.TemporaryDirectory() as folder:
            np.save(
                Path(folder) / "x.npy", (x * FEATURES**0.5).numpy()
            )  # it divides by the features, the book does not
            other = Theirs(arguments.python, Path(folder), name)
            their_kernels = torch.from_numpy(np.load(Path(folder) / "theirs.npy"))
        mine = torch.stack(fully_connected(DEPTH, ReLU()).kernels(inputs))
        difference = float(((mine - their_kernels).abs() / their_kernels.abs().clamp(min=1e-3)).max())
        del mine, their_kernels
        (wall, busy), (their_wall, their_busy) = race(partial(ours, inputs), other, arguments.turns)
        other.close()
        size = 2 * len(x) ** 2 * inputs.element_size()
        memory = own_memory(inputs) / size
        failed |= their_wall / wall < LIMIT or memory > MEMORY or (dtype == torch.float64 and difference > TOLERANCE)
        print(
            f"{name:10}{their_wall / wall:8.2f}{their_busy / busy:11.2f}{wall:10.2f}{their_wall:11.2f}"
            f"{difference:12.1e}{memory:9.3f}",
            flush=True,
        )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
