"""Performer attention beside performer-pytorch at equal features: at least twice as fast, forward and with backward.

Both sides get the same queries, keys, values and directions, without and with a causal mask, and take turns in one
process. performer-pytorch's compiled kernel for the causal case is a package that does not build any more; what it
falls back to is what its users get. Its memory then grows with features × width a token, hence fewer tokens there.
Run it with: python benchmarks/performer.py (the bench environment has performer-pytorch)
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

Side: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
LIMIT = 2.0


def seconds(attend: Side, inputs: list[Tensor], *, backward: bool) -> float:
    """One call, with the gradients of all three inputs when asked for."""
    asked = [x.detach().clone().requires_grad_(backward) for x in inputs]
    _wait()
    began = time.perf_counter()
    with torch.set_grad_enabled(backward):
        out = attend(*asked)
        if backward:
            out.sum().backward()
    _wait()
    return time.perf_counter() - began


def race(sides: dict[str, Side], inputs: list[Tensor], *, backward: bool, turns: int) -> dict[str, list[float]]:
    """Times of both sides in turn, the first round left out."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(turns + 1):
        for name in sorted(sides, reverse=bool(turn % 2)):
            taken = seconds(sides[name], inputs, backward=backward)
            if turn:
                times[name].append(taken)
    return times


def main() -> None:
    """Print milliseconds of both and the median of their ratios; exit code 1 when one is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9, help="calls of each side that are timed")
    parser.add_argument("--length", type=int, default=8_192, help="tokens; with a causal mask a quarter of them")
    parser.add_argument("--features", type=int, default=256, help="random features")
    turns, length, features = vars(parser.parse_args()).values()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch, heads, width = (8, 8, 64) if device == "cuda" else (1, 4, 64)
    torch.manual_seed(0)
    slowest = float("inf")
    print(
        f"on {device}: {batch} × {heads} heads of {width}, {features} features, {length:,} tokens, a quarter if causal"
    )
    for causal, ours in ((False, performer_attention), (True, causal_performer_attention)):
        with contextlib.redirect_stdout(io.StringIO()):  # it tells that its compiled kernel is missing
            theirs = FastAttention(width, features, causal=causal).to(device)
        sides: dict[str, Side] = {"theirs": theirs, "ours": partial(ours, directions=theirs.projection_matrix)}
        name, tokens = ("causal", length // 4) if causal else ("full", length)
        inputs = [torch.randn(batch, heads, tokens, width, device=device) for _ in range(3)]
        for backward in (False, True):
            times = race(sides, inputs, backward=backward, turns=turns)
            ratio = statistics.median(a / b for a, b in zip(times["theirs"], times["ours"], strict=True))
            slowest = min(slowest, ratio)
            taken = {side: 1e3 * statistics.median(own) for side, own in times.items()}
            what = f"{name}, {'forward and backward' if backward else 'forward'}"
            print(
                f"{what}: performer-pytorch {taken['theirs']:.1f} ms, "
                f"ours {taken['ours']:.1f} ms, {ratio:.2f} times as fast (at least {LIMIT})"
            )
    sys.exit(1 if slowest < LIMIT else 0)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
