"""How the outputs of a layer drift in fifty steps, with and without batch normalisation (book ex. 2.2)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.optim import SGD

from parnassus.data import Dataset, open_data
from parnassus.layers import Classifier, affine, dense_classifier, layer_outputs, normalised_classifier
from parnassus.report import curves, subplots
from parnassus.train import Run, at_least, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B2.2-1", "B2.2-2", "B2.2-4")
expected = {
    "drift_plain": at_least(0.5, "furthest way of the second layer's mean output, in spreads of the first step"),
    "drift_normalised": at_most(0.02, "the same behind its batch normalisation"),
    "spread_plain": reported("spread of its outputs in the last step over that in the first"),
    "spread_normalised": between(0.9, 1.1, "the same behind its batch normalisation"),
    "drift_ratio": at_most(0.02, "drift with normalisation over drift without"),
    "drift_ratio_of_the_text": reported("the same at the learning rate of the text"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 8, "hidden": 32}, "gpu": {"data": "fashion_mnist"}}

SLOW = 1e-3  # the learning rate of the text
BINS = 120


class Seen(nn.Module):
    """Histogram, mean and spread of a layer's outputs at each step; kept with the run, so that it may be resumed."""

    counts: Tensor
    mean: Tensor
    spread: Tensor

    def __init__(self, steps: int, low: float, high: float) -> None:
        super().__init__()
        self.low, self.high = low, high
        self.register_buffer("counts", torch.zeros(steps, BINS))
        self.register_buffer("mean", torch.zeros(steps))
        self.register_buffer("spread", torch.zeros(steps))

    def add(self, step: int, values: Tensor) -> None:
        self.counts[step] = torch.histc(values.cpu(), BINS, self.low, self.high)
        self.mean[step], self.spread[step] = values.mean(), values.std()

    @property
    def drift(self) -> float:
        """The furthest that the mean went from where it began, in spreads of the first step."""
        return float((self.mean - self.mean[0]).abs().max() / self.spread[0])

    @property
    def growth(self) -> float:
        return float(self.spread[-1] / self.spread[0])


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # mnist_mini, fashion_mnist, mnist, digits, or a folder or file of your own
    hidden: int = 512  # units in each of the two hidden layers
    steps: int = 50  # gradient steps
    batch: int = 64  # images a step
    rate: float = 0.3  # the larger of two learning rates; the other is the 0.001 of the text

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        seen = {rate: {name: self.train(run, name, rate, data) for name in NETWORKS} for rate in (SLOW, self.rate)}
        run.figure(
            "histograms over time",
            histograms_over_time(seen),
            "Each column is the histogram of one step's outputs: of the second linear layer in the plain network "
            "(left), of the second normalisation in the other (right). Lines: mean, and mean ± spread.",
        )
        step = range(self.steps)
        lines = {
            f"{name}, η = {rate:g}": (step, (each.mean - each.mean[0]) / each.spread[0])
            for rate, networks in seen.items()
            for name, each in networks.items()
        }
        run.figure(
            "drift of the mean",
            curves(lines, x_label="step", y_label="move of the mean, in first spreads"),
            "How far the mean over all units and images has gone from where it began.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "network": name,
                "learning rate": rate,
                "first mean": round(float(each.mean[0]), 4),
                "last mean": round(float(each.mean[-1]), 4),
                "first spread": round(float(each.spread[0]), 4),
                "last spread": round(float(each.spread[-1]), 4),
            }
            for rate, networks in seen.items()
            for name, each in networks.items()
        ]
        run.table("in numbers", rows)
        plain, normalised = seen[self.rate].values()
        still_plain, still_normalised = seen[SLOW].values()
        run.note(
            "what to see",
            f"With η = {self.rate:g} the plain layer's mean moves by {plain.drift:.2f} of its first spread in "
            f"{self.steps} steps, and the spread grows by a factor of {plain.growth:.2f}. Behind the normalisation "
            "mean and spread are β and γ, which move slowly whatever the layers below do: there it is "
            f"{normalised.drift:.4f} and {normalised.growth:.2f}. With the text's η = {SLOW:g} little moves in so few "
            f"steps even in the plain network ({still_plain.drift:.3f}).\n\nThe bright line on the right is the ReLU: "
            "the listing normalises behind it, and all its zeros stay together.",
        )
        return {
            "drift_plain": plain.drift,
            "drift_normalised": normalised.drift,
            "spread_plain": plain.growth,
            "spread_normalised": normalised.growth,
            "drift_ratio": normalised.drift / plain.drift,
            "drift_ratio_of_the_text": still_normalised.drift / still_plain.drift,
        }

    def train(self, run: Run, name: str, rate: float, data: Dataset) -> Seen:
        build, watched, low, high = NETWORKS[name]
        torch.manual_seed(run.seed)  # so that all networks begin with the same linear layers
        model = build(prod(data.shape), len(data.classes), hidden=(self.hidden, self.hidden))
        model, optimizer = run.prepare(model, partial(SGD, lr=rate))
        seen = Seen(self.steps, low, high)
        run.keep(f"{name} {rate:g}", seen)
        for step, (x, y) in run.steps(data.train.pairs(self.batch, self.steps)):
            with torch.no_grad():
                seen.add(step, watched(model, x))
            loss = model.loss(x, y)
            run.update(optimizer, loss)
            run.log(step, **{f"loss/{name} {rate:g}": loss.detach()})
        return seen


def second_linear(model: Classifier, x: Tensor) -> Tensor:
    """The outputs of the second linear layer, before its ReLU."""
    weight, bias = model.get_parameter("network.2.weight"), model.get_parameter("network.2.bias")
    return affine(layer_outputs(cast("nn.Sequential", model.network), x)[1], weight, bias)


def second_normalisation(model: Classifier, x: Tensor) -> Tensor:
    return layer_outputs(cast("nn.Sequential", model.network), x)[2]


NETWORKS: dict[str, tuple[Callable[..., Classifier], Callable[[Classifier, Tensor], Tensor], float, float]] = {
    "plain": (dense_classifier, second_linear, -1.0, 1.0),
    "normalised": (normalised_classifier, second_normalisation, -1.5, 4.5),
}
"""How each network is built, what of it is watched, and the range of its histograms."""


def histograms_over_time(seen: dict[float, dict[str, Seen]]) -> "Figure":
    figure, axes = subplots(2, 2, size=(10.0, 6.4))
    titles = {"plain": "second linear layer", "normalised": "second batch normalisation"}
    for row, (rate, networks) in zip(axes, seen.items(), strict=True):
        for ax, (name, each) in zip(row, networks.items(), strict=True):
            steps = len(each.mean)
            share = each.counts / each.counts.sum(1, keepdim=True)
            ax.imshow(
                share.mT.clamp(max=0.08).cpu().numpy(),
                extent=(-0.5, steps - 0.5, each.low, each.high),
                origin="lower",
                aspect="auto",
                cmap="viridis",
            )
            mean, spread = each.mean.cpu(), each.spread.cpu()
            ax.plot(mean, color="#ffffff", linewidth=1.6)
            ax.plot(torch.stack([mean - spread, mean + spread], 1), color="#ffffff", linewidth=1, linestyle="--")
            ax.set(title=f"{titles[name]}, η = {rate:g}", ylabel="output")
            ax.grid(visible=False)
    for ax in axes[-1]:
        ax.set_xlabel("step")
    return figure
