"""VAE of digits with a prediction head: compression, reconstruction and prediction (book sec. 6.4)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import DataError, Split, open_grey_images
from parnassus.latent.autoencoders.dense_networks import mlp_decoder, mlp_encoder
from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.predictive_vae import CodeMetrics, PredictiveVAE, evaluate_code
from parnassus.latent.variational.vae import VAE
from parnassus.layers import mlp
from parnassus.layers.commands.image_classifiers import IMAGE_SUFFIXES, predict_images
from parnassus.probability import entropy
from parnassus.report import INK, PALETTE, curves, scatter, subplots
from parnassus.setting_types import GreyImageData
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, descend, no_band
from parnassus.train.sample_predict_evaluate import Input, ResultRow
from parnassus.train.trained import TrainedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B6.4-9", "B6.4-10")
expected = {
    "accuracy_without": no_band("test accuracy of a head on the code of a VAE trained without labels"),
    "accuracy_with": at_least(0.85, "test accuracy of the head with the largest weight γ of the prediction loss"),
    "accuracy_gain": at_least(0.1, "difference of the two accuracies"),
    "distortion_without": no_band("distortion of test images with γ = 0, nats"),
    "distortion_increase": at_most(0.5, "increase of the distortion with the largest γ, nats"),
    "information_without": no_band("I(X, Z) over the test images with γ = 0, nats"),
    "information_with": no_band("I(X, Z) over the test images with the largest γ, nats"),
    "label_information_without": no_band("H(Y) − cross-entropy ≤ I(Z, Y) with γ = 0, nats"),
    "label_information_gain": at_least(0.4, "increase of the lower bound of I(Z, Y) with the largest γ, nats"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16, "gammas": (0.0, 10.0)},
    "gpu": {
        "data": "mnist",
        "steps": 15_000,
        "batch_size": 256,
        "width": 1_024,
        "latent_dim": 4,
        "learning_rate": 5e-4,
    },
}


class PredictiveVAEs(nn.ModuleList):
    """One model per γ, trained side by side."""

    def model(self, index: int) -> PredictiveVAE:
        model = self[index]
        assert isinstance(model, PredictiveVAE)
        return model

    def loss(self, x: Tensor, label: Tensor) -> Tensor:
        return torch.stack([self.model(index).loss(x, label) for index in range(len(self))]).sum()


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    gammas: tuple[NonNegative[float], ...] = (0.0, 1.0, 3.0, 10.0, 30.0)  # weights γ of the prediction loss, 0 first
    steps: Positive[int] = 1_000  # gradient steps
    batch_size: Positive[int] = 128  # images per gradient step
    latent_dim: Positive[int] = 3  # dimension of the code
    width: Positive[int] = 128  # hidden units
    learning_rate: Positive[float] = 2e-3  # Adam's learning rate

    def model(self, shape: Sequence[int], classes: Sequence[str]) -> PredictiveVAEs:
        return PredictiveVAEs(self.build_model(shape, len(classes), gamma) for gamma in self.gammas)

    def build_model(self, shape: Sequence[int], classes: int, gamma: float) -> PredictiveVAE:
        encoder = mlp_encoder(shape, 2 * self.latent_dim, width=self.width, num_layers=2)
        decoder = BernoulliDecoder(mlp_decoder(self.latent_dim, shape, width=self.width, num_layers=2))
        head = mlp((self.latent_dim, self.width // 2, classes))
        return PredictiveVAE(VAE(encoder, decoder, self.latent_dim), head, gamma=gamma)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_grey_images(self.data, self.image_size).to(run.device)
        if not data.classes or data.test.y is None:
            raise DataError(f"images must have classes to predict; {data.name} has none")
        if len(self.gammas) < 2 or self.gammas[0] != 0:
            raise DataError(f"gammas must begin with 0 and have at least two values; got gammas={self.gammas}")
        model = run.build(self.model, shape=data.shape, classes=data.classes)
        model, optimizer = run.prepare(model, partial(Adam, lr=self.learning_rate))
        batches = data.train.pairs(self.batch_size, self.steps).map(lambda pair: (torch.bernoulli(pair[0]), pair[1]))
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss)

        test = Split(torch.bernoulli(data.test.x[:1_000]), data.test.y[:1_000])
        results = [evaluate_model(model.model(index), test) for index in range(len(self.gammas))]
        metrics, accuracies = [each[0] for each in results], [each[1] for each in results]
        frequencies = torch.bincount(data.test.y[:1_000]).double() / len(test)
        run.figure("metrics", plot_metrics(self.gammas, metrics, float(entropy(frequencies))), METRICS)
        lines = {"accuracy": (self.gammas, accuracies)}
        run.figure("accuracy", curves(lines, x_label="weight γ of the prediction loss", y_label="accuracy"), ACCURACY)
        with torch.no_grad():
            for index, name in ((0, "without"), (-1, "with")):
                codes = model.model(index % len(self.gammas)).vae.encode(test.x)
                figure = scatter(codes[:, :2], labels=test.y, classes=data.classes, x_label="z₁", y_label="z₂")
                run.figure(
                    f"codes {name}",
                    figure,
                    f"Codes of test images at γ = {self.gammas[index]:g}, first two of {self.latent_dim} coordinates.",
                )
        rows: list[dict[str, str | float]] = [
            {
                "γ": gamma,
                "compression: I(X, Z)": each.information,
                "reconstruction: D": each.distortion,
                "prediction: I(Z, Y) ≥": each.label_information,
                "accuracy": accuracy,
            }
            for gamma, each, accuracy in zip(self.gammas, metrics, accuracies, strict=True)
        ]
        run.table("metrics", rows, "Test images; all but the accuracy in nats.")
        first, last = metrics[0], metrics[-1]
        return {
            "accuracy_without": accuracies[0],
            "accuracy_with": accuracies[-1],
            "accuracy_gain": accuracies[-1] - accuracies[0],
            "distortion_without": first.distortion,
            "distortion_increase": last.distortion - first.distortion,
            "information_without": first.information,
            "information_with": last.information,
            "label_information_without": first.label_information,
            "label_information_gain": last.label_information - first.label_information,
        }


@dataclass(frozen=True)
class Predict:
    suffixes: ClassVar[tuple[str, ...]] = IMAGE_SUFFIXES
    gamma: NonNegative[float] | None = None  # weight of the prediction loss in training; by default the largest
    top_k: Positive[int] = 3  # classes reported for each image

    def __call__(self, trained: TrainedRun, inputs: Sequence[Input]) -> Iterator[ResultRow]:
        gammas = cast("Experiment", trained.experiment).gammas
        gamma = max(gammas) if self.gamma is None else self.gamma
        if gamma not in gammas:
            raise DataError(f"gamma must be one of {', '.join(f'{each:g}' for each in gammas)}; got gamma={gamma:g}")
        model = cast("PredictiveVAEs", trained.model).model(gammas.index(gamma))
        return predict_images(model.class_logits, trained, inputs, top_k=self.top_k)


METRICS = (
    "Mutual information of image and code, distortion, and a lower bound of the mutual information of code and class, "
    "which is at label_entropy H(Y) (dashed line). Arrows show the direction of improvement."
)
ACCURACY = "Test accuracy of the head at the posterior mean."


@torch.no_grad()
def evaluate_model(model: PredictiveVAE, split: Split) -> tuple[CodeMetrics, float]:
    assert split.y is not None
    correct = model.class_probabilities(split.x).argmax(1) == split.y
    return evaluate_code(model, split.x, split.y, num_draws=10), float(correct.float().mean())


def plot_metrics(gammas: Sequence[float], metrics: Sequence[CodeMetrics], label_entropy: float) -> "Figure":
    """The three metrics at each γ as bars; `label_entropy` is H(Y), the maximum of I(Z, Y)."""
    figure, axes = subplots(1, 3, size=(10.4, 3.2))
    names = [f"{gamma:g}" for gamma in gammas]
    panels = {
        "compression: I(X, Z) ↓": [each.information for each in metrics],
        "reconstruction: D ↓": [each.distortion for each in metrics],
        "prediction: I(Z, Y) ↑": [each.label_information for each in metrics],
    }
    for index, (title, values) in enumerate(panels.items()):
        ax = axes[0, index]
        bars = ax.bar(names, values, color=PALETTE[index], width=0.65)
        ax.bar_label(bars, fmt="{:.2f}", padding=2, fontsize=9)
        ax.set_title(title)
        ax.set(xlabel="γ", ylabel="nats" if index == 0 else "")
        ax.margins(y=0.15)
        ax.grid(visible=False, axis="x")
    axes[0, 2].axhline(label_entropy, color=INK, linestyle="--", linewidth=1.2)
    axes[0, 2].annotate("H(Y)", (0, label_entropy), xytext=(0, 3), textcoords="offset points", ha="center")
    return figure
