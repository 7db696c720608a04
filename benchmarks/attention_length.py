"""Linear attention beside torch's fused exact attention: faster beyond 4,096 tokens, and its memory grows like n.

Both take turns in one process, so that a noisy machine slows both; of each the quickest turn counts. "trained" is a
forward and a backward pass. Memory is the most that a pass needs at once beyond its input, forward only. On a machine
with a GPU both are timed there too, in bfloat16 and up to 65,536 tokens.
Run it with: python benchmarks/attention_length.py
"""

import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from parnassus.attention import causal_linear_attention, fused_attention, growth_exponent, linear_attention, peak_memory

TURNS, HEADS, WIDTH = 3, 4, 64
BATCH = {"cpu": 1, "cuda": 16}  # a GPU is not busy with one sequence, and would time its launches
BEYOND = 4_096  # tokens from which linear attention must be the faster
MEMORY = 1.1  # the largest exponent r of memory ∝ nʳ
Way = Callable[[Tensor, Tensor, Tensor], Tensor]
PAIRS: dict[str, tuple[Way, Way]] = {
    "all see all": (linear_attention, fused_attention),
    "causal": (causal_linear_attention, partial(fused_attention, causal=True)),
}


def tokens(length: int, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    shape = (BATCH[device.type], HEADS, length, WIDTH)
    made = [torch.randn(shape, device=device, dtype=dtype, requires_grad=True) for _ in range(3)]
    return made[0], made[1], made[2]


def forward(way: Way, inputs: tuple[Tensor, Tensor, Tensor]) -> None:
    with torch.no_grad():
        way(*inputs)


def trained(way: Way, inputs: tuple[Tensor, Tensor, Tensor]) -> None:
    torch.autograd.grad(way(*inputs).sum(), inputs)


def race(sides: list[Callable[[], None]], device: torch.device) -> list[float]:
    """Seconds of the quickest turn of each, after one that does not count."""
    best = [float("inf")] * len(sides)
    for turn in range(TURNS + 1):
        for index, side in enumerate(sides):
            began = time.perf_counter()
            side()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if turn:
                best[index] = min(best[index], time.perf_counter() - began)
    return best


def compare(device: torch.device, dtype: torch.dtype, lengths: tuple[int, ...]) -> bool:
    """Print a line for each length; whether all bars hold."""
    good = True
    for name, ways in PAIRS.items():
        heads = f"{BATCH[device.type]} × {HEADS} heads of {WIDTH}"
        print(f"{name}, {heads} on {device.type} in {str(dtype).removeprefix('torch.')}")
        print(f"{'tokens':>9} {'linear ms':>10} {'fused ms':>9} {'ratio':>6} {'trained':>8} {'linear MiB':>11}")
        room = []
        for length in lengths:
            inputs = tokens(length, device, dtype)
            linear, fused = race([partial(forward, way, inputs) for way in ways], device)
            linear_trained, fused_trained = race([partial(trained, way, inputs) for way in ways], device)
            room.append(float(peak_memory(partial(forward, ways[0], inputs), device)))
            print(
                f"{length:>9,} {1e3 * linear:>10.2f} {1e3 * fused:>9.2f} {fused / linear:>6.2f} "
                f"{fused_trained / linear_trained:>8.2f} {room[-1] / 2**20:>11.1f}"
            )
            if length > BEYOND:
                good &= fused > linear and fused_trained > linear_trained
        exponent = growth_exponent([lengths[0], lengths[-1]], [room[0], room[-1]])
        print(f"memory of linear attention ∝ n^{exponent:.3f}, at most {MEMORY}\n")
        good &= exponent <= MEMORY
    return good


def main() -> None:
    """Exit code 1 when linear attention is not faster beyond 4,096 tokens or its memory is not linear."""
    good = compare(torch.device("cpu"), torch.float32, (1_024, 2_048, 4_096, 8_192))
    if torch.cuda.is_available():
        lengths = (1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536)
        good &= compare(torch.device("cuda"), torch.bfloat16, lengths)
    print(f"linear attention is faster beyond {BEYOND:,} tokens, in linear memory: {'yes' if good else 'NO'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
