"""Benchmark of the NNGP kernel and the NTK of deep convolutional networks against neural-tangents.

Measured is the time per kernel entry (both kernels together) of a network with 21 convolutions on 32 × 32 × 3 images,
with global average pooling and with flattening, in single precision. The reference for the pooled network is the
2.70 ms per entry that neural-tangents reports on a V100. Each of its entries covers all pairs of positions of two
images, about a million numbers. On CUDA wall-clock time is measured, on a CPU process time and on few images.
With --python, the interpreter of an environment with neural-tangents 0.6.5, both implementations also compute a small
case (8 × 8 positions, 5 convolutions) alternately on the CPU, in single and double precision, and the largest relative
difference of their values is printed.
Limit: none; the results are only printed.
Run: python benchmarks/convolutional_kernel.py [--python PATH]
"""

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Callable
from functools import partial

import torch

from parnassus.kernels import (
    Activation,
    CompiledLayer,
    Convolution,
    Dense,
    Flatten,
    GlobalAveragePooling,
    Layer,
    Network,
    ReLU,
)

PUBLISHED = 2.70
"""Milliseconds per entry that neural-tangents reports for the pooled network with 21 convolutions."""
WEIGHT_VARIANCE, BIAS_VARIANCE, SMALL_SIZE, DEPTH = 2.0, 0.1, 8, 5
CHILD = """
import json, sys, time
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import numpy as np
from neural_tangents import stax

count, depth, weight_variance, bias_variance, size = json.loads(sys.stdin.readline())
pixels = np.sin(np.arange(count * 3 * size**2, dtype=np.float64) ** 1.3).reshape(count, 3, size, size)
x = pixels.transpose(0, 2, 3, 1)
layers = []
for _ in range(depth):
    conv = stax.Conv(1, (3, 3), padding="SAME", W_std=weight_variance**0.5, b_std=bias_variance**0.5,
                      parameterization="ntk")
    layers += [conv, stax.Relu()]
_, _, kernel = stax.serial(*layers, stax.GlobalAvgPool(), stax.Dense(1))
kernel = jax.jit(kernel, static_argnames="get")
for line in sys.stdin:
    points = jnp.asarray(x, dtype=line.strip())
    start_time = time.process_time()
    kernels = kernel(points, None, get=("nngp", "ntk"))
    jax.block_until_ready((kernels.nngp, kernels.ntk))
    elapsed = time.process_time() - start_time
    print(json.dumps([elapsed, np.asarray(kernels.nngp).tolist(), np.asarray(kernels.ntk).tolist()]), flush=True)
"""


BLOCK = Network((Convolution(3, WEIGHT_VARIANCE, BIAS_VARIANCE), Activation(ReLU())))


def network(depth: int, head: Layer, *, compiled: bool = False) -> Network:
    """Build `depth` 3 × 3 convolutions with ReLU, followed by `head`, which outputs vectors, and a dense layer."""
    block = (CompiledLayer(BLOCK),) if compiled else BLOCK.layers
    return Network((*block * depth, head, Dense()))


def milliseconds(call: Callable[[], object], entries: int, *, turns: int) -> float:
    """Return the median milliseconds per entry over `turns` calls, after one warm-up call."""
    times, clock = [], time.perf_counter if torch.cuda.is_available() else time.process_time
    for _ in range(turns + 1):
        _synchronize()
        start_time = clock()
        call()
        _synchronize()
        times.append(clock() - start_time)
    return 1e3 * statistics.median(times[1:]) / entries


def print_entries(images: int, turns: int, *, also_compiled: bool) -> None:
    """Print the time per entry of the networks with 21 convolutions, pooled and flattened."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    device_name = torch.cuda.get_device_name() if device == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    torch.manual_seed(0)
    for name, head, count in (("pooled", GlobalAveragePooling(), images), ("flattened", Flatten(), 8 * images)):
        model = network(21, head)
        x, y = (torch.randn(count, 3, 32, 32, device=device) for _ in range(2))
        elapsed = milliseconds(partial(model.kernels, x, y), count**2, turns=turns)
        note = f" (neural-tangents reports {PUBLISHED} on a V100)" if name == "pooled" else ""
        print(
            f"21 convolutions on 32 × 32 × 3, {name}, {count} × {count} images: "
            f"{elapsed:.4g} ms per entry on {device_name}{note}"
        )
        if also_compiled:
            elapsed = milliseconds(partial(network(21, head, compiled=True).kernels, x, y), count**2, turns=turns)
            print(f"  with torch.compile: {elapsed:.4g} ms per entry")


def compare(python: str, images: int, turns: int) -> None:
    """Time both implementations alternately on the small case, in process time since their thread counts may differ."""
    model = network(DEPTH, GlobalAveragePooling())
    pixels = torch.sin(torch.arange(images * 3 * SMALL_SIZE**2, dtype=torch.float64) ** 1.3).view(
        images, 3, SMALL_SIZE, SMALL_SIZE
    )
    child = subprocess.Popen([python, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps([images, DEPTH, WEIGHT_VARIANCE, BIAS_VARIANCE, SMALL_SIZE]) + "\n")
    for dtype in (torch.float32, torch.float64):
        times: dict[str, list[float]] = {"neural-tangents": [], "parnassus": []}
        for turn in range(turns + 1):
            child.stdin.write(str(dtype).removeprefix("torch.") + "\n")
            child.stdin.flush()
            baseline_elapsed, *values = json.loads(child.stdout.readline())
            start_time = time.process_time()
            kernels = model.kernels(pixels.to(dtype))
            if turn:  # the first turn includes compilation
                times["neural-tangents"].append(baseline_elapsed)
                times["parnassus"].append(time.process_time() - start_time)
        baseline, own = (1e3 * statistics.median(each) / images**2 for each in times.values())
        ratio = statistics.median(a / b for a, b in zip(*times.values(), strict=True))
        difference = max(
            float((kernel.double() / torch.tensor(value, dtype=torch.float64) - 1).abs().max())
            for kernel, value in zip(kernels, values, strict=True)
        )
        print(
            f"{DEPTH} convolutions on {SMALL_SIZE} × {SMALL_SIZE} × 3, pooled, "
            f"{images} × {images} images, {str(dtype)[6:]}: "
            f"neural-tangents {baseline:.4g} ms of CPU time per entry, Parnassus {own:.4g}, {ratio:.2f} times as fast; "
            f"largest relative difference {difference:.1e}"
        )
    child.stdin.close()
    child.wait()


def main() -> None:
    """Print the milliseconds per entry and, with --python, the comparison with neural-tangents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=0, help="images per kernel axis; 0: 32 on CUDA, 2 on a CPU")
    parser.add_argument("--turns", type=int, default=3, help="number of timed calls")
    parser.add_argument("--compile", action="store_true", help="also measure with torch.compile")
    parser.add_argument("--python", default="", help="interpreter of an environment with neural-tangents")
    args = parser.parse_args()
    images = args.images or (32 if torch.cuda.is_available() else 2)
    print_entries(images, args.turns, also_compiled=args.compile)
    if args.python:
        compare(args.python, 16, args.turns)


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
