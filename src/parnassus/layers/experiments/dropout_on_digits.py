"""Dropout at several rates: generalisation gap, robustness to noise, model averaging (book sec. 2.2)."""

from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import SGD

from parnassus.data import Dataset, open_data
from parnassus.layers import Classifier, check_labels, dropout_classifier, evaluate
from parnassus.losses import softmax
from parnassus.report import PALETTE, curves, subplots
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, at_most, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B2.2-5", "B2.2-6", "B2.2-7", "D1.6.1", "D1.6.2", "Z5.12")
expected = {
    "gap_without": at_least(0.3, "test loss minus training loss, without dropout"),
    "gap_with_half": no_band("test loss minus training loss, with dropout rate ½"),
    "gap_ratio": at_most(0.92, "ratio of the gap with rate ½ to the gap without dropout"),
    "accuracy_without": at_least(0.75, "test accuracy without dropout"),
    "accuracy_gain_with_half": at_least(0.0, "test accuracy with rate ½ minus that without dropout"),
    "noisy_accuracy_gain_with_half": at_least(
        0.005, "accuracy gain from rate ½ on images with noise of standard deviation ½"
    ),
    "distance_to_average": at_most(
        0.1, "mean total variation distance of a pass without dropout to the mean over masks, rate ½"
    ),
    "distance_of_one_mask": no_band(
        "mean total variation distance of a pass with one mask to the mean over masks, rate ½"
    ),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"epochs": 2, "num_networks": 1, "num_masks": 10},
    "gpu": {
        "data": "fashion_mnist",
        "num_examples": 6_000,
        "widths": (256, 256),
        "batch_size": 256,
        "epochs": 60,
    },
}

