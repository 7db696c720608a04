"""A table one can differentiate: how a lookup becomes soft, and how many keys it can tell apart (Diehl sec. 2.2)."""

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.attention.lookup import hard_lookup, linear_lookup, soft_lookup
from parnassus.losses.classification import softmax
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import Run, at_least, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("D2.1.1", "D2.2.1", "D2.2.2", "B10.1.3-1", "Z11.3", "Z11.7")
expected = {
    "weight_of_the_hit": between(0.2796, 0.2798, "weight of v₃ when e₃ is asked of 8 basis vectors: e/(e + 7)"),
    "linear_error": at_most(1e-6, "distance of the linear lookup of e₃ from v₃"),
    "found_hard": at_least(0.99, "share of noisy queries among 64 random keys whose best key is the right one"),
    "found_cold": at_least(0.99, "share for which the soft answer at temperature 0.01 is nearest to the right value"),
    "found_warm": at_least(0.9, "the same at temperature 0.1"),
    "found_hot": at_most(0.2, "the same at temperature 100, where the answer is nearly the mean of all values"),
    "error_cold": at_most(0.1, "squared distance of the answer from the right value at temperature 0.01, a coordinate"),
    "error_hot": between(0.8, 1.2, "the same at temperature 100"),
    "found_of_16384": reported("share found by the best key among 16,384 random keys"),
    "entropy_plain": reported("entropy in nats of weights over 256 random keys of width 256, without 1/√d"),
    "entropy_scaled": reported("the same with 1/√d; the most there can be is ln 256 = 5.55"),
}
profiles = {"smoke": {"queries": 40, "largest": 256}, "gpu": {"queries": 4_000}}

TEMPERATURES = torch.logspace(-2, 2, 25).tolist()
STARTS = ((1.0, 0.6, -0.4), (-0.2, 1.0, 0.7), (0.3, -0.5, 1.0), (1.0, 1.0, -0.5))
CORNERS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


@dataclass(frozen=True)
class Experiment:
    width: int = 32  # numbers in a key
    noise: float = 0.5  # deviation of the noise in the queries; keys have deviation 1
    queries: int = 400  # queries for each number of keys
    largest: int = 16_384  # keys at most

    def __call__(self, run: Run) -> dict[str, float]:
        torch.manual_seed(run.seed)
        run.figure(
            "the table",
            draw_table(),
            "Keys e₁ … e₈ with their values; a query, how well each key matches it, and the mixture that comes out. "
            "Above, the matches themselves are the weights; below, their softmax (Diehl ex. 2.3).",
        )
        run.figure(
            "to the corner",
            draw_simplex(),
            "softmax(λx) for four x, as λ grows from 0: from the middle of the simplex to the corner of the largest "
            "entry, or to the middle of an edge where two are largest (Diehl lem. 2.1).",
        )
        basis, values = torch.eye(8), torch.randn(8, 4)
        hit = soft_lookup(basis[2:3], basis, values)
        result = {
            "weight_of_the_hit": float(hit.weights[0, 2]),
            "linear_error": float((linear_lookup(basis[2:3], basis, values).output - values[2]).norm()),
        }
        return result | self.retrieval(run) | self.saturation(run)

    def retrieval(self, run: Run) -> dict[str, float]:
        """Ask tables of random keys with noisy copies of them, at all temperatures."""
        sizes = [size for size in (4, 64, 1_024, 16_384) if size <= self.largest]
        found, far, best = {}, {}, {}
        for size in sizes:
            key, value = torch.randn(size, self.width), torch.randn(size, 8)
            asked = torch.randint(0, size, (self.queries,))
            query = key[asked] + self.noise * torch.randn(self.queries, self.width)
            best[size] = share_found(hard_lookup(query, key, value).output, value, asked)
            answers = [soft_lookup(query, key, value, temperature=self.width**0.5 * t).output for t in TEMPERATURES]
            found[size] = [share_found(answer, value, asked) for answer in answers]
            far[size] = [float((answer - value[asked]).square().mean()) for answer in answers]
        run.figure(
            "retrieval",
            draw_retrieval(found, far),
            "Noisy copies of random keys are asked of tables of many sizes. Left: how often the answer is nearest to "
            "the value that was meant. Right: how far it is from it. The score is qᵀk/√d, divided by the temperature: "
            "cold, the answer is one value; warm, a mixture that still points to the right one; hot, the mean of all.",
        )
        cold, warm, hot = 0, min(range(25), key=lambda i: abs(log(TEMPERATURES[i] / 0.1))), 24
        return {
            "found_hard": best[64],
            "found_cold": found[64][cold],
            "found_warm": found[64][warm],
            "found_hot": found[64][hot],
            "error_cold": far[64][cold],
            "error_hot": far[64][hot],
            "found_of_16384": best.get(16_384, best[sizes[-1]]),
        }

    def saturation(self, run: Run) -> dict[str, float]:
        """Entropy of the weights over 256 random keys as vectors become long."""
        widths = [4, 16, 64, 256, 1_024]
        entropies: dict[str, list[float]] = {"qᵀk": [], "qᵀk / √d": []}
        for width in widths:
            query, key = torch.randn(100, width), torch.randn(256, width)
            for name, temperature in zip(entropies, (1.0, width**0.5), strict=True):
                weights = soft_lookup(query, key, key, temperature=temperature).weights
                entropies[name].append(float(torch.special.entr(weights).sum(-1).mean()))
        run.figure(
            "saturation",
            curves(
                {name: (widths, values) for name, values in entropies.items()},
                x_label="width d of queries and keys",
                y_label="entropy of the weights, nats",
                log_x=True,
            ),
            "Random queries and keys. A product of long vectors has variance d: unscaled, one key takes all the weight "
            "and nothing is left to learn from; divided by √d the weights stay soft (Zhao sec. 11).",
        )
        return {"entropy_plain": entropies["qᵀk"][3], "entropy_scaled": entropies["qᵀk / √d"][3]}


