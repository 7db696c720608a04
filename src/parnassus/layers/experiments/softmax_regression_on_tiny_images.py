"""Softmax regression on 2×2 images of three classes, compared with least squares (Zhao sec. 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import SGD

from parnassus.data import Split
from parnassus.data.built_in.toy import TINY_CLASSES, TINY_PROTOTYPES, tiny_images
from parnassus.layers import Classifier, LinearRegression, SoftmaxRegression, check_labels, dense_classifier, evaluate
from parnassus.layers.commands.image_classifiers import PredictImages as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.losses import accuracy, one_hot
from parnassus.report import curves, heatmap, histograms, image_grid, network_diagram, subplots
from parnassus.report.style import remove_frame
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, between, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("Z4.1", "Z4.2", "Z4.3", "Z4.4", "Z4.5", "Z4.6", "Z4.7")
expected = {
    "test_accuracy": at_least(0.83, "test accuracy after mini-batch training"),
    "bayes_accuracy": no_band("test accuracy of the nearest-prototype rule, which is Bayes optimal"),
    "suboptimality": between(0.0, 0.01, "training loss minus its minimum, found by Newton's method"),
    "least_squares_fraction_outside": at_least(0.2, "fraction of least-squares outputs below 0 or above 1"),
    "least_squares_sum_error": at_most(
        1e-6, "maximum difference between 1 and the sum of an image's least-squares outputs"
    ),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"epochs": 5}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    num_examples: Positive[int] = 600  # training images, and as many test images
    noise_std: NonNegative[float] = 0.3  # standard deviation of the noise on each pixel
    epochs: Positive[int] = 100  # passes over the training images
    batch_size: Positive[int] = 32  # images per gradient step
    learning_rate: Positive[float] = 0.5  # learning rate of SGD

    def model(self, shape: Sequence[int], classes: Sequence[str]) -> Classifier:
        return dense_classifier(prod(shape), len(classes), hidden=())

    def __call__(self, run: Run) -> dict[str, float]:
        train, test = (
            tiny_images(self.num_examples, noise=self.noise_std, seed=2 * run.seed + part) for part in (0, 1)
        )
        labels, test_labels = (check_labels(split.y, 3) for split in (train, test))
        newton = SoftmaxRegression.fit(train.x.flatten(1), labels, classes=3)
        min_loss = float(newton.loss(train.x.flatten(1), labels))
        self.plot_data_and_model(run, train)

        train, test = (split.to(run.device) for split in (train, test))
        labels, test_labels = labels.to(run.device), test_labels.to(run.device)
        model = run.build(self.model, shape=train.x.shape[1:], classes=TINY_CLASSES)
        model, optimizer = run.prepare(model, partial(SGD, lr=self.learning_rate))
        per_epoch = train.pairs(self.batch_size, 0, partial=True).steps_per_epoch
        for step, _ in descend(
            run, model, optimizer, train.pairs(self.batch_size, self.epochs * per_epoch, partial=True)
        ):
            if (step + 1) % per_epoch == 0:
                run.record(step, loss=evaluate(model, train.x, labels).loss)
        losses = run.curve("loss")[1]
        epochs = range(1, len(losses) + 1)
        run.figure(
            "training",
            curves(
                {"mini-batch SGD": (epochs, losses), "minimum": (epochs, [min_loss] * len(losses))},
                x_label="epoch",
                y_label="mean cross-entropy",
            ),
            "The loss is convex; Newton's method finds its minimum in a few steps.",
        )
        run.figure(
            "weights",
            plot_weights(newton),
            "The four weights of each class as an image: red weights are positive, blue ones negative.",
        )
        with torch.no_grad():
            predicted = model(test.x).argmax(-1).cpu()
        outputs = least_squares_outputs(train.x.flatten(1).cpu(), labels.cpu())
        run.figure(
            "least squares on one-hot labels",
            histograms(
                {f"output for {name}": outputs[:, k] for k, name in enumerate(TINY_CLASSES)}, x_label="output", bins=30
            ),
            "A linear model fitted to the one-hot labels by least squares: many outputs lie outside [0, 1]. The "
            "outputs of one image sum to 1, because its one-hot label does and the model has a bias.",
        )
        run.figure(
            "confusion matrix",
            plot_confusion_matrix(test_labels.cpu(), predicted),
            "Numbers of test images by true and predicted class.",
        )
        test_accuracy = evaluate(model, test.x, test_labels).accuracy
        best_accuracy = self.nearest_prototype_accuracy(test)
        outside = float(((outputs < 0) | (outputs > 1)).double().mean())
        run.note(
            "summary",
            f"With 15 parameters the test accuracy is {100 * test_accuracy:.1f} %. The nearest-prototype rule, "
            f"optimal for this noise, reaches {100 * best_accuracy:.1f} %. Least squares on the labels has a training "
            f"accuracy of {100 * float(accuracy(outputs, labels.cpu())):.1f} %, but {100 * outside:.0f} % of its "
            "outputs lie outside [0, 1].",
        )
        return {
            "test_accuracy": test_accuracy,
            "bayes_accuracy": best_accuracy,
            "suboptimality": evaluate(model, train.x, labels).loss - min_loss,
            "least_squares_fraction_outside": outside,
            "least_squares_sum_error": float((outputs.sum(1) - 1).abs().max()),
        }

    def plot_data_and_model(self, run: Run, train: Split) -> None:
        images = torch.cat([torch.tensor(TINY_PROTOTYPES).reshape(-1, 1, 2, 2), train.x[:12]])
        run.figure(
            "images",
            image_grid(images, columns=3, titles=TINY_CLASSES, row_labels=["prototypes", *["samples"] * 4], scale=0.8),
            "The prototype of each class, and samples with Gaussian noise on every pixel.",
        )
        run.figure(
            "model",
            network_diagram((4, 3), units=[["x₁", "x₂", "x₃", "x₄"], ["o₁", "o₂", "o₃"]]),
            "Four pixels, three logits, 12 weights and 3 biases; softmax maps the logits to probabilities.",
        )

    def nearest_prototype_accuracy(self, test: Split) -> float:
        nearest = torch.cdist(test.x.flatten(1).cpu(), torch.tensor(TINY_PROTOTYPES)).argmin(1)
        return float((nearest == check_labels(test.y, 3).cpu()).double().mean())


def least_squares_outputs(x: Tensor, labels: Tensor) -> Tensor:
    y = one_hot(labels, 3).double()
    return torch.stack([LinearRegression.fit(x.double(), y[:, label]).predict(x.double()) for label in range(3)], 1)


def plot_weights(model: SoftmaxRegression) -> "Figure":
    figure, axes = subplots(1, 3, size=(6.6, 2.5))
    limit = float(model.weight.abs().max())
    for ax, weights, name in zip(axes[0], model.weight.T, TINY_CLASSES, strict=True):
        remove_frame(ax)
        ax.imshow(weights.reshape(2, 2).numpy(), cmap="RdBu_r", vmin=-limit, vmax=limit)
        for (row, column), value in zip([(0, 0), (0, 1), (1, 0), (1, 1)], weights.tolist(), strict=True):
            is_light = abs(value) < 0.6 * limit
            ax.text(column, row, f"{value:.1f}", ha="center", va="center", color="#111111" if is_light else "#f8f8f8")
        ax.set_title(name)
    return figure


def plot_confusion_matrix(labels: Tensor, predicted: Tensor) -> "Figure":
    counts = torch.zeros(3, 3)
    counts.index_put_((labels, predicted), torch.ones(len(labels)), accumulate=True)
    return heatmap(
        counts, row_labels=TINY_CLASSES, column_labels=TINY_CLASSES, x_label="predicted", y_label="true", annotate=True
    )
