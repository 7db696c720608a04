"""Why attention is scaled by 1/√d, and what it costs beside recurrence (book secs. 10.1, 10.1.1)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.utils.flop_counter import FlopCounterMode

from parnassus.atlas import exponent
from parnassus.attention import SelfAttention, attend, attention, attention_entropy, attention_weights, length_mask
from parnassus.attention.self_attention import join_heads
from parnassus.report import FAINT, PALETTE, subplots
from parnassus.report.panels import panels
from parnassus.train import Run, at_least, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1-5", "B10.1-7", "B10.1.1-13", "D2.2.3", "D2.2.5", "Z11.8")
expected = {
    "variance_over_width": between(0.93, 1.07, "variance of qᵀk over d, at the largest width"),
    "entropy_unscaled": at_most(0.2, "entropy of the weights in nats at the largest width, without the scale"),
    "entropy_scaled": between(2.9, 3.15, "the same with 1/√d; looking at all 32 keys alike would be 3.47"),
    "slope_lost": at_least(3.0, "how many times steeper the scaled softmax is at the largest width"),
    "time_exponent": between(1.4, 3.0, "r of time ∝ lengthʳ, long sequences"),
    "memory_exponent": between(1.75, 2.05, "the same of the numbers kept for the way back, weights among them"),
    "fused_memory_exponent": between(0.9, 1.1, "the same with a fused kernel that keeps no weights"),
    "attention_chain_exponent": between(-0.01, 0.01, "the same of the longest chain of operations, attention"),
    "recurrent_chain_exponent": between(0.95, 1.05, "and recurrence"),
    "recurrent_over_attention": reported("time of a recurrent layer over that of attention, at the longest sequence"),
    "loop_over_mask": reported("time of a loop over sequences of unequal length over that of one masked batch"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"widest": 64, "longest": 128, "repeats": 1},
    "gpu": {"longest": 16_384, "repeats": 20},
}

Layer: TypeAlias = Callable[[Tensor], Tensor]
KEYS = 32


@dataclass(frozen=True)
class Experiment:
    widest: int = 1_024  # largest width d of queries and keys
    longest: int = 2_048  # longest sequence
    width: int = 64  # width of the layers that are timed
    repeats: int = 5  # measurements of each time, of which the shortest counts

    def __call__(self, run: Run) -> dict[str, float]:
        saturation = self.saturate(run)
        cost = self.measure(run)
        chain = self.race(run)
        return {**saturation, **cost, **chain, "loop_over_mask": self.masked_or_looped(run)}

    def saturate(self, run: Run) -> dict[str, float]:
        """Variance of the scores, entropy and slope of their softmax, against the width."""
        widths = doubling(4, self.widest)
        spread, entropy, slope = torch.zeros(3, 2, len(widths))
        for column, d in enumerate(widths):
            query, keys = torch.randn(500, 1, d, device=run.device), torch.randn(500, KEYS, d, device=run.device)
            for row, scale in enumerate((1.0, d**-0.5)):
                weights = attention_weights(query, keys, scale=scale)[:, 0]
                spread[row, column] = (query @ keys.mT * scale).var()
                entropy[row, column] = attention_entropy(weights).mean()
                slope[row, column] = jacobian_size(weights).mean()
        run.figure(
            "saturation",
            saturation_figure(widths, spread, entropy, slope),
            f"Queries and {KEYS} keys with entries from N(0, 1). Without the scale their scores have variance d, the "
            "softmax settles on one key and its Jacobian fades: nothing can be learned there. With 1/√d the width does "
            "not matter.",
        )
        lost = float(slope[1, -1] / slope[0, -1])
        run.note(
            "the scale",
            f"At d = {widths[-1]} the unscaled weights have an entropy of {float(entropy[0, -1]):.2f} nats, as if they "
            f"chose among {float(entropy[0, -1].exp()):.1f} keys; scaled, they look at "
            f"{float(entropy[1, -1].exp()):.0f} of {KEYS}, and the softmax is {lost:.1f} times steeper.",
        )
        return {
            "variance_over_width": float(spread[0, -1]) / widths[-1],
            "entropy_unscaled": float(entropy[0, -1]),
            "entropy_scaled": float(entropy[1, -1]),
            "slope_lost": lost,
        }

    def measure(self, run: Run) -> dict[str, float]:
        """Time and memory against the length, with the weights kept and with a fused kernel."""
        lengths = doubling(64, self.longest)
        ways: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
            "weights kept": attention,
            "fused kernel": attend,
        }
        seconds, numbers = torch.zeros(2, 2, len(lengths))
        for column, n in enumerate(lengths):
            parts = [torch.randn(1, 1, n, self.width, device=run.device).requires_grad_() for _ in range(3)]
            for row, way in enumerate(ways.values()):
                seconds[row, column] = quickest(partial(way, *parts), self.repeats, run.device)
                numbers[row, column] = kept_for_the_way_back(partial(way, *parts))
        run.figure(
            "cost",
            cost_figure(lengths, dict(zip(ways, seconds, strict=True)), dict(zip(ways, numbers, strict=True))),
            "Left: time of attention. Right: how many numbers are kept for the way back. Both ways multiply n² times; "
            "the square of memory can be avoided, the square of time cannot.",
        )
        long = len(lengths) // 2
        return {
            "time_exponent": growth(lengths[long:], seconds[0, long:]),
            "memory_exponent": growth(lengths[long:], numbers[0, long:]),
            "fused_memory_exponent": growth(lengths, numbers[1]),
        }

    def race(self, run: Run) -> dict[str, float]:
        """Attention against recurrence: what must wait for what, total work, and time."""
        layer = SelfAttention(self.width, 1).to(run.device)
        cell, recurrent = nn.RNNCell(self.width, self.width), nn.RNN(self.width, self.width, batch_first=True)
        cell, recurrent = cell.to(run.device), recurrent.to(run.device)
        ways: list[tuple[Layer, Layer]] = [(partial(spelled_out, layer), layer), (partial(walk, cell), recurrent)]
        lengths = doubling(16, self.longest)
        chains, work, seconds = torch.zeros(3, 2, len(lengths))
        for column, n in enumerate(lengths):
            x = torch.randn(1, n, self.width, device=run.device)
            for row, (counted, timed) in enumerate(ways):  # fused kernels hide what they do from who counts
                chains[row, column] = longest_chain(counted(x))
                work[row, column] = multiplications(partial(counted, x))
                seconds[row, column] = quickest(partial(timed, x), self.repeats, run.device)
        run.figure(
            "race",
            race_figure(lengths, chains, work, seconds, self.width),
            "Attention against a recurrent layer of the same width. The longest chain of operations that wait for each "
            "other does not grow with the sequence in attention; the total work does, faster than in recurrence. It is "
            "the number of sequential operations that is constant, not their number, as the book's sentence has it.",
        )
        ratio = float(seconds[1, -1] / seconds[0, -1])
        run.table(
            "sequential and total",
            [
                {"length": n, "chain, attention": float(chains[0, i]), "chain, recurrent": float(chains[1, i]),
                 "products, attention": float(work[0, i]), "products, recurrent": float(work[1, i])}
                for i, n in enumerate(lengths)
            ],
            "Longest chain of operations, and multiplications in all.",
        )  # fmt: skip
        return {
            "attention_chain_exponent": growth(lengths, chains[0]),
            "recurrent_chain_exponent": growth(lengths, chains[1]),
            "recurrent_over_attention": ratio,
        }

    def masked_or_looped(self, run: Run) -> float:
        """One masked batch of unequal lengths against a loop over its sequences."""
        n = max(16, self.longest // 16)
        lengths = torch.randint(1, n + 1, (64,))
        x = torch.randn(64, n, self.width, device=run.device)
        mask = length_mask(lengths.to(run.device), n)

        def looped() -> list[Tensor]:
            return [
                attend(row[:length], row[:length], row[:length])
                for row, length in zip(x, lengths.tolist(), strict=True)
            ]

        together = quickest(lambda: attend(x, x, x, mask), self.repeats, run.device)
        return quickest(looped, self.repeats, run.device) / together


def doubling(first: int, last: int) -> list[int]:
    """The numbers first, 2 first, 4 first, … up to last."""
    return [first * 2**power for power in range((last // first).bit_length())]


def jacobian_size(weights: Tensor) -> Tensor:
    """‖diag(p) − p pᵀ‖ of each row: how much the softmax still answers to its scores."""
    square = weights.square()
    return (square.sum(-1) - 2 * (weights * square).sum(-1) + square.sum(-1).square()).clamp(min=0).sqrt()


def growth(lengths: list[int], values: Tensor) -> float:
    """The exponent of values against lengths; 0 where a single length leaves none."""
    return exponent(lengths, values) if len(lengths) > 1 else 0.0


def quickest(action: Callable[[], object], repeats: int, device: torch.device) -> float:
    """Seconds of the quickest of several calls, after one that does not count."""

    def once() -> float:
        wait(device)
        start = time.perf_counter()
        action()
        wait(device)
        return time.perf_counter() - start

    with torch.no_grad():
        once()
        return min(once() for _ in range(repeats))


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def kept_for_the_way_back(action: Callable[[], object]) -> float:
    """How many numbers autograd keeps."""
    sizes: dict[int, int] = {}

    def count(x: Tensor) -> Tensor:
        sizes[x.data_ptr()] = x.numel()
        return x

    with torch.autograd.graph.saved_tensors_hooks(count, lambda x: x):
        action()
    return float(sum(sizes.values()))


def spelled_out(layer: SelfAttention, x: Tensor) -> Tensor:
    """What the layer does, operation by operation."""
    query, key, value = layer.project(x)
    answer: Tensor = layer.answer(join_heads(attention(query, key, value).output))
    return answer


def walk(cell: nn.RNNCell, x: Tensor) -> Tensor:
    """h_t = tanh(W x_t + U h_{t−1} + b), one step after the other; the last state."""
    state = torch.zeros(len(x), cell.hidden_size, device=x.device)
    for step in x.unbind(1):
        state = cell(step, state)
    return state


def longest_chain(output: Tensor) -> int:
    """The most operations that wait for each other on the way to `output`, counted in autograd's graph."""
    depth: dict[Node | None, int] = {None: 0}
    waiting = [output.grad_fn]
    while waiting:  # a node is settled after all that it waits for
        node = waiting[-1]
        before = [] if node is None else [parent for parent, _ in node.next_functions]
        unknown = [parent for parent in before if parent not in depth]
        waiting.extend(unknown)
        if not unknown:
            depth[waiting.pop()] = 1 + max((depth[parent] for parent in before), default=0)
    return depth[output.grad_fn]


