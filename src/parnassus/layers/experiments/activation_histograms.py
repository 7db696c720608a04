"""Histograms of layer outputs during training: batch normalisation prevents their drift (book ex. 2.2)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.optim import SGD

from parnassus.data import Dataset, open_data
from parnassus.layers import Classifier, affine, batch_norm_classifier, dense_classifier, layer_outputs
from parnassus.report import curves, subplots
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B2.2-1", "B2.2-2", "B2.2-4")
expected = {
    "drift_plain": at_least(
        0.5, "maximum shift of the second layer's mean output, in initial standard deviations, no normalisation"
    ),
    "drift_normalised": at_most(
        0.02, "maximum shift of the mean after batch normalisation, in initial standard deviations"
    ),
    "std_ratio_plain": no_band(
        "ratio of final to initial standard deviation of the second layer's outputs, no normalisation"
    ),
    "std_ratio_normalised": between(0.9, 1.1, "ratio of final to initial standard deviation after batch normalisation"),
    "drift_ratio": at_most(0.02, "ratio of the drift with normalisation to the drift without"),
    "drift_ratio_at_book_rate": no_band(
        "ratio of the drift with normalisation to the drift without, at the book's learning rate"
    ),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 8, "width": 32}, "gpu": {"data": "fashion_mnist"}}

BOOK_RATE = 1e-3  # the book's learning rate
NUM_BINS = 120


class OutputHistory(nn.Module):
    """Histogram, mean and standard deviation of a layer's outputs at each step; part of the run's checkpoints."""

    counts: Tensor
    mean: Tensor
    std: Tensor

    def __init__(self, steps: int, low: float, high: float) -> None:
        super().__init__()
        self.low, self.high = low, high
        self.register_buffer("counts", torch.zeros(steps, NUM_BINS))
        self.register_buffer("mean", torch.zeros(steps))
        self.register_buffer("std", torch.zeros(steps))

    def add(self, step: int, values: Tensor) -> None:
        self.counts[step] = torch.histc(values.cpu(), NUM_BINS, self.low, self.high)
        self.mean[step], self.std[step] = values.mean(), values.std()

    @property
    def drift(self) -> float:
        """Maximum distance of the mean from its initial value, in initial standard deviations."""
        return float((self.mean - self.mean[0]).abs().max() / self.std[0])

    @property
    def std_ratio(self) -> float:
        """Ratio of final to initial standard deviation."""
        return float(self.std[-1] / self.std[0])


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "mnist_mini"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    width: Positive[int] = 512  # units of each of the two hidden layers
    steps: Positive[int] = 50  # gradient steps
    batch_size: Positive[int] = 64  # images per gradient step
    learning_rate: Positive[float] = 0.3  # larger of two learning rates of SGD; the other is the book's 0.001

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        rates = (BOOK_RATE, self.learning_rate)
        histories = {rate: {name: self.train(run, name, rate, data) for name in NETWORKS} for rate in rates}
        run.figure(
            "histograms over time",
            plot_histograms(histories),
            "Each column is the histogram of the outputs at one step: of the second linear layer without normalisation "
            "(left), of the second batch normalisation (right). Lines: mean, and mean ± standard deviation.",
        )
        step = range(self.steps)
        lines = {
            f"{name}, η = {rate:g}": (step, (each.mean - each.mean[0]) / each.std[0])
            for rate, networks in histories.items()
            for name, each in networks.items()
        }
        run.figure(
            "drift of the mean",
            curves(lines, x_label="step", y_label="shift of the mean, in initial std"),
            "Shift of the mean over all units and images from its initial value, in initial standard deviations.",
        )
        rows: list[dict[str, str | float]] = [
            {
                "network": name,
                "learning rate": rate,
                "initial mean": round(float(each.mean[0]), 4),
                "final mean": round(float(each.mean[-1]), 4),
                "initial std": round(float(each.std[0]), 4),
                "final std": round(float(each.std[-1]), 4),
            }
            for rate, networks in histories.items()
            for name, each in networks.items()
        ]
        run.table("output statistics", rows)
        plain, normalised = histories[self.learning_rate].values()
        book_plain, book_normalised = histories[BOOK_RATE].values()
        run.note(
            "results",
            f"With η = {self.learning_rate:g} and without normalisation the mean shifts by {plain.drift:.2f} initial "
            f"standard deviations in {self.steps} steps, and the standard deviation grows by a factor of "
            f"{plain.std_ratio:.2f}. After batch normalisation mean and standard deviation are the parameters β and γ, "
            "which change slowly regardless of the layers below: the values are "
            f"{normalised.drift:.4f} and {normalised.std_ratio:.2f}. With the book's η = {BOOK_RATE:g} the drift is "
            f"small even without normalisation ({book_plain.drift:.3f}).\n\nThe bright line on the right comes from "
            "the ReLU: the listing normalises after it, so all zeros are mapped to the same value.",
        )
        return {
            "drift_plain": plain.drift,
            "drift_normalised": normalised.drift,
            "std_ratio_plain": plain.std_ratio,
            "std_ratio_normalised": normalised.std_ratio,
            "drift_ratio": normalised.drift / plain.drift,
            "drift_ratio_at_book_rate": book_normalised.drift / book_plain.drift,
        }

    def train(self, run: Run, name: str, rate: float, data: Dataset) -> OutputHistory:
        build, layer_output, low, high = NETWORKS[name]
        torch.manual_seed(run.seed)  # all networks start from the same linear layers
        model = build(prod(data.shape), len(data.classes), hidden=(self.width, self.width))
        model, optimizer = run.prepare(model, partial(SGD, lr=rate))
        history = OutputHistory(self.steps, low, high)
        run.keep(f"{name} {rate:g}", history)
        for step, (x, y) in run.steps(data.train.pairs(self.batch_size, self.steps)):
            with torch.no_grad():
                history.add(step, layer_output(model, x))
            loss = model.loss(x, y)
            run.update(optimizer, loss)
            run.log(step, **{f"loss/{name} {rate:g}": loss.detach()})
        return history


def second_linear(model: Classifier, x: Tensor) -> Tensor:
    """The outputs of the second linear layer, before its ReLU."""
    weight, bias = model.get_parameter("network.2.weight"), model.get_parameter("network.2.bias")
    return affine(layer_outputs(cast("nn.Sequential", model.network), x)[1], weight, bias)


def second_normalisation(model: Classifier, x: Tensor) -> Tensor:
    return layer_outputs(cast("nn.Sequential", model.network), x)[2]


NETWORKS: dict[str, tuple[Callable[..., Classifier], Callable[[Classifier, Tensor], Tensor], float, float]] = {
    "plain": (dense_classifier, second_linear, -1.0, 1.0),
    "normalised": (batch_norm_classifier, second_normalisation, -1.5, 4.5),
}
"""For each network: its constructor, the layer outputs recorded, and the range of the histograms."""


def plot_histograms(histories: dict[float, dict[str, OutputHistory]]) -> "Figure":
    figure, axes = subplots(2, 2, size=(10.0, 6.4))
    titles = {"plain": "second linear layer", "normalised": "second batch normalisation"}
    for row, (rate, networks) in zip(axes, histories.items(), strict=True):
        for ax, (name, each) in zip(row, networks.items(), strict=True):
            steps = len(each.mean)
            frequencies = each.counts / each.counts.sum(1, keepdim=True)
            ax.imshow(
                frequencies.mT.clamp(max=0.08).cpu().numpy(),
                extent=(-0.5, steps - 0.5, each.low, each.high),
                origin="lower",
                aspect="auto",
                cmap="viridis",
            )
            mean, std = each.mean.cpu(), each.std.cpu()
            ax.plot(mean, color="#ffffff", linewidth=1.6)
            ax.plot(torch.stack([mean - std, mean + std], 1), color="#ffffff", linewidth=1, linestyle="--")
            ax.set(title=f"{titles[name]}, η = {rate:g}", ylabel="output")
            ax.grid(visible=False)
    for ax in axes[-1]:
        ax.set_xlabel("step")
    return figure
