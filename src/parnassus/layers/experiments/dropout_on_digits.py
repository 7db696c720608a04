"""Dropout at several rates: a smaller gap, and a network that minds noise less? (book sec. 2.2)."""

from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import SGD

from parnassus.data import Dataset, open_data
from parnassus.layers import Classifier, dropout_classifier, evaluate, require_labels
from parnassus.losses import softmax
from parnassus.report import PALETTE, curves, subplots
from parnassus.train import Run, at_least, at_most, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B2.2-5", "B2.2-6", "B2.2-7", "D1.6.1", "D1.6.2", "Z5.12")
expected = {
    "gap_without": at_least(0.3, "test loss less training loss, without dropout"),
    "gap_with_half": reported("the same at rate ½"),
    "gap_ratio": at_most(0.92, "the gap at rate ½ over the gap without dropout"),
    "accuracy_without": at_least(0.75, "test accuracy without dropout"),
    "accuracy_gain_with_half": at_least(0.0, "what rate ½ adds to it"),
    "noisy_accuracy_gain_with_half": at_least(0.005, "the same on images with noise of spread ½"),
    "distance_to_average": at_most(0.1, "mean distance of one scaled pass from the mean over masks, rate ½"),
    "distance_of_one_mask": reported("the same of a single mask"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"epochs": 2, "networks": 1, "masks": 10},
    "gpu": {"data": "fashion_mnist", "examples": 6_000, "hidden": (256, 256), "batch": 256, "epochs": 60},
}

