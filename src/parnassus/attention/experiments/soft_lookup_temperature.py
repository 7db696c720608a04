"""Soft lookup in a table of keys and values: temperature, number of keys and scaling (Diehl sec. 2.2)."""

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.attention.core.lookup import hard_lookup, linear_lookup, soft_lookup
from parnassus.losses.classification import softmax
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("D2.1.1", "D2.2.1", "D2.2.2", "B10.1.3-1", "Z11.3", "Z11.7")
expected = {
    "match_weight": between(0.2796, 0.2798, "weight of v₃ for the query e₃ among 8 basis vectors: e/(e + 7)"),
    "linear_error": at_most(1e-6, "distance of the linear lookup of e₃ from v₃"),
    "accuracy_hard": at_least(0.99, "retrieval accuracy of hard lookup, noisy queries among 64 random keys"),
    "accuracy_t_0_01": at_least(
        0.99, "retrieval accuracy of soft lookup at temperature 0.01, noisy queries among 64 random keys"
    ),
    "accuracy_t_0_1": at_least(0.9, "retrieval accuracy of soft lookup at temperature 0.1"),
    "accuracy_t_100": at_most(
        0.2, "retrieval accuracy of soft lookup at temperature 100: nearly the mean of all values"
    ),
    "error_t_0_01": at_most(0.1, "mean squared error of the output of soft lookup at temperature 0.01"),
    "error_t_100": between(0.8, 1.2, "mean squared error of the output of soft lookup at temperature 100"),
    "accuracy_hard_16384": no_band("retrieval accuracy of hard lookup among 16,384 random keys"),
    "entropy_unscaled": no_band("entropy in nats of the weights over 256 random keys of width 256, without 1/√d"),
    "entropy_scaled": no_band(
        "entropy in nats of the weights over 256 random keys with 1/√d; the maximum is ln 256 = 5.55"
    ),
}
profiles = {"smoke": {"num_queries": 40, "max_keys": 256}, "gpu": {"num_queries": 4_000}}

TEMPERATURES = torch.logspace(-2, 2, 25).tolist()
STARTS = ((1.0, 0.6, -0.4), (-0.2, 1.0, 0.7), (0.3, -0.5, 1.0), (1.0, 1.0, -0.5))
VERTICES = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


@dataclass(frozen=True)
class Experiment:
    width: Positive[int] = 32  # width of the keys
    noise_std: NonNegative[float] = 0.5  # standard deviation of the noise in the queries; that of the keys is 1
    num_queries: Positive[int] = 400  # queries for each number of keys
    max_keys: Positive[int] = 16_384  # maximum number of keys

    def __call__(self, run: Run) -> dict[str, float]:
        torch.manual_seed(run.seed)
        run.figure(
            "lookup",
            plot_lookups(),
            "Keys e₁ … e₈ with their values, and the weights and outputs of three queries. Top: the weights are the "
            "scores; bottom: the softmax of the scores (Diehl ex. 2.3).",
        )
        run.figure(
            "softmax limit",
            plot_simplex(),
            "softmax(λx) for four x as λ grows from 0: from the centre of the simplex to the vertex of the largest "
            "entry, or to the midpoint of an edge if two entries are largest (Diehl lem. 2.1).",
        )
        basis, values = torch.eye(8), torch.randn(8, 4)
        output = soft_lookup(basis[2:3], basis, values)
        result = {
            "match_weight": float(output.weights[0, 2]),
            "linear_error": float((linear_lookup(basis[2:3], basis, values).output - values[2]).norm()),
        }
        return result | self.retrieval(run) | self.saturation(run)

    def retrieval(self, run: Run) -> dict[str, float]:
        """Accuracy and error of noisy queries in tables of random keys at all temperatures."""
        sizes = [size for size in (4, 64, 1_024, 16_384) if size <= self.max_keys]
        accuracy, error, hard_accuracy = {}, {}, {}
        for size in sizes:
            key, value = torch.randn(size, self.width), torch.randn(size, 8)
            target = torch.randint(0, size, (self.num_queries,))
            query = key[target] + self.noise_std * torch.randn(self.num_queries, self.width)
            hard_accuracy[size] = retrieval_accuracy(hard_lookup(query, key, value).output, value, target)
            outputs = [soft_lookup(query, key, value, temperature=self.width**0.5 * t).output for t in TEMPERATURES]
            accuracy[size] = [retrieval_accuracy(output, value, target) for output in outputs]
            error[size] = [float((output - value[target]).square().mean()) for output in outputs]
        run.figure(
            "retrieval",
            plot_retrieval(accuracy, error),
            "Noisy copies of random keys as queries. Left: fraction of queries whose output is nearest to the correct "
            "value. Right: mean squared error. The score is qᵀk/√d divided by the temperature: at low temperature the "
            "output is a single value, at high temperature the mean of all values.",
        )
        cold, warm, hot = 0, min(range(25), key=lambda i: abs(log(TEMPERATURES[i] / 0.1))), 24
        return {
            "accuracy_hard": hard_accuracy[64],
            "accuracy_t_0_01": accuracy[64][cold],
            "accuracy_t_0_1": accuracy[64][warm],
            "accuracy_t_100": accuracy[64][hot],
            "error_t_0_01": error[64][cold],
            "error_t_100": error[64][hot],
            "accuracy_hard_16384": hard_accuracy.get(16_384, hard_accuracy[sizes[-1]]),
        }

    def saturation(self, run: Run) -> dict[str, float]:
        """Entropy of the weights over 256 random keys against the width."""
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
                y_label="entropy of the weights (nats)",
                log_x=True,
            ),
            "Random queries and keys. The inner product has variance d: without scaling the softmax saturates and its "
            "gradient vanishes; with 1/√d the entropy does not depend on the width (Zhao sec. 11).",
        )
        return {"entropy_unscaled": entropies["qᵀk"][3], "entropy_scaled": entropies["qᵀk / √d"][3]}


