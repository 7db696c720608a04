"""Attention: scaling of scores by 1/√d, and its cost compared with recurrence (book secs. 10.1, 10.1.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from parnassus.atlas import exponent
from parnassus.attention import (
    SelfAttention,
    attention,
    attention_entropy,
    attention_weights,
    fused_attention,
    length_mask,
)
from parnassus.attention.efficient.operation_counts import (
    count_multiplications,
    count_saved_numbers,
    longest_operation_chain,
    unfused_self_attention,
)
from parnassus.report import FAINT, PALETTE, subplots
from parnassus.report.line_panels import panels
from parnassus.train import Positive, Run, at_least, at_most, between, no_band
from parnassus.train.timing import measure_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1-5", "B10.1-7", "B10.1.1-13", "D2.2.3", "D2.2.5", "Z11.8")
expected = {
    "variance_over_width": between(0.93, 1.07, "variance of qᵀk divided by d, at the largest width"),
    "entropy_unscaled": at_most(0.2, "entropy of the weights in nats at the largest width, without scaling"),
    "entropy_scaled": between(
        2.9, 3.15, "entropy of the weights in nats with 1/√d; uniform weights over 32 keys have 3.47"
    ),
    "jacobian_ratio": at_least(
        3.0, "ratio of the softmax Jacobian norm with scaling to that without, at the largest width"
    ),
    "time_exponent": between(1.4, 3.0, "exponent of time in the sequence length, long sequences"),
    "memory_exponent": between(
        1.75, 2.05, "exponent of tensor elements saved for the backward pass in the length, stored weights"
    ),
    "fused_memory_exponent": between(
        0.9, 1.1, "exponent of tensor elements saved for the backward pass in the length, fused kernel"
    ),
    "attention_chain_exponent": between(
        -0.01, 0.01, "exponent of sequential operations in the sequence length, attention"
    ),
    "recurrent_chain_exponent": between(
        0.95, 1.05, "exponent of sequential operations in the sequence length, recurrent layer"
    ),
    "time_ratio_recurrent": no_band("ratio of the time of a recurrent layer to that of attention, longest sequence"),
    "time_ratio_loop": no_band(
        "ratio of the time of a loop over sequences of different lengths to that of a masked batch"
    ),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"max_width": 64, "max_length": 128, "num_repeats": 1},
    "gpu": {"max_length": 16_384, "num_repeats": 20},
}

Layer: TypeAlias = Callable[[Tensor], Tensor]
KEYS = 32


@dataclass(frozen=True)
class Experiment:
    max_width: Positive[int] = 1_024  # largest width d of queries and keys
    max_length: Positive[int] = 2_048  # length of the longest sequence
    width: Positive[int] = 64  # width of the layers in the time measurements
    num_repeats: Positive[int] = 5  # repetitions of each time measurement, of which the minimum is used

    def __call__(self, run: Run) -> dict[str, float]:
        saturation = self.measure_saturation(run)
        cost = self.measure_cost(run)
        recurrence = self.compare_with_recurrence(run)
        return {**saturation, **cost, **recurrence, "time_ratio_loop": self.compare_with_loop(run)}

    def measure_saturation(self, run: Run) -> dict[str, float]:
        """Variance of the scores, entropy and Jacobian of their softmax, against the width."""
        widths = powers_of_two(4, self.max_width)
        variance, entropy, jacobian = torch.zeros(3, 2, len(widths))
        for column, d in enumerate(widths):
            query, keys = torch.randn(500, 1, d, device=run.device), torch.randn(500, KEYS, d, device=run.device)
            for row, scale in enumerate((1.0, d**-0.5)):
                weights = attention_weights(query, keys, scale=scale)[:, 0]
                variance[row, column] = (query @ keys.mT * scale).var()
                entropy[row, column] = attention_entropy(weights).mean()
                jacobian[row, column] = jacobian_norm(weights).mean()
        run.figure(
            "saturation",
            plot_saturation(widths, variance, entropy, jacobian),
            f"Queries and {KEYS} keys with entries from N(0, 1). Without scaling the variance of the scores is d, the "
            "softmax saturates and its Jacobian vanishes, so that no gradient is left. With 1/√d the width has no "
            "effect.",
        )
        ratio = float(jacobian[1, -1] / jacobian[0, -1])
        run.note(
            "scaling",
            f"At d = {widths[-1]} the unscaled weights have an entropy of {float(entropy[0, -1]):.2f} nats, an "
            f"effective number of {float(entropy[0, -1].exp()):.1f} of {KEYS} keys; with "
            f"scaling this number is {float(entropy[1, -1].exp()):.0f}, and the norm of the Jacobian is {ratio:.1f} "
            "times larger.",
        )
        return {
            "variance_over_width": float(variance[0, -1]) / widths[-1],
            "entropy_unscaled": float(entropy[0, -1]),
            "entropy_scaled": float(entropy[1, -1]),
            "jacobian_ratio": ratio,
        }

    def measure_cost(self, run: Run) -> dict[str, float]:
        """Time and memory against the length, with stored weights and with a fused kernel."""
        lengths = powers_of_two(64, self.max_length)
        functions: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
            "stored weights": attention,
            "fused kernel": fused_attention,
        }
        seconds, saved = torch.zeros(2, 2, len(lengths))
        for column, n in enumerate(lengths):
            inputs = [torch.randn(1, 1, n, self.width, device=run.device).requires_grad_() for _ in range(3)]
            for row, attend in enumerate(functions.values()):
                seconds[row, column] = self.seconds(partial(attend, *inputs), run.device)
                saved[row, column] = count_saved_numbers(partial(attend, *inputs))
        run.figure(
            "cost",
            plot_cost(lengths, dict(zip(functions, seconds, strict=True)), dict(zip(functions, saved, strict=True))),
            "Left: time of attention. Right: tensor elements saved for the backward pass. Both implementations need "
            "O(n²) multiplications; a fused kernel reduces the memory to O(n), not the time.",
        )
        middle = len(lengths) // 2
        return {
            "time_exponent": growth(lengths[middle:], seconds[0, middle:]),
            "memory_exponent": growth(lengths[middle:], saved[0, middle:]),
            "fused_memory_exponent": growth(lengths, saved[1]),
        }

    def compare_with_recurrence(self, run: Run) -> dict[str, float]:
        """Sequential operations, total work and time of attention and of a recurrent layer."""
        layer = SelfAttention(self.width, 1).to(run.device)
        cell, recurrent = nn.RNNCell(self.width, self.width), nn.RNN(self.width, self.width, batch_first=True)
        cell, recurrent = cell.to(run.device), recurrent.to(run.device)
        layers: list[tuple[Layer, Layer]] = [
            (partial(unfused_self_attention, layer), layer),
            (partial(run_rnn_cell, cell), recurrent),
        ]
        lengths = powers_of_two(16, self.max_length)
        chains, work, seconds = torch.zeros(3, 2, len(lengths))
        for column, n in enumerate(lengths):
            x = torch.randn(1, n, self.width, device=run.device)
            for row, (unfused, fused) in enumerate(layers):  # operations in fused kernels cannot be counted
                chains[row, column] = longest_operation_chain(unfused(x))
                work[row, column] = count_multiplications(partial(unfused, x))
                seconds[row, column] = self.seconds(partial(fused, x), run.device)
        run.figure(
            "attention and recurrence",
            plot_comparison(lengths, chains, work, seconds, self.width),
            "Attention and a recurrent layer of the same width. The longest chain of sequential operations in "
            "attention does not depend on the sequence length; its total work grows faster than in recurrence. The "
            "number of sequential operations is constant, not the total number as stated in the book.",
        )
        ratio = float(seconds[1, -1] / seconds[0, -1])
        run.table(
            "operations",
            [
                {"length": n, "chain, attention": float(chains[0, i]), "chain, recurrent": float(chains[1, i]),
                 "products, attention": float(work[0, i]), "products, recurrent": float(work[1, i])}
                for i, n in enumerate(lengths)
            ],
            "Longest chain of sequential operations, and total number of multiplications.",
        )  # fmt: skip
        return {
            "attention_chain_exponent": growth(lengths, chains[0]),
            "recurrent_chain_exponent": growth(lengths, chains[1]),
            "time_ratio_recurrent": ratio,
        }

    def compare_with_loop(self, run: Run) -> float:
        """The ratio of the time of a loop over sequences of different lengths to that of one masked batch."""
        n = max(16, self.max_length // 16)
        lengths = torch.randint(1, n + 1, (64,))
        x = torch.randn(64, n, self.width, device=run.device)
        mask = length_mask(lengths.to(run.device), n)

        def loop() -> list[Tensor]:
            return [
                fused_attention(row[:length], row[:length], row[:length])
                for row, length in zip(x, lengths.tolist(), strict=True)
            ]

        return self.seconds(loop, run.device) / self.seconds(lambda: fused_attention(x, x, x, mask), run.device)

    @torch.no_grad()
    def seconds(self, action: Callable[[], object], device: torch.device) -> float:
        return measure_seconds(action, device, repeats=1 + self.num_repeats)  # the first call is slower


def powers_of_two(first: int, last: int) -> list[int]:
    """The values first, 2 first, 4 first, … up to last."""
    return [first * 2**power for power in range((last // first).bit_length())]


def jacobian_norm(weights: Tensor) -> Tensor:
    """‖diag(p) − p pᵀ‖ of each row, the Frobenius norm of the softmax Jacobian."""
    square = weights.square()
    return (square.sum(-1) - 2 * (weights * square).sum(-1) + square.sum(-1).square()).clamp(min=0).sqrt()


def growth(lengths: list[int], values: Tensor) -> float:
    """The exponent of values against lengths; 0 for a single length."""
    return exponent(lengths, values) if len(lengths) > 1 else 0.0


def run_rnn_cell(cell: nn.RNNCell, x: Tensor) -> Tensor:
    """The last state of h_t = tanh(W x_t + U h_{t−1} + b), computed step by step."""
    state = torch.zeros(len(x), cell.hidden_size, device=x.device)
    for step in x.unbind(1):
        state = cell(step, state)
    return state


def plot_saturation(widths: list[int], variance: Tensor, entropy: Tensor, jacobian: Tensor) -> "Figure":
    """Variance, entropy and Jacobian norm against the width, with and without scaling."""
    charts = {
        "variance of the scores": variance,
        "entropy of the weights (nats)": entropy,
        "norm of the Jacobian": jacobian,
    }
    panel_lines = {title: dict(zip(("qᵀk", "qᵀk / √d"), lines, strict=True)) for title, lines in charts.items()}
    figure, axes = panels(panel_lines, widths, x_label="width d")
    axes[0, 0].set_yscale("log")
    axes[0, 1].axhline(np.log(KEYS), color=FAINT, linestyle="--", linewidth=1)
    axes[0, 1].annotate(
        "uniform weights", (widths[0], np.log(KEYS)), xytext=(0, -11), textcoords="offset points", fontsize=8
    )
    axes[0, 1].set_ylim(0, np.log(KEYS) * 1.06)
    axes[0, 2].set_ylim(bottom=0)
    return figure


def plot_cost(lengths: list[int], seconds: dict[str, Tensor], saved: dict[str, Tensor]) -> "Figure":
    """Time and saved tensor elements against the length, with a quadratic reference."""
    figure, axes = subplots(1, 2, size=(9.6, 3.6))
    for ax, lines, label in zip(axes[0], (seconds, saved), ("time (s)", "saved tensor elements"), strict=True):
        for (name, line), colour in zip(lines.items(), PALETTE, strict=False):
            ax.loglog(lengths, line, color=colour, marker="o", markersize=3.5, label=name)
        reference = np.array(lengths[len(lengths) // 2 :], dtype=float)
        level = float(max(line[-1] for line in lines.values())) * 2
        ax.loglog(
            reference,
            level * (reference / reference[-1]) ** 2,
            color=FAINT,
            linestyle="--",
            linewidth=1,
            label="slope 2",
        )
        ax.set_xscale("log", base=2)
        ax.set(xlabel="length n", ylabel=label)
    axes[0, 0].legend()
    return figure


def plot_comparison(lengths: list[int], chains: Tensor, work: Tensor, seconds: Tensor, width: int) -> "Figure":
    """Sequential operations, multiplications and time against the length."""
    charts = {"sequential operations": chains, "multiplications": work, "time (s)": seconds}
    panel_lines = {title: dict(zip(("attention", "recurrence"), lines, strict=True)) for title, lines in charts.items()}
    figure, axes = panels(panel_lines, lengths, x_label="length T", log_y=True)
    axes[0, 1].axvline(width, color=FAINT, linestyle="--", linewidth=1)
    axes[0, 1].annotate(
        "T = d", (width, 1), xycoords=("data", "axes fraction"), xytext=(4, -10), textcoords="offset points"
    )
    return figure