RATES = (0.0, 0.2, 0.5, 0.8)
NOISE = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "mnist_mini"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_examples: Positive[int] = 1_000  # training images; few, so that the network overfits
    widths: tuple[Positive[int], ...] = (128,)  # units of the hidden layers
    epochs: Positive[int] = 30  # passes over the training images
    batch_size: Positive[int] = 64  # images per gradient step
    learning_rate: Positive[float] = 0.2  # learning rate of SGD
    num_networks: Positive[int] = 3  # networks per dropout rate
    num_masks: Positive[int] = 100  # dropout masks averaged

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        data = replace(data, train=data.train.take(self.num_examples))
        labels, test_labels = (check_labels(split.y, len(data.classes)) for split in (data.train, data.test))
        networks = {
            p: [self.train(run, p, data, first=index == 0) for index in range(self.num_networks)] for p in RATES
        }
        training = {p: [evaluate(model, data.train.x, labels) for model in models] for p, models in networks.items()}
        test = {
            sigma: {
                p: [evaluate(model, add_noise(data.test.x, sigma), test_labels) for model in models]
                for p, models in networks.items()
            }
            for sigma in NOISE
        }
        train_loss = torch.tensor([[each.loss for each in training[p]] for p in RATES])
        test_loss = torch.tensor([[each.loss for each in test[0.0][p]] for p in RATES])
        accuracy = torch.tensor([[[each.accuracy for each in test[sigma][p]] for p in RATES] for sigma in NOISE])
        run.figure(
            "loss by rate",
            curves(
                {"training images": (RATES, train_loss.mean(1)), "test images": (RATES, test_loss.mean(1))},
                x_label="dropout rate p",
                y_label="cross-entropy",
                bands={
                    "training images": (train_loss.amin(1), train_loss.amax(1)),
                    "test images": (test_loss.amin(1), test_loss.amax(1)),
                },
            ),
            f"After {self.epochs} epochs on {len(data.train)} images, both in evaluation mode; mean and range over "
            f"{self.num_networks} networks. The difference is the generalisation gap.",
        )
        run.figure(
            "accuracy under noise",
            curves(
                {f"p = {p:g}": (NOISE, accuracy[:, index].mean(1)) for index, p in enumerate(RATES)},
                x_label="standard deviation of the pixel noise",
                y_label="test accuracy",
            ),
            "Gaussian noise added to the test images; the networks are trained without noise.",
        )
        run.figure(
            "loss curves", self.plot_losses(run), "One network per rate; dropout makes the training loss noisier."
        )
        distances = [self.distance_to_average(model, data.test.x) for model in networks[0.5]]
        one_pass, one_mask = (sum(column) / len(column) for column in zip(*distances, strict=True))
        gap, half = test_loss.mean(1) - train_loss.mean(1), RATES.index(0.5)
        gain = accuracy[:, half].mean(1) - accuracy[:, 0].mean(1)
        rows: list[dict[str, str | float]] = [
            {
                "rate": p,
                "training loss": round(float(train_loss[index].mean()), 4),
                "test loss": round(float(test_loss[index].mean()), 4),
                "gap": round(float(gap[index]), 4),
                "test accuracy": round(float(accuracy[0, index].mean()), 4),
                "test accuracy, noise ½": round(float(accuracy[NOISE.index(0.5), index].mean()), 4),
            }
            for index, p in enumerate(RATES)
        ]
        run.table("results by rate", rows)
        run.note(
            "results",
            f"With p = ½ the gap is {float(gap[half]):.2f} instead of {float(gap[0]):.2f}; accuracy changes by "
            f"{100 * float(gain[0]):+.1f} points on clean images and by {100 * float(gain[NOISE.index(0.5)]):+.1f} on "
            f"noisy ones, of {len(data.test)} test images.\n\nA pass without dropout approximates the average over all "
            f"thinned networks: the total variation distance of its probabilities to the mean over {self.num_masks} "
            f"masks is {one_pass:.3f}, that of a single mask {one_mask:.3f}.",
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
        rates = [p] * len(self.widths)
        model = dropout_classifier(prod(data.shape), len(data.classes), hidden=self.widths, rates=rates)
        model, optimizer = run.prepare(model, partial(SGD, lr=self.learning_rate))
        labels = check_labels(data.test.y, len(data.classes))
        per_epoch = data.train.pairs(self.batch_size, 0, partial=True).steps_per_epoch
        batches = data.train.pairs(self.batch_size, self.epochs * per_epoch, partial=True)
        for step, (x, y) in run.steps(batches):
            loss = model.loss(x, y)
            run.update(optimizer, loss)
            if first:
                run.log(step, **{f"loss/p = {p:g}": loss.detach()})
                if (step + 1) % per_epoch == 0:
                    run.record(step, **{f"test_loss/p = {p:g}": evaluate(model, data.test.x, labels).loss})
        return model

    @torch.no_grad()
    def distance_to_average(self, model: Classifier, x: Tensor) -> tuple[float, float]:
        """Mean total variation distances to the mean over masks: of a pass without dropout, and of a single mask."""
        model.train()
        thinned = torch.stack([softmax(model(x)) for _ in range(self.num_masks)])
        mean = thinned.mean(0)
        model.eval()
        one_pass, one_mask = (each.sub(mean).abs().sum(-1).mean() / 2 for each in (softmax(model(x)), thinned[0]))
        return float(one_pass), float(one_mask)

    def plot_losses(self, run: Run) -> "Figure":
        figure, axes = subplots(1, 2, size=(10.0, 3.8))
        for p, colour in zip(RATES, PALETTE, strict=False):
            for ax, name in zip(axes[0], ("loss", "test_loss"), strict=True):
                step, values = run.curve(f"{name}/p = {p:g}")
                ax.plot(step, values, color=colour, label=f"p = {p:g}", linewidth=1.2)
        axes[0, 0].set(title="training batches, with dropout", xlabel="step", ylabel="cross-entropy", yscale="log")
        axes[0, 1].set(title="test images, without dropout", xlabel="step")
        axes[0, 1].legend()
        return figure


def add_noise(x: Tensor, sigma: float) -> Tensor:
    generator = torch.Generator().manual_seed(0)  # the same noise for every network
    return x + sigma * torch.randn(x.shape, generator=generator).to(x)