RATES = (0.0, 0.2, 0.5, 0.8)
NOISE = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # mnist_mini, mnist, fashion_mnist, digits, or a folder or file of your own
    examples: int = 1_000  # training images; few, so that there is something to overfit
    hidden: tuple[int, ...] = (128,)  # units of the hidden layers
    epochs: int = 30  # passes over the training images
    batch: int = 64  # images a step
    rate: float = 0.2  # learning rate of plain SGD
    networks: int = 3  # networks of each kind
    masks: int = 100  # masks to average over

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        data = replace(data, train=data.train.take(self.examples))
        labels, test_labels = (require_labels(split.y, len(data.classes)) for split in (data.train, data.test))
        kinds = {p: [self.train(run, p, data, first=index == 0) for index in range(self.networks)] for p in RATES}
        seen = {p: [evaluate(model, data.train.x, labels) for model in models] for p, models in kinds.items()}
        tested = {
            sigma: {
                p: [evaluate(model, noisy(data.test.x, sigma), test_labels) for model in models]
                for p, models in kinds.items()
            }
            for sigma in NOISE
        }
        train_loss = torch.tensor([[each.loss for each in seen[p]] for p in RATES])
        test_loss = torch.tensor([[each.loss for each in tested[0.0][p]] for p in RATES])
        accuracy = torch.tensor([[[each.accuracy for each in tested[sigma][p]] for p in RATES] for sigma in NOISE])
        run.figure(
            "loss by rate",
            curves(
                {"training images": (RATES, train_loss.mean(1)), "test images": (RATES, test_loss.mean(1))},
                x_label="rate p of dropout",
                y_label="cross-entropy",
                bands={
                    "training images": (train_loss.amin(1), train_loss.amax(1)),
                    "test images": (test_loss.amin(1), test_loss.amax(1)),
                },
            ),
            f"After {self.epochs} epochs on {len(data.train)} images, both in evaluation mode; mean and range of "
            f"{self.networks} networks. Their distance is the generalisation gap.",
        )
        run.figure(
            "accuracy under noise",
            curves(
                {f"p = {p:g}": (NOISE, accuracy[:, index].mean(1)) for index, p in enumerate(RATES)},
                x_label="spread of the noise added to the pixels",
                y_label="test accuracy",
            ),
            "Normal noise on the test images, which no network saw in training.",
        )
        run.figure("loss in time", self.in_time(run), "One network of each rate: dropout makes training noisier.")
        averaged = [self.against_average(model, data.test.x) for model in kinds[0.5]]
        one_pass, one_mask = (sum(column) / len(column) for column in zip(*averaged, strict=True))
        gap, half = test_loss.mean(1) - train_loss.mean(1), RATES.index(0.5)
        gain = accuracy[:, half].mean(1) - accuracy[:, 0].mean(1)
        rows: list[dict[str, str | float]] = [
            {
                "rate": p,
                "training loss": round(float(train_loss[index].mean()), 4),
                "test loss": round(float(test_loss[index].mean()), 4),
                "gap": round(float(gap[index]), 4),
                "test accuracy": round(float(accuracy[0, index].mean()), 4),
                "with noise ½": round(float(accuracy[NOISE.index(0.5), index].mean()), 4),
            }
            for index, p in enumerate(RATES)
        ]
        run.table("by rate", rows)
        run.note(
            "what to see",
            f"At p = ½ the gap is {float(gap[half]):.2f} instead of {float(gap[0]):.2f}; accuracy changes by "
            f"{100 * float(gain[0]):+.1f} points on clean images and by {100 * float(gain[NOISE.index(0.5)]):+.1f} on "
            f"noisy ones, of {len(data.test)} test images.\n\nOne pass without dropout stands for the average over all "
            f"thinned networks: its probabilities are {one_pass:.3f} from the mean over {self.masks} masks, where a "
            f"single mask is {one_mask:.3f} away (half the sum of absolute differences).",
        )
        return {
            "gap_without": float(gap[0]),
            "gap_with_half": float(gap[half]),
            "gap_ratio": float(gap[half] / gap[0]),
            "accuracy_without": float(accuracy[0, 0].mean()),
            "accuracy_gain_with_half": float(gain[0]),
            "noisy_accuracy_gain_with_half": float(gain[NOISE.index(0.5)]),
            "distance_to_average": one_pass,
            "distance_of_one_mask": one_mask,
        }

    def train(self, run: Run, p: float, data: Dataset, *, first: bool) -> Classifier:
        rates = [p] * len(self.hidden)
        model = dropout_classifier(prod(data.shape), len(data.classes), hidden=self.hidden, rates=rates)
        model, optimizer = run.prepare(model, partial(SGD, lr=self.rate))
        labels = require_labels(data.test.y, len(data.classes))
        per_epoch = data.train.pairs(self.batch, 0, partial=True).epoch
        batches = data.train.pairs(self.batch, self.epochs * per_epoch, partial=True)
        for step, (x, y) in run.steps(batches):
            loss = model.loss(x, y)
            run.update(optimizer, loss)
            if first:
                run.log(step, **{f"loss/p = {p:g}": loss.detach()})
                if (step + 1) % per_epoch == 0:
                    run.record(step, **{f"test_loss/p = {p:g}": evaluate(model, data.test.x, labels).loss})
        return model

    @torch.no_grad()
    def against_average(self, model: Classifier, x: Tensor) -> tuple[float, float]:
        """Mean total variation between the mean over masks and one scaled pass, and a single mask."""
        model.train()
        thinned = torch.stack([softmax(model(x)) for _ in range(self.masks)])
        mean = thinned.mean(0)
        model.eval()
        one_pass, one_mask = (each.sub(mean).abs().sum(-1).mean() / 2 for each in (softmax(model(x)), thinned[0]))
        return float(one_pass), float(one_mask)

    def in_time(self, run: Run) -> "Figure":
        figure, axes = subplots(1, 2, size=(10.0, 3.8))
        for p, colour in zip(RATES, PALETTE, strict=False):
            for ax, name in zip(axes[0], ("loss", "test_loss"), strict=True):
                step, values = run.curve(f"{name}/p = {p:g}")
                ax.plot(step, values, color=colour, label=f"p = {p:g}", linewidth=1.2)
        axes[0, 0].set(title="training batches, with dropout", xlabel="step", ylabel="cross-entropy", yscale="log")
        axes[0, 1].set(title="test images, without", xlabel="step")
        axes[0, 1].legend()
        return figure


def noisy(x: Tensor, sigma: float) -> Tensor:
    source = torch.Generator().manual_seed(0)  # the same noise for every network
    return x + sigma * torch.randn(x.shape, generator=source).to(x)
