"""Benchmark of linear attention against the fused exact attention of PyTorch, in time and memory.

Both functions are timed alternately in one process for growing sequence lengths, so that background load affects both;
the fastest run of each is reported. The column "fwd+bwd" is the time ratio of a forward and backward pass. Memory is
the peak allocation of a forward pass in addition to its inputs. If a GPU is available, both are also timed there, in
bfloat16 and up to 65,536 tokens.
Limits: linear attention is faster at every length above 4,096 tokens, with and without backward, and its memory grows
at most like n^1.1.
Run: python benchmarks/attention_length.py
"""

import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from parnassus.attention import causal_linear_attention, fused_attention, growth_exponent, linear_attention, peak_memory

TURNS, HEADS, WIDTH = 3, 4, 64
BATCH = {"cpu": 1, "cuda": 16}  # a single sequence does not saturate a GPU: kernel launches would dominate
CROSSOVER = 4_096  # sequence length above which linear attention must be faster
MAX_EXPONENT = 1.1  # upper limit of the exponent r in memory ∝ nʳ
AttentionFunction = Callable[[Tensor, Tensor, Tensor], Tensor]
PAIRS: dict[str, tuple[AttentionFunction, AttentionFunction]] = {
    "bidirectional": (linear_attention, fused_attention),
    "causal": (causal_linear_attention, partial(fused_attention, causal=True)),
}


def tokens(length: int, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    shape = (BATCH[device.type], HEADS, length, WIDTH)
    tensors = [torch.randn(shape, device=device, dtype=dtype, requires_grad=True) for _ in range(3)]
    return tensors[0], tensors[1], tensors[2]


def forward(attention: AttentionFunction, inputs: tuple[Tensor, Tensor, Tensor]) -> None:
    with torch.no_grad():
        attention(*inputs)


def forward_backward(attention: AttentionFunction, inputs: tuple[Tensor, Tensor, Tensor]) -> None:
    torch.autograd.grad(attention(*inputs).sum(), inputs)


def best_times(calls: list[Callable[[], None]], device: torch.device) -> list[float]:
    """Return the seconds of the fastest run of each call, after one warm-up run."""
    best = [float("inf")] * len(calls)
    for turn in range(TURNS + 1):
        for index, call in enumerate(calls):
            start_time = time.perf_counter()
            call()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if turn:
                best[index] = min(best[index], time.perf_counter() - start_time)
    return best


def compare(device: torch.device, dtype: torch.dtype, lengths: tuple[int, ...]) -> bool:
    """Print one line per length and return whether all limits are met."""
    passed = True
    for name, functions in PAIRS.items():
        shape = f"batch {BATCH[device.type]}, {HEADS} heads of width {WIDTH}"
        print(f"{name}, {shape} on {device.type} in {str(dtype).removeprefix('torch.')}")
        print(f"{'tokens':>9} {'linear ms':>10} {'fused ms':>9} {'ratio':>6} {'fwd+bwd':>8} {'linear MiB':>11}")
        peak_bytes = []
        for length in lengths:
            inputs = tokens(length, device, dtype)
            linear, fused = best_times([partial(forward, attention, inputs) for attention in functions], device)
            linear_with_backward, fused_with_backward = best_times(
                [partial(forward_backward, attention, inputs) for attention in functions], device
            )
            peak_bytes.append(float(peak_memory(partial(forward, functions[0], inputs), device)))
            print(
                f"{length:>9,} {1e3 * linear:>10.2f} {1e3 * fused:>9.2f} {fused / linear:>6.2f} "
                f"{fused_with_backward / linear_with_backward:>8.2f} {peak_bytes[-1] / 2**20:>11.1f}"
            )
            if length > CROSSOVER:
                passed &= fused > linear and fused_with_backward > linear_with_backward
        exponent = growth_exponent([lengths[0], lengths[-1]], [peak_bytes[0], peak_bytes[-1]])
        print(f"memory of linear attention ∝ n^{exponent:.3f} (limit: at most n^{MAX_EXPONENT})\n")
        passed &= exponent <= MAX_EXPONENT
    return passed


def main() -> None:
    """Compare on every available device; exit with 1 if linear attention misses a limit in time or memory."""
    passed = compare(torch.device("cpu"), torch.float32, (1_024, 2_048, 4_096, 8_192))
    if torch.cuda.is_available():
        lengths = (1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536)
        passed &= compare(torch.device("cuda"), torch.bfloat16, lengths)
    print(f"linear attention is faster above {CROSSOVER:,} tokens, with linear memory: {'yes' if passed else 'NO'}")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
