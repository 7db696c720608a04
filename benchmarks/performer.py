"""Benchmark of Performer attention against performer-pytorch with equal numbers of random features.

Both implementations receive the same queries, keys, values and random directions, with and without a causal mask, and
are timed alternately in one process. The compiled causal kernel that performer-pytorch can use no longer builds; its
fallback, which users get by default, is measured instead. The memory of the fallback grows with features × width per
token, hence the shorter sequences with a causal mask.
Limit: at least 2 times as fast as performer-pytorch, forward only and with backward.
Run: python benchmarks/performer.py (requires performer-pytorch, part of the bench environment)
"""

import argparse
import contextlib
import io
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from performer_pytorch import FastAttention

from parnassus.attention import causal_performer_attention, performer_attention

AttentionFunction: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
LIMIT = 2.0


def seconds(attend: AttentionFunction, inputs: list[Tensor], *, backward: bool) -> float:
    """Return the seconds of one call, with `backward` including the gradients of all three inputs."""
    leaves = [x.detach().clone().requires_grad_(backward) for x in inputs]
    _synchronize()
    start_time = time.perf_counter()
    with torch.set_grad_enabled(backward):
        out = attend(*leaves)
        if backward:
            out.sum().backward()
    _synchronize()
    return time.perf_counter() - start_time


def measure(
    functions: dict[str, AttentionFunction], inputs: list[Tensor], *, backward: bool, turns: int
) -> dict[str, list[float]]:
    """Return the alternately measured times of both implementations, without the first turn (warm-up)."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(turns + 1):
        for name in sorted(functions, reverse=bool(turn % 2)):
            elapsed = seconds(functions[name], inputs, backward=backward)
            if turn:
                times[name].append(elapsed)
    return times


def main() -> None:
    """Print the milliseconds of both and the median ratios; exit with 1 if a ratio is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9, help="number of timed calls per implementation")
    parser.add_argument("--length", type=int, default=8_192, help="sequence length; a quarter of it with a causal mask")
    parser.add_argument("--features", type=int, default=256, help="number of random features")
    turns, length, features = vars(parser.parse_args()).values()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch, heads, width = (8, 8, 64) if device == "cuda" else (1, 4, 64)
    torch.manual_seed(0)
    min_ratio = float("inf")
    print(
        f"on {device}: batch {batch}, {heads} heads of width {width}, {features} features, "
        f"{length:,} tokens ({length // 4:,} if causal)"
    )
    for causal, attention in ((False, performer_attention), (True, causal_performer_attention)):
        with contextlib.redirect_stdout(io.StringIO()):  # hides the message that the compiled kernel is missing
            baseline = FastAttention(width, features, causal=causal).to(device)
        functions: dict[str, AttentionFunction] = {
            "performer-pytorch": baseline,
            "parnassus": partial(attention, directions=baseline.projection_matrix),
        }
        name, tokens = ("causal", length // 4) if causal else ("full", length)
        inputs = [torch.randn(batch, heads, tokens, width, device=device) for _ in range(3)]
        for backward in (False, True):
            times = measure(functions, inputs, backward=backward, turns=turns)
            ratio = statistics.median(
                a / b for a, b in zip(times["performer-pytorch"], times["parnassus"], strict=True)
            )
            min_ratio = min(min_ratio, ratio)
            milliseconds = {key: 1e3 * statistics.median(each) for key, each in times.items()}
            label = f"{name}, {'forward and backward' if backward else 'forward'}"
            print(
                f"{label}: performer-pytorch {milliseconds['performer-pytorch']:.1f} ms, "
                f"Parnassus {milliseconds['parnassus']:.1f} ms, {ratio:.2f} times as fast (limit: at least {LIMIT})"
            )
    sys.exit(1 if min_ratio < LIMIT else 0)


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
