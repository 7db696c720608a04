"""Milliseconds an entry of NNGP and tangent kernel together: a CNN of 21 layers on 32 × 32 × 3, pooled and flattened.

For the pooled network neural-tangents prints 2.70 ms an entry on a V100: every place of an image is compared with every
place of the other, about a million numbers an entry. Here it is measured on whatever device there is, in single
precision; on a processor of a few entries, as processor time. With --python, the interpreter of an environment that
has neural-tangents 0.6.5, both sides work out the same small case on the processor, 8 × 8 places and 5 layers, taking
turns in single and double precision, and their values are compared.
Run it with: python benchmarks/convolutional_kernel.py
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
    Compiled,
    Convolution,
    Dense,
    Flatten,
    GlobalAveragePooling,
    Layer,
    Network,
    ReLU,
)

PRINTED = 2.70
"""Milliseconds an entry that neural-tangents prints for the pooled network of 21 layers."""
WEIGHT, BIAS, SMALL, DEPTH = 2.0, 0.1, 8, 5
CHILD = """
import json, sys, time
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import numpy as np
from neural_tangents import stax

count, depth, weight, bias, places = json.loads(sys.stdin.readline())
pixels = np.sin(np.arange(count * 3 * places**2, dtype=np.float64) ** 1.3).reshape(count, 3, places, places)
x = pixels.transpose(0, 2, 3, 1)
layers = []
for _ in range(depth):
    conv = stax.Conv(1, (3, 3), padding="SAME", W_std=weight**0.5, b_std=bias**0.5, parameterization="ntk")
    layers += [conv, stax.Relu()]
_, _, kernel = stax.serial(*layers, stax.GlobalAvgPool(), stax.Dense(1))
kernel = jax.jit(kernel, static_argnames="get")
for kind in sys.stdin:
    points = jnp.asarray(x, dtype=kind.strip())
    began = time.process_time()
    found = kernel(points, None, get=("nngp", "ntk"))
    jax.block_until_ready((found.nngp, found.ntk))
    taken = time.process_time() - began
    print(json.dumps([taken, np.asarray(found.nngp).tolist(), np.asarray(found.ntk).tolist()]), flush=True)
"""


UNIT = Network((Convolution(3, WEIGHT, BIAS), Activation(ReLU())))


def network(depth: int, end: Layer, *, joined: bool = False) -> Network:
    """So many convolutions of size 3 with their rectifiers, an end that leaves vectors, and a dense layer."""
    unit = (Compiled(UNIT),) if joined else UNIT.layers
    return Network((*unit * depth, end, Dense()))


def milliseconds(work: Callable[[], object], entries: int, *, turns: int) -> float:
    """The median over turns, an entry; the first turn is left out."""
    times, clock = [], time.perf_counter if torch.cuda.is_available() else time.process_time
    for _ in range(turns + 1):
        _wait()
        began = clock()
        work()
        _wait()
        times.append(clock() - began)
    return 1e3 * statistics.median(times[1:]) / entries


def print_entries(images: int, turns: int, *, compile_too: bool) -> None:
    """The network of 21 layers, pooled and flattened."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    named = torch.cuda.get_device_name() if device == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    torch.manual_seed(0)
    for name, end, count in (("pooled", GlobalAveragePooling(), images), ("flattened", Flatten(), 8 * images)):
        whole = network(21, end)
        x, y = (torch.randn(count, 3, 32, 32, device=device) for _ in range(2))
        taken = milliseconds(partial(whole.kernels, x, y), count**2, turns=turns)
        note = f" (neural-tangents prints {PRINTED} on a V100)" if name == "pooled" else ""
        print(f"21 layers on 32 × 32 × 3, {name}, {count} × {count} images: {taken:.4g} ms an entry on {named}{note}")
        if compile_too:
            taken = milliseconds(partial(network(21, end, joined=True).kernels, x, y), count**2, turns=turns)
            print(f"  its passes joined by torch.compile: {taken:.4g} ms an entry")


def race(python: str, images: int, turns: int) -> None:
    """Both sides on the small case, each in turn; processor time, for both may use what threads they like."""
    whole = network(DEPTH, GlobalAveragePooling())
    pixels = torch.sin(torch.arange(images * 3 * SMALL**2, dtype=torch.float64) ** 1.3).view(images, 3, SMALL, SMALL)
    child = subprocess.Popen([python, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps([images, DEPTH, WEIGHT, BIAS, SMALL]) + "\n")
    for kind in (torch.float32, torch.float64):
        times: dict[str, list[float]] = {"theirs": [], "ours": []}
        for turn in range(turns + 1):
            child.stdin.write(str(kind).removeprefix("torch.") + "\n")
            child.stdin.flush()
            used, *values = json.loads(child.stdout.readline())
            began = time.process_time()
            found = whole.kernels(pixels.to(kind))
            if turn:  # the first compiles
                times["theirs"].append(used)
                times["ours"].append(time.process_time() - began)
        theirs, ours = (1e3 * statistics.median(own) / images**2 for own in times.values())
        ratio = statistics.median(a / b for a, b in zip(*times.values(), strict=True))
        gap = max(
            float((kernel.double() / torch.tensor(value, dtype=torch.float64) - 1).abs().max())
            for kernel, value in zip(found, values, strict=True)
        )
        print(
            f"{DEPTH} layers on {SMALL} × {SMALL} × 3, pooled, {images} × {images} images, {str(kind)[6:]}: "
            f"neural-tangents {theirs:.4g} ms of processor time an entry, ours {ours:.4g}, {ratio:.2f} times as fast; "
            f"values differ by {gap:.1e}"
        )
    child.stdin.close()
    child.wait()


def main() -> None:
    """Print milliseconds an entry, and beside neural-tangents where it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=0, help="on each side; 0: 32 on CUDA, 2 on a processor")
    parser.add_argument("--turns", type=int, default=3, help="calls that are timed")
    parser.add_argument("--compile", action="store_true", help="also through torch.compile")
    parser.add_argument("--python", default="", help="an interpreter that can import neural_tangents")
    options = parser.parse_args()
    images = options.images or (32 if torch.cuda.is_available() else 2)
    print_entries(images, options.turns, compile_too=options.compile)
    if options.python:
        race(options.python, 16, options.turns)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