def share_found(answer: Tensor, value: Tensor, asked: Tensor) -> float:
    """How often the value nearest to the answer is the one that was meant."""
    return float((torch.cdist(answer, value).argmin(1) == asked).float().mean())


def draw_table() -> "Figure":
    """Keys and values, two queries, their matches as bars, and the mixtures: once linear, once soft."""
    basis = torch.eye(8)
    values = torch.tensor([2.0, -1.0, 3.0, 0.5, -2.0, 1.0, 2.5, -0.5])[:, None]
    queries = {"q = e₃": basis[2:3], "q = e₃ + 2e₅": (basis[2] + 2 * basis[4])[None], "q = 5e₃": 5 * basis[2:3]}
    figure, axes = subplots(2, 4, size=(11.5, 5.2))
    names = [f"e{'₁₂₃₄₅₆₇₈'[index]}" for index in range(8)]
    for row, (kind, lookup) in enumerate({"linear": linear_lookup, "soft": soft_lookup}.items()):
        draw_bars(axes[row, 0], names, values[:, 0], FAINT, "values" if row == 0 else "")
        axes[row, 0].set_ylabel(f"{kind} lookup\nkey")
        for ax, (name, query) in zip(axes[row, 1:], queries.items(), strict=True):
            output, weights = lookup(query, basis, values)
            draw_bars(ax, names, weights[0], PALETTE[row], name if row == 0 else "")
            ax.set_xlabel(f"weights; answer {float(output):.2f}")
    axes[1, 0].set_xlabel("value")
    axes[0, 0].set_xlabel("value")
    return figure


def draw_bars(ax: "Axes", names: list[str], lengths: Tensor, colour: str, title: str) -> None:
    ax.barh(names, lengths.numpy(), color=colour, height=0.65)
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_title(title)


def draw_simplex() -> "Figure":
    figure, axes = subplots(size=(5.6, 4.6))
    ax = axes[0, 0]
    outline = torch.cat([CORNERS, CORNERS[:1]])
    ax.plot(outline[:, 0], outline[:, 1], color=INK, linewidth=1)
    strengths = torch.cat([torch.zeros(1), torch.logspace(-2, 2, 200)])
    for start, colour in zip(STARTS, PALETTE, strict=False):
        path = softmax(strengths[:, None] * torch.tensor(start)) @ CORNERS
        name = "x = (" + ", ".join(f"{number:g}".replace("-", "−") for number in start) + ")"
        ax.plot(path[:, 0], path[:, 1], color=colour, label=name)
        for strength in (1.0, 3.0, 10.0):
            spot = softmax(strength * torch.tensor(start)) @ CORNERS
            ax.plot(*spot.tolist(), color=colour, marker="o", markersize=4)
    middle = CORNERS.mean(0)
    ax.plot(*middle.tolist(), color=INK, marker="o", markersize=5)
    ax.annotate("λ = 0", middle.tolist(), xytext=(6, -12), textcoords="offset points")
    for corner, name, shift in zip(CORNERS.tolist(), ("e₁", "e₂", "e₃"), ((-14, -6), (6, -6), (-5, 6)), strict=True):
        ax.annotate(name, corner, xytext=shift, textcoords="offset points")
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="dots: λ = 1, 3, 10", alignment="left")
    return figure


def draw_retrieval(found: dict[int, list[float]], far: dict[int, list[float]]) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.5, 3.7))
    for size, colour in zip(found, PALETTE, strict=False):
        axes[0, 0].semilogx(TEMPERATURES, found[size], color=colour, label=f"{size:,} keys")
        axes[0, 1].semilogx(TEMPERATURES, far[size], color=colour)
    axes[0, 0].set(xlabel="temperature", ylabel="right value is nearest", ylim=(-0.03, 1.03))
    axes[0, 1].set(xlabel="temperature", ylabel="squared distance a coordinate")
    axes[0, 0].legend(loc="lower left")
    return figure
