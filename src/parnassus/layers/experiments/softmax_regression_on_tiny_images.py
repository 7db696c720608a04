"""Softmax regression tells cats, chickens and dogs of four pixels apart (Zhao sec. 4)."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import SGD

from parnassus.data import Split
from parnassus.data.toy import TINY_CLASSES, TINY_PROTOTYPES, tiny_images
from parnassus.layers import Classifier, LinearRegression, SoftmaxRegression, dense_classifier, evaluate, require_labels
from parnassus.losses import accuracy, one_hot
from parnassus.report import curves, heatmap, histograms, image_grid, network_diagram, subplots
from parnassus.report.ink import plain
from parnassus.train import Run, at_least, at_most, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("Z4.1", "Z4.2", "Z4.3", "Z4.4", "Z4.5", "Z4.6", "Z4.7")
expected = {
    "test_accuracy": at_least(0.83, "share of unseen images named rightly after minibatch training"),
    "best_accuracy": reported("the same for the nearest prototype, which no method can beat on average"),
    "loss_above_newton": between(0.0, 0.01, "training loss above the least possible, which Newton's method finds"),
    "outputs_outside": at_least(0.2, "share of least-squares outputs below 0 or above 1"),
    "outputs_sum": at_most(1e-6, "how far the least-squares outputs of an image are from summing to 1"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"epochs": 5}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    images: int = 600  # training images, and as many to test
    noise: float = 0.3  # standard deviation of the noise on each pixel
    epochs: int = 100  # passes over the images
    batch: int = 32  # images a step
    rate: float = 0.5  # learning rate of plain SGD

    def model(self) -> Classifier:
        return dense_classifier(4, 3, hidden=())

    def __call__(self, run: Run) -> dict[str, float]:
        train, test = (tiny_images(self.images, noise=self.noise, seed=2 * run.seed + part) for part in (0, 1))
        labels, test_labels = (require_labels(split.y, 3) for split in (train, test))
        newton = SoftmaxRegression.fit(train.x.flatten(1), labels, classes=3)
        least = float(newton.loss(train.x.flatten(1), labels))
        self.show_task(run, train)

        train, test = (split.to(run.device) for split in (train, test))
        labels, test_labels = labels.to(run.device), test_labels.to(run.device)
        model, optimizer = run.prepare(run.build(self.model), partial(SGD, lr=self.rate))
        per_epoch = train.pairs(self.batch, 0, partial=True).epoch
        for step, _ in descend(run, model, optimizer, train.pairs(self.batch, self.epochs * per_epoch, partial=True)):
            if (step + 1) % per_epoch == 0:
                run.record(step, loss=evaluate(model, train.x, labels).loss)
        losses = run.curve("loss")[1]
        epochs = range(1, len(losses) + 1)
        run.figure(
            "training",
            curves(
                {"minibatches": (epochs, losses), "least possible": (epochs, [least] * len(losses))},
                x_label="epoch",
                y_label="mean cross-entropy",
            ),
            "The loss is convex, so there is one least value; Newton's method finds it in a few steps.",
        )
        run.figure(
            "weights",
            weight_images(newton),
            "The four weights of each class as an image: red pixels speak for the class, blue ones against it.",
        )
        with torch.no_grad():
            named = model(test.x).argmax(-1).cpu()
        outputs = least_squares_outputs(train.x.flatten(1).cpu(), labels.cpu())
        run.figure(
            "least squares on labels",
            histograms(
                {f"output for {name}": outputs[:, k] for k, name in enumerate(TINY_CLASSES)}, x_label="output", bins=30
            ),
            "A linear model fitted to the one-hot labels by least squares: many outputs are no probabilities. Those of "
            "one image do sum to 1, because its labels do and the model has a bias.",
        )
        run.figure(
            "confusion",
            confusion(test_labels.cpu(), named),
            "How many test images of each class were given each name.",
        )
        right = evaluate(model, test.x, test_labels).accuracy
        best = self.nearest_prototype(test)
        outside = float(((outputs < 0) | (outputs > 1)).double().mean())
        run.note(
            "what to see",
            f"Fifteen numbers are enough: {100 * right:.1f} % of unseen images are named rightly. Naming the nearest "
            f"prototype, the best rule for this noise, reaches {100 * best:.1f} %. Least squares on the labels names "
            f"{100 * float(accuracy(outputs, labels.cpu())):.1f} % of its training images rightly, yet "
            f"{100 * outside:.0f} % of its outputs lie outside [0, 1].",
        )
        return {
            "test_accuracy": right,
            "best_accuracy": best,
            "loss_above_newton": evaluate(model, train.x, labels).loss - least,
            "outputs_outside": outside,
            "outputs_sum": float((outputs.sum(1) - 1).abs().max()),
        }

    def show_task(self, run: Run, train: Split) -> None:
        shown = torch.cat([torch.tensor(TINY_PROTOTYPES).reshape(-1, 1, 2, 2), train.x[:12]])
        run.figure(
            "the images",
            image_grid(shown, columns=3, titles=TINY_CLASSES, row_labels=["prototypes", *["drawn"] * 4], scale=0.8),
            "A prototype for each class, and images drawn from it by noise on every pixel.",
        )
        run.figure(
            "the model",
            network_diagram((4, 3), units=[["x₁", "x₂", "x₃", "x₄"], ["o₁", "o₂", "o₃"]]),
            "Four pixels, three scores, 12 weights and 3 biases; softmax turns the scores into probabilities.",
        )

    def nearest_prototype(self, test: Split) -> float:
        nearest = torch.cdist(test.x.flatten(1).cpu(), torch.tensor(TINY_PROTOTYPES)).argmin(1)
        return float((nearest == require_labels(test.y, 3).cpu()).double().mean())


def least_squares_outputs(x: Tensor, labels: Tensor) -> Tensor:
    y = one_hot(labels, 3).double()
    return torch.stack([LinearRegression.fit(x.double(), y[:, kind]).predict(x.double()) for kind in range(3)], 1)


def weight_images(model: SoftmaxRegression) -> "Figure":
    figure, axes = subplots(1, 3, size=(6.6, 2.5))
    limit = float(model.weight.abs().max())
    for ax, weights, name in zip(axes[0], model.weight.T, TINY_CLASSES, strict=True):
        plain(ax)
        ax.imshow(weights.reshape(2, 2).numpy(), cmap="RdBu_r", vmin=-limit, vmax=limit)
        for (row, column), value in zip([(0, 0), (0, 1), (1, 0), (1, 1)], weights.tolist(), strict=True):
            pale = abs(value) < 0.6 * limit
            ax.text(column, row, f"{value:.1f}", ha="center", va="center", color="#111111" if pale else "#f8f8f8")
        ax.set_title(name)
    return figure


def confusion(labels: Tensor, named: Tensor) -> "Figure":
    counts = torch.zeros(3, 3)
    counts.index_put_((labels, named), torch.ones(len(labels)), accumulate=True)
    return heatmap(
        counts, row_labels=TINY_CLASSES, column_labels=TINY_CLASSES, x_label="named", y_label="true", annotate=True
    )
