"""Time, memory and error of exact attention and seven efficient variants against the length (Diehl sec. 4)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import avg_pool1d

from parnassus.attention import (
    attention,
    band_mask,
    block_mask,
    causal_linear_attention,
    cosformer_attention,
    count_pairs,
    dilated_mask,
    fused_attention,
    global_mask,
    growth_exponent,
    linear_attention,
    linformer_attention,
    local_attention,
    nystrom_attention,
    orthogonal_directions,
    peak_memory,
    performer_attention,
    random_mask,
    strided_mask,
)
from parnassus.report import PALETTE, subplots
from parnassus.report.style import SEQUENTIAL, remove_frame
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, between, no_band
from parnassus.train.timing import measure_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D4.0.1", "D4.1.1", "D4.1.2", "D4.1.6", "C-20", "C-21", "C-22")
expected = {
    "memory_exponent_exact": between(
        1.9, 2.1, "exponent of memory in the sequence length, shortest to longest sequence, exact attention"
    ),
    "memory_exponent_linear": between(
        0.9, 1.1, "exponent of memory in the sequence length, shortest to longest sequence, linear attention"
    ),
    "time_exponent_fused": at_least(
        1.4, "exponent of time in the sequence length over the last two doublings, fused exact attention"
    ),
    "time_exponent_linear": at_most(
        1.7, "exponent of time in the sequence length over the last two doublings, linear attention"
    ),
    "speedup_linear": at_least(1.0, "speed-up of linear over fused exact attention at the longest sequence"),
    "error_performer": at_most(0.6, "relative RMS error against softmax attention at the longest sequence, Performer"),
    "error_nystrom": at_most(
        0.4, "relative RMS error against softmax attention at the longest sequence, Nyström attention"
    ),
    "error_linformer": at_most(
        0.4, "relative RMS error against softmax attention at the longest sequence, Linformer with means of blocks"
    ),
    "error_local": no_band("relative RMS error against softmax attention at the longest sequence, local attention"),
    "error_linear": no_band(
        "relative RMS error against softmax attention, linear attention with elu + 1, not an approximation"
    ),
    "error_cosformer": no_band("relative RMS error against softmax attention, cosFormer, not an approximation"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"lengths": (128, 256), "min_seconds": 0.0, "num_features": 16},
    "gpu": {
        "lengths": (1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536), "num_heads": 4, "max_memory": 100.0,
        "num_features": 256,
    },
}  # fmt: skip

Attention: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
PATTERN_LENGTH = 48  # positions in the figure of sparse patterns
NAMES = (
    "exact", "fused exact", "linear", "linear, causal", "Performer", "cosFormer", "Linformer", "Nyström", "local",
)  # fmt: skip
COLOURS = dict(zip(NAMES, PALETTE, strict=False))
EXACT, CAUSAL = NAMES[:2], NAMES[3]
ERROR_QUERIES = 1_024  # queries on which errors are measured


class AttentionCost(NamedTuple):
    seconds: float
    bytes: int
    error: float


@dataclass(frozen=True)
class Experiment:
    lengths: tuple[Positive[int], ...] = (256, 512, 1_024, 2_048, 4_096)  # sequence lengths in tokens
    width: Positive[int] = 64  # width of queries, keys and values
    num_heads: Positive[int] = 2  # attention heads
    num_features: Positive[int] = 128  # features, landmarks, projected rows or neighbours of the approximations
    correlation_length: Positive[int] = 16  # number of tokens over which neighbours are correlated
    self_score: NonNegative[float] = 2.0  # score of a token with itself; with distant tokens the mean is 0
    min_seconds: NonNegative[float] = 0.2  # minimum time of each measurement
    max_memory: NonNegative[float] = 1.0  # GiB; exact attention is skipped beyond it

    @torch.no_grad()
    def __call__(self, run: Run) -> dict[str, float]:
        measured: dict[str, dict[int, AttentionCost]] = {}
        for length in self.lengths:
            tokens = self.tokens(length, self.self_score, run.device)
            exact = exact_outputs(tokens)
            for name, attend in self.variants(length, run.device).items():
                if name == "exact" and self.exact_gibibytes(length) > self.max_memory:
                    continue
                error = relative_error(attend(*tokens), exact[name == CAUSAL])  # also warms up
                compute = partial(attend, *tokens)
                clock = time.process_time if run.device.type == "cpu" else time.perf_counter
                seconds = measure_seconds(compute, run.device, repeats=3, min_seconds=self.min_seconds, clock=clock)
                cost = AttentionCost(seconds, peak_memory(compute, run.device), error)
                measured.setdefault(name, {})[length] = cost
        self.plot_results(run, measured)
        self.report_errors(run)

        last, before = self.lengths[-1], self.lengths[-3:][0]
        errors = {name: costs[max(costs)].error for name, costs in measured.items()}

        def memory_exponent(name: str) -> float:
            sizes = [min(measured[name]), max(measured[name])]
            return growth_exponent(sizes, [float(measured[name][size].bytes) for size in sizes])

        def time_exponent(name: str) -> float:
            return growth_exponent([before, last], [measured[name][size].seconds for size in (before, last)])

        return {
            "memory_exponent_exact": memory_exponent("exact"),
            "memory_exponent_linear": memory_exponent("linear"),
            "time_exponent_fused": time_exponent("fused exact"),
            "time_exponent_linear": time_exponent("linear"),
            "speedup_linear": measured["fused exact"][last].seconds / measured["linear"][last].seconds,
            "error_performer": errors["Performer"],
            "error_nystrom": errors["Nyström"],
            "error_linformer": errors["Linformer"],
            "error_local": errors["local"],
            "error_linear": errors["linear"],
            "error_cosformer": errors["cosFormer"],
        }

    def tokens(self, length: int, self_score: float, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys from one smooth random process, values from another."""
        noise = torch.randn(2 * self.num_heads, self.width, length + self.correlation_length - 1, device=device)
        smooth = avg_pool1d(noise, self.correlation_length, 1) * self.correlation_length**0.5  # restores variance 1
        key, value = smooth.mT.contiguous().view(2, 1, self.num_heads, length, self.width)
        key = key * (self_score / self.width**0.5) ** 0.5
        return key, key, value

    def variants(self, length: int, device: torch.device) -> dict[str, Attention]:
        """All attention functions by name."""
        budget = min(self.num_features, length)
        directions = orthogonal_directions(budget, self.width).to(device)
        means = torch.eye(budget, device=device).repeat_interleave(-(-length // budget), 1)[:, :length]
        means = means / means.sum(1, keepdim=True).clamp(min=1.0)
        return {
            "exact": lambda q, k, v: attention(q, k, v).output,
            "fused exact": fused_attention,
            "linear": linear_attention,
            "linear, causal": causal_linear_attention,
            "Performer": partial(performer_attention, directions=directions),
            "cosFormer": cosformer_attention,
            "Linformer": partial(linformer_attention, key_projection=means, value_projection=means),
            "Nyström": partial(nystrom_attention, num_landmarks=budget),
            "local": partial(local_attention, reach=budget),
        }

    def exact_gibibytes(self, length: int) -> float:
        """The memory of scores and weights in exact attention."""
        return 2 * 4 * self.num_heads * length**2 / 2**30

    def plot_results(self, run: Run, measured: dict[str, dict[int, AttentionCost]]) -> None:
        missing = [length for length in self.lengths if length not in measured["exact"]]
        omitted = (
            f" Exact attention is measured up to {max(measured['exact']):,} tokens: at {missing[0]:,} its scores and "
            f"weights need {self.exact_gibibytes(missing[0]):.0f} GiB; the limit is {self.max_memory:g} GiB."
            if missing
            else ""
        )

        run.figure(
            "costs",
            plot_costs(measured),
            f"Top left: time of one forward pass with {self.num_heads} heads of width {self.width} on "
            f"{run.device.type}, minimum of several (on a CPU, processor time); fused exact attention grows as n², "
            "linear attention as n. Top right: peak memory beyond the input; fused attention does not store the n × n "
            "weights, which saves memory but no multiplications. Bottom left: relative error against softmax "
            f"attention with a budget of {self.num_features} features, landmarks, rows or neighbours. Linear attention "
            "and cosFormer replace the softmax rather than approximate it, so models must be trained with them."
            + omitted,
        )
        if missing:
            run.note("omitted measurements", omitted.strip())
        run.figure(
            "sparse patterns",
            plot_patterns(),
            f"Six sparse attention patterns over {PATTERN_LENGTH} positions, rows are queries; below, the fraction of "
            "pairs.",
        )
        last = self.lengths[-1]
        run.table(
            f"cost at {last:,} tokens",
            [
                {
                    "attention": name,
                    "time (ms)": f"{1e3 * costs[last].seconds:.3g}",
                    "peak memory (MiB)": f"{costs[last].bytes / 2**20:.3g}",
                    "relative error": f"{costs[last].error:.3g}",
                }
                for name, costs in measured.items()
                if last in costs
            ],
            "The error of causal linear attention is relative to causal softmax attention, the others to bidirectional "
            "softmax attention.",
        )

    def report_errors(self, run: Run) -> None:
        """Errors at one length, from nearly uniform to sharp attention."""
        length, self_scores = min(1_024, self.lengths[-1]), (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
        errors: dict[str, list[float]] = {}
        for self_score in self_scores:
            tokens = self.tokens(length, self_score, run.device)
            exact = exact_outputs(tokens)
            for name, attend in self.variants(length, run.device).items():
                if name not in EXACT:
                    errors.setdefault(name, []).append(relative_error(attend(*tokens), exact[name == CAUSAL]))
        run.figure(
            "error against sharpness",
            plot_errors(self_scores, errors),
            f"Relative error at {length:,} tokens as attention becomes sharper. Features, landmarks and means are "
            "accurate for nearly uniform attention, local attention for sharp attention to similar neighbours; no "
            "approximation is accurate everywhere.",
        )


def exact_outputs(tokens: tuple[Tensor, Tensor, Tensor]) -> dict[bool, Tensor]:
    """Softmax attention at the selected queries, bidirectional (False) and causal (True)."""
    query, key, value = tokens
    return {
        False: fused_attention(select_queries(query), key, value),
        True: select_queries(fused_attention(query, key, value, causal=True)),
    }


def select_queries(x: Tensor) -> Tensor:
    """Evenly spaced positions of a long sequence, all positions of a short one."""
    return x[..., :: max(1, x.shape[-2] // ERROR_QUERIES), :]


def relative_error(output: Tensor, exact: Tensor) -> float:
    return float((select_queries(output) - exact).norm() / exact.norm())


def plot_costs(measured: dict[str, dict[int, AttentionCost]]) -> "Figure":
    """Time, memory and error against length, one colour for each attention function."""
    figure, axes = subplots(2, 2, size=(9.4, 7.4))
    for name, costs in measured.items():
        style = {"color": COLOURS[name], "marker": "o", "markersize": 3}
        axes[0, 0].loglog(list(costs), [1e3 * cost.seconds for cost in costs.values()], **style, label=name)
        axes[0, 1].loglog(list(costs), [cost.bytes / 2**20 for cost in costs.values()], **style)
        if name not in EXACT:
            axes[1, 0].loglog(list(costs), [cost.error for cost in costs.values()], **style)
    axes[0, 0].set(title="time (ms)")
    axes[0, 1].set(title="peak memory (MiB)")
    axes[1, 0].set(title="relative error", xlabel="sequence length (tokens)")
    lengths = list(measured["fused exact"])
    for ax in axes.flat:
        ax.set_xticks(lengths, [format_length(length) for length in lengths], minor=False)
        ax.set_xticks([], minor=True)
    remove_frame(axes[1, 1])
    axes[1, 1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center left")
    return figure


def plot_errors(self_scores: tuple[float, ...], errors: dict[str, list[float]]) -> "Figure":
    """Relative error against the score of a token with itself."""
    figure, axes = subplots(size=(8.0, 4.2))
    for name, values in errors.items():
        axes[0, 0].loglog(self_scores, values, color=COLOURS[name], marker="o", markersize=3, label=name)
    axes[0, 0].set(xlabel="score of a token with itself", ylabel="relative error")
    axes[0, 0].set_xticks(self_scores, [f"{self_score:g}" for self_score in self_scores], minor=False)
    axes[0, 0].set_xticks([], minor=True)
    axes[0, 0].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def format_length(length: int) -> str:
    """The length in units of 1024 where possible: 4096 is 4k."""
    return f"{length // 1024}k" if length % 1024 == 0 else str(length)


def plot_patterns() -> "Figure":
    """Masks of six sparse patterns."""
    masks = {
        "band": band_mask(PATTERN_LENGTH, 4),
        "dilated": dilated_mask(PATTERN_LENGTH, 4, 3),
        "strided": strided_mask(PATTERN_LENGTH, 7),
        "blocks": block_mask(PATTERN_LENGTH, 9),
        "global nodes": global_mask(PATTERN_LENGTH, [0, 24]),
        "random": random_mask(PATTERN_LENGTH, 9),
    }
    figure, axes = subplots(2, 3, size=(8.4, 6.6))
    for ax, (name, mask) in zip(axes.flat, masks.items(), strict=True):
        remove_frame(ax)
        ax.imshow(mask.float().numpy(), cmap=SEQUENTIAL, vmin=-0.1, vmax=1.2)
        ax.set(
            title=name, xlabel=f"{int(count_pairs(mask)) / PATTERN_LENGTH**2:.0%} of all pairs", xticks=[], yticks=[]
        )
    return figure
