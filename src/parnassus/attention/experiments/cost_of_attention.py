"""What attention costs: error, time and memory against length, exact and in seven cheaper ways (Diehl sec. 4)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import avg_pool1d

from parnassus.attention import (
    attend,
    attention,
    band_mask,
    block_mask,
    causal_linear_attention,
    cosformer_attention,
    dilated_mask,
    global_mask,
    growth_exponent,
    linear_attention,
    linformer_attention,
    local_attention,
    nystrom_attention,
    orthogonal_directions,
    pairs,
    peak_memory,
    performer_attention,
    random_mask,
    strided_mask,
)
from parnassus.report import PALETTE, subplots
from parnassus.report.ink import SEQUENTIAL, plain
from parnassus.train import Run, at_least, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D4.0.1", "D4.1.1", "D4.1.2", "D4.1.6", "C-20", "C-21", "C-22")
expected = {
    "memory_exponent_exact": between(1.9, 2.1, "r of memory ∝ nʳ, from the shortest length to the longest"),
    "memory_exponent_linear": between(0.9, 1.1, "the same for linear attention"),
    "time_exponent_fused": at_least(1.4, "r of seconds ∝ nʳ over the last two doublings, fused exact attention"),
    "time_exponent_linear": at_most(1.7, "the same for linear attention"),
    "speedup_linear": at_least(1.0, "seconds of fused exact attention over those of linear, at the longest length"),
    "error_performer": at_most(0.6, "of the output beside softmax attention's, RMS, relative, at the longest length"),
    "error_nystrom": at_most(0.4, "the same for Nyström attention"),
    "error_linformer": at_most(0.4, "the same for a Linformer that keeps means of stretches"),
    "error_local": reported("the same for local attention, which sees nothing beyond its reach"),
    "error_linear": reported("the same for linear attention with elu + 1, which does not mean to be near"),
    "error_cosformer": reported("the same for cosFormer, which does not either"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"lengths": (128, 256), "seconds": 0.0, "budget": 16},
    "gpu": {
        "lengths": (1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536), "heads": 4, "room": 100.0, "budget": 256,
    },
}  # fmt: skip

Way: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]
SHOWN = 48  # places of a pattern that is drawn
NAMES = (
    "exact", "fused exact", "linear", "linear, causal", "Performer", "cosFormer", "Linformer", "Nyström", "local",
)  # fmt: skip
COLOURS = dict(zip(NAMES, PALETTE, strict=False))
EXACT, CAUSAL = NAMES[:2], NAMES[3]
JUDGED = 1_024  # queries on which errors are measured


class Cost(NamedTuple):
    seconds: float
    bytes: int
    error: float


@dataclass(frozen=True)
class Experiment:
    lengths: tuple[int, ...] = (256, 512, 1_024, 2_048, 4_096)  # tokens
    width: int = 64  # of queries, keys and values
    heads: int = 2  # side by side
    budget: int = 128  # random features, landmarks, rows kept and reach of the approximations
    smoothness: int = 16  # tokens over which neighbours are alike
    match: float = 2.0  # score of a token with itself; with one far away it is 0 on average
    seconds: float = 0.2  # for which each is timed at each length, at least
    room: float = 1.0  # GiB that exact attention may take; beyond, it is left out

    @torch.no_grad()
    def __call__(self, run: Run) -> dict[str, float]:
        measured: dict[str, dict[int, Cost]] = {}
        for length in self.lengths:
            tokens = self.tokens(length, self.match, run.device)
            exact = softmaxed(tokens)
            for name, way in self.ways(length, run.device).items():
                if name == "exact" and self.exact_gibibytes(length) > self.room:
                    continue
                error = relative(way(*tokens), exact[name == CAUSAL])  # the first time takes longer
                compute = partial(way, *tokens)
                cost = Cost(timed(compute, self.seconds, run.device), peak_memory(compute, run.device), error)
                measured.setdefault(name, {})[length] = cost
        self.show(run, measured)
        self.show_errors(run)

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

    def tokens(self, length: int, match: float, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys that are one smooth process, values that are another: a place looks for its like."""
        noise = torch.randn(2 * self.heads, self.width, length + self.smoothness - 1, device=device)
        smooth = avg_pool1d(noise, self.smoothness, 1) * self.smoothness**0.5  # of variance 1 again
        seen, value = smooth.mT.contiguous().view(2, 1, self.heads, length, self.width)
        seen = seen * (match / self.width**0.5) ** 0.5
        return seen, seen, value

    def ways(self, length: int, device: torch.device) -> dict[str, Way]:
        """All ways to attend, by name."""
        budget = min(self.budget, length)
        directions = orthogonal_directions(budget, self.width).to(device)
        means = torch.eye(budget, device=device).repeat_interleave(-(-length // budget), 1)[:, :length]
        means = means / means.sum(1, keepdim=True).clamp(min=1.0)
        return {
            "exact": lambda q, k, v: attention(q, k, v).output,
            "fused exact": attend,
            "linear": linear_attention,
            "linear, causal": causal_linear_attention,
            "Performer": partial(performer_attention, directions=directions),
            "cosFormer": cosformer_attention,
            "Linformer": partial(linformer_attention, shrink_keys=means, shrink_values=means),
            "Nyström": partial(nystrom_attention, count=budget),
            "local": partial(local_attention, reach=budget),
        }

    def exact_gibibytes(self, length: int) -> float:
        """Of scores and weights, which exact attention holds side by side."""
        return 2 * 4 * self.heads * length**2 / 2**30

    def show(self, run: Run, measured: dict[str, dict[int, Cost]]) -> None:
        missing = [length for length in self.lengths if length not in measured["exact"]]
        left_out = (
            f" Exact attention stops at {max(measured['exact']):,} tokens: at {missing[0]:,} its scores and weights "
            f"would take {self.exact_gibibytes(missing[0]):.0f} GiB, and it may have {self.room:g}."
            if missing
            else ""
        )

        run.figure(
            "what it costs",
            draw_costs(measured),
            f"Above left, one forward pass of {self.heads} heads of width {self.width} on {run.device.type}, the "
            "quickest of several (on a CPU, processor time): fused exact attention grows like n², linear attention "
            "like n. Above right, the most memory a pass needs at once beyond its input: fused attention never holds "
            "the n × n weights, so it saves memory but no multiplication. Below, how far outputs are from those of "
            f"softmax attention, relative, with a budget of {self.budget} features, landmarks, rows or neighbours. "
            "Linear attention and cosFormer do not approximate the softmax, they replace it: a model must be trained "
            "with them." + left_out,
        )
        if missing:
            run.note("what is missing", left_out.strip())
        run.figure(
            "patterns",
            draw_patterns(),
            f"Who sees whom in six sparse patterns over {SHOWN} places, rows are queries; beneath, the share of pairs.",
        )
        last = self.lengths[-1]
        run.table(
            f"at {last:,} tokens",
            [
                {
                    "way": name,
                    "milliseconds": f"{1e3 * costs[last].seconds:.3g}",
                    "MiB": f"{costs[last].bytes / 2**20:.3g}",
                    "error": f"{costs[last].error:.3g}",
                }
                for name, costs in measured.items()
                if last in costs
            ],
            "Causal linear attention is compared with causal softmax attention, the others with one that sees all.",
        )

    def show_errors(self, run: Run) -> None:
        """At one length, from attention that hardly chooses to attention that finds one token among many."""
        length, matches = min(1_024, self.lengths[-1]), (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
        errors: dict[str, list[float]] = {}
        for match in matches:
            tokens = self.tokens(length, match, run.device)
            exact = softmaxed(tokens)
            for name, way in self.ways(length, run.device).items():
                if name not in EXACT:
                    errors.setdefault(name, []).append(relative(way(*tokens), exact[name == CAUSAL]))
        run.figure(
            "error against sharpness",
            draw_errors(matches, errors),
            f"At {length:,} tokens, as attention becomes sharper. Features, landmarks and means are good where it "
            "averages over all, a band of neighbours where it finds its like nearby; none is good everywhere.",
        )


def softmaxed(tokens: tuple[Tensor, Tensor, Tensor]) -> dict[bool, Tensor]:
    """What the queries that are judged find by softmax attention; True: where no key comes after its query."""
    query, key, value = tokens
    return {False: attend(judged(query), key, value), True: judged(attend(query, key, value, causal=True))}


def judged(x: Tensor) -> Tensor:
    """Places of a long sequence, evenly apart; all of a short one."""
    return x[..., :: max(1, x.shape[-2] // JUDGED), :]


def relative(output: Tensor, exact: Tensor) -> float:
    return float((judged(output) - exact).norm() / exact.norm())


def timed(compute: Callable[[], object], at_least: float, device: torch.device) -> float:
    """The quickest of three calls, or of as many as fill the seconds; on a CPU, what the processor spent on it."""
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    times: list[float] = []
    while len(times) < 3 or sum(times) < at_least:
        began = clock()
        compute()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(clock() - began)
    return min(times)


def draw_costs(measured: dict[str, dict[int, Cost]]) -> "Figure":
    """Time, memory and error against length, one colour for each way."""
    figure, axes = subplots(2, 2, size=(9.4, 7.4))
    for name, costs in measured.items():
        style = {"color": COLOURS[name], "marker": "o", "markersize": 3}
        axes[0, 0].loglog(list(costs), [1e3 * cost.seconds for cost in costs.values()], **style, label=name)
        axes[0, 1].loglog(list(costs), [cost.bytes / 2**20 for cost in costs.values()], **style)
        if name not in EXACT:
            axes[1, 0].loglog(list(costs), [cost.error for cost in costs.values()], **style)
    axes[0, 0].set(title="milliseconds")
    axes[0, 1].set(title="memory, MiB")
    axes[1, 0].set(title="relative error", xlabel="tokens")
    lengths = list(measured["fused exact"])
    for ax in axes.flat:
        ax.set_xticks(lengths, [short(length) for length in lengths], minor=False)
        ax.set_xticks([], minor=True)
    plain(axes[1, 1])
    axes[1, 1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center left")
    return figure


def draw_errors(matches: tuple[float, ...], errors: dict[str, list[float]]) -> "Figure":
    figure, axes = subplots(size=(8.0, 4.2))
    for name, values in errors.items():
        axes[0, 0].loglog(matches, values, color=COLOURS[name], marker="o", markersize=3, label=name)
    axes[0, 0].set(xlabel="score of a token with itself", ylabel="relative error")
    axes[0, 0].set_xticks(matches, [f"{match:g}" for match in matches], minor=False)
    axes[0, 0].set_xticks([], minor=True)
    axes[0, 0].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def short(length: int) -> str:
    """The length in words of ten bits: 4096 is 4k."""
    return f"{length // 1024}k" if length % 1024 == 0 else str(length)


def draw_patterns() -> "Figure":
    masks = {
        "band": band_mask(SHOWN, 4),
        "dilated": dilated_mask(SHOWN, 4, 3),
        "strided": strided_mask(SHOWN, 7),
        "blocks": block_mask(SHOWN, 9),
        "global nodes": global_mask(SHOWN, [0, 24]),
        "random": random_mask(SHOWN, 9),
    }
    figure, axes = subplots(2, 3, size=(8.4, 6.6))
    for ax, (name, mask) in zip(axes.flat, masks.items(), strict=True):
        plain(ax)
        ax.imshow(mask.float().numpy(), cmap=SEQUENTIAL, vmin=-0.1, vmax=1.2)
        ax.set(title=name, xlabel=f"{int(pairs(mask)) / SHOWN**2:.0%} of all pairs", xticks=[], yticks=[])
    return figure