def multiplications(action: Callable[[], object]) -> float:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        action()
    return int(counter.get_total_flops()) / 2  # it counts a multiplication and an addition


def saturation_figure(widths: list[int], spread: Tensor, entropy: Tensor, slope: Tensor) -> "Figure":
    charts = {"variance of the scores": spread, "entropy of the weights (nats)": entropy, "size of the Jacobian": slope}
    named = {title: dict(zip(("qᵀk", "qᵀk / √d"), lines, strict=True)) for title, lines in charts.items()}
    figure, axes = panels(named, widths, x_label="width d")
    axes[0, 0].set_yscale("log")
    axes[0, 1].axhline(np.log(KEYS), color=FAINT, linestyle="--", linewidth=1)
    axes[0, 1].annotate(
        "all keys alike", (widths[0], np.log(KEYS)), xytext=(0, -11), textcoords="offset points", fontsize=8
    )
    axes[0, 1].set_ylim(0, np.log(KEYS) * 1.06)
    axes[0, 2].set_ylim(bottom=0)
    return figure


def cost_figure(lengths: list[int], seconds: dict[str, Tensor], numbers: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, 2, size=(9.6, 3.6))
    for ax, lines, label in zip(axes[0], (seconds, numbers), ("seconds", "numbers kept"), strict=True):
        for (name, line), colour in zip(lines.items(), PALETTE, strict=False):
            ax.loglog(lengths, line, color=colour, marker="o", markersize=3.5, label=name)
        guide = np.array(lengths[len(lengths) // 2 :], dtype=float)
        level = float(max(line[-1] for line in lines.values())) * 2
        ax.loglog(guide, level * (guide / guide[-1]) ** 2, color=FAINT, linestyle="--", linewidth=1, label="slope 2")
        ax.set_xscale("log", base=2)
        ax.set(xlabel="length n", ylabel=label)
    axes[0, 0].legend()
    return figure


def race_figure(lengths: list[int], chains: Tensor, work: Tensor, seconds: Tensor, width: int) -> "Figure":
    charts = {"longest chain of operations": chains, "multiplications": work, "seconds": seconds}
    named = {title: dict(zip(("attention", "recurrence"), lines, strict=True)) for title, lines in charts.items()}
    figure, axes = panels(named, lengths, x_label="length T", log_y=True)
    axes[0, 1].axvline(width, color=FAINT, linestyle="--", linewidth=1)
    axes[0, 1].annotate(
        "T = d", (width, 1), xycoords=("data", "axes fraction"), xytext=(4, -10), textcoords="offset points"
    )
    return figure