def retrieval_accuracy(output: Tensor, value: Tensor, target: Tensor) -> float:
    """The fraction of outputs whose nearest value is the target."""
    return float((torch.cdist(output, value).argmin(1) == target).float().mean())


def plot_lookups() -> "Figure":
    """Values, and the weights of three queries: linear lookup in the first row, soft lookup in the second."""
    basis = torch.eye(8)
    values = torch.tensor([2.0, -1.0, 3.0, 0.5, -2.0, 1.0, 2.5, -0.5])[:, None]
    queries = {"q = e₃": basis[2:3], "q = e₃ + 2e₅": (basis[2] + 2 * basis[4])[None], "q = 5e₃": 5 * basis[2:3]}
    figure, axes = subplots(2, 4, size=(11.5, 5.2))
    names = [f"e{'₁₂₃₄₅₆₇₈'[index]}" for index in range(8)]
    for row, (kind, lookup) in enumerate({"linear": linear_lookup, "soft": soft_lookup}.items()):
        plot_bars(axes[row, 0], names, values[:, 0], FAINT, "values" if row == 0 else "")
        axes[row, 0].set_ylabel(f"{kind} lookup\nkey")
        for ax, (name, query) in zip(axes[row, 1:], queries.items(), strict=True):
            output, weights = lookup(query, basis, values)
            plot_bars(ax, names, weights[0], PALETTE[row], name if row == 0 else "")
            ax.set_xlabel(f"weight; output {float(output):.2f}")
    axes[1, 0].set_xlabel("value")
    axes[0, 0].set_xlabel("value")
    return figure


def plot_bars(ax: "Axes", names: list[str], lengths: Tensor, colour: str, title: str) -> None:
    ax.barh(names, lengths.numpy(), color=colour, height=0.65)
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_title(title)


def plot_simplex() -> "Figure":
    """Paths of softmax(λx) in the 2-simplex."""
    figure, axes = subplots(size=(5.6, 4.6))
    ax = axes[0, 0]
    outline = torch.cat([VERTICES, VERTICES[:1]])
    ax.plot(outline[:, 0], outline[:, 1], color=INK, linewidth=1)
    lambdas = torch.cat([torch.zeros(1), torch.logspace(-2, 2, 200)])
    for start, colour in zip(STARTS, PALETTE, strict=False):
        path = softmax(lambdas[:, None] * torch.tensor(start)) @ VERTICES
        name = "x = (" + ", ".join(f"{entry:g}".replace("-", "−") for entry in start) + ")"
        ax.plot(path[:, 0], path[:, 1], color=colour, label=name)
        for strength in (1.0, 3.0, 10.0):
            point = softmax(strength * torch.tensor(start)) @ VERTICES
            ax.plot(*point.tolist(), color=colour, marker="o", markersize=4)
    centre = VERTICES.mean(0)
    ax.plot(*centre.tolist(), color=INK, marker="o", markersize=5)
    ax.annotate("λ = 0", centre.tolist(), xytext=(6, -12), textcoords="offset points")
    for corner, name, shift in zip(VERTICES.tolist(), ("e₁", "e₂", "e₃"), ((-14, -6), (6, -6), (-5, 6)), strict=True):
        ax.annotate(name, corner, xytext=shift, textcoords="offset points")
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="dots: λ = 1, 3, 10", alignment="left")
    return figure


def plot_retrieval(accuracy: dict[int, list[float]], error: dict[int, list[float]]) -> "Figure":
    """Retrieval accuracy and mean squared error against the temperature."""
    figure, axes = subplots(1, 2, size=(10.5, 3.7))
    for size, colour in zip(accuracy, PALETTE, strict=False):
        axes[0, 0].semilogx(TEMPERATURES, accuracy[size], color=colour, label=f"{size:,} keys")
        axes[0, 1].semilogx(TEMPERATURES, error[size], color=colour)
    axes[0, 0].set(xlabel="temperature", ylabel="retrieval accuracy", ylim=(-0.03, 1.03))
    axes[0, 1].set(xlabel="temperature", ylabel="mean squared error")
    axes[0, 0].legend(loc="lower left")
    return figure
