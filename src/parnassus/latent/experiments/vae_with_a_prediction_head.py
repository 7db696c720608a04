"""Compress, reconstruct, predict: three goals of a code and the price of each (book sec. 6.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import DataError, Split, open_data
from parnassus.latent.decoders import BernoulliDecoder
from parnassus.latent.dense import flat_decoder, flat_encoder
from parnassus.latent.prediction_head import Goals, PredictingVAE, three_goals
from parnassus.latent.vae import VAE
from parnassus.layers import mlp
from parnassus.probability import entropy
from parnassus.report import INK, PALETTE, curves, scatter, subplots
from parnassus.train import Run, at_least, at_most, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B6.4-9", "B6.4-10")
expected = {
    "accuracy_without": reported("share of unseen images that a head names rightly from the code of a plain VAE"),
    "accuracy_with": at_least(0.85, "the same with the largest weight γ of the prediction"),
    "accuracy_gain": at_least(0.1, "what the weight adds"),
    "distortion_without": reported("nats to correct an unseen image, plain VAE"),
    "distortion_cost": at_most(0.5, "nats of distortion that the largest γ costs"),
    "information_without": reported("I(X, Z) of the plain VAE over the unseen images, nats"),
    "information_with": reported("the same with the largest γ"),
    "label_information_without": reported("H(Y) − cross-entropy ≤ I(Z, Y) of the plain VAE, nats"),
    "label_information_gain": at_least(0.4, "nats that the code says of the class beyond the plain VAE's"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16, "gammas": (0.0, 10.0)},
    "gpu": {"data": "mnist", "steps": 15_000, "batch": 256, "width": 1_024, "latent": 4, "lr": 5e-4},
}


class Family(nn.ModuleList):
    """One model for each γ, trained side by side."""

    def one(self, place: int) -> PredictingVAE:
        model = self[place]
        assert isinstance(model, PredictingVAE)
        return model

    def loss(self, x: Tensor, label: Tensor) -> Tensor:
        return torch.stack([self.one(place).loss(x, label) for place in range(len(self))]).sum()


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images by class: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    gammas: tuple[float, ...] = (0.0, 1.0, 3.0, 10.0, 30.0)  # weights of the prediction, 0 first
    steps: int = 1_000  # gradient steps
    batch: int = 128  # images a step
    latent: int = 3  # numbers in a code
    width: int = 128  # hidden units
    lr: float = 2e-3  # Adam's learning rate

    def model(self, shape: Sequence[int], classes: int) -> Family:
        return Family(self.one(shape, classes, gamma) for gamma in self.gammas)

    def one(self, shape: Sequence[int], classes: int, gamma: float) -> PredictingVAE:
        encoder = flat_encoder(shape, 2 * self.latent, width=self.width, layers=2)
        decoder = BernoulliDecoder(flat_decoder(self.latent, shape, width=self.width, layers=2))
        head = mlp((self.latent, self.width // 2, classes))
        return PredictingVAE(VAE(encoder, decoder, self.latent), head, gamma=gamma)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        if not data.classes or data.test.y is None:
            raise DataError(f"{data.name} has no classes to predict")
        if len(self.gammas) < 2 or self.gammas[0] != 0:
            raise DataError(f"gammas must begin with 0 and have a second; got {self.gammas}")
        model = run.build(self.model, shape=data.shape, classes=len(data.classes))
        model, optimizer = run.prepare(model, partial(Adam, lr=self.lr))
        batches = data.train.pairs(self.batch, self.steps).map(lambda pair: (torch.bernoulli(pair[0]), pair[1]))
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss)

        unseen = Split(torch.bernoulli(data.test.x[:1_000]), data.test.y[:1_000])
        found = [measure(model.one(place), unseen) for place in range(len(self.gammas))]
        goals, accuracies = [each[0] for each in found], [each[1] for each in found]
        shares = torch.bincount(data.test.y[:1_000]).double() / len(unseen)
        run.figure("goals", draw_goals(self.gammas, goals, float(entropy(shares))), GOALS)
        lines = {"accuracy": (self.gammas, accuracies)}
        run.figure("accuracy", curves(lines, x_label="weight γ of the prediction", y_label="accuracy"), ACCURACY)
        with torch.no_grad():
            for place, name in ((0, "without"), (-1, "with")):
                codes = model.one(place % len(self.gammas)).vae.encode(unseen.x)
                cloud = scatter(codes[:, :2], labels=unseen.y, classes=data.classes, x_label="z₁", y_label="z₂")
                run.figure(
                    f"codes {name}",
                    cloud,
                    f"Codes of unseen images at γ = {self.gammas[place]:g}, the first two of {self.latent} numbers.",
                )
        rows: list[dict[str, str | float]] = [
            {
                "γ": gamma,
                "compress: I(X, Z)": each.information,
                "reconstruct: D": each.distortion,
                "predict: I(Z, Y) ≥": each.label_information,
                "accuracy": accuracy,
            }
            for gamma, each, accuracy in zip(self.gammas, goals, accuracies, strict=True)
        ]
        run.table("three goals", rows, "Unseen images, in nats.")
        first, last = goals[0], goals[-1]
        return {
            "accuracy_without": accuracies[0],
            "accuracy_with": accuracies[-1],
            "accuracy_gain": accuracies[-1] - accuracies[0],
            "distortion_without": first.distortion,
            "distortion_cost": last.distortion - first.distortion,
            "information_without": first.information,
            "information_with": last.information,
            "label_information_without": first.label_information,
            "label_information_gain": last.label_information - first.label_information,
        }


GOALS = (
    "Three goals, one panel each, in nats: what the code keeps of the image, what is lost of it, and what the code is "
    "known to say of the class (the dashed line is all there is to say). Arrows show the wished direction."
)
ACCURACY = "Share of unseen images that the head names rightly from the middle of their codes."


@torch.no_grad()
def measure(model: PredictingVAE, split: Split) -> tuple[Goals, float]:
    assert split.y is not None
    right = model.class_probabilities(split.x).argmax(1) == split.y
    return three_goals(model, split.x, split.y, draws=10), float(right.float().mean())


def draw_goals(gammas: Sequence[float], goals: Sequence[Goals], most: float) -> "Figure":
    """The three numbers of each γ as bars; `most` is H(Y), all that can be said of the class."""
    figure, axes = subplots(1, 3, size=(10.4, 3.2))
    names = [f"{gamma:g}" for gamma in gammas]
    panels = {
        "compress: I(X, Z) ↓": [each.information for each in goals],
        "reconstruct: D ↓": [each.distortion for each in goals],
        "predict: I(Z, Y) ↑": [each.label_information for each in goals],
    }
    for place, (title, values) in enumerate(panels.items()):
        ax = axes[0, place]
        drawn = ax.bar(names, values, color=PALETTE[place], width=0.65)
        ax.bar_label(drawn, fmt="{:.2f}", padding=2, fontsize=9)
        ax.set_title(title)
        ax.set(xlabel="γ", ylabel="nats" if place == 0 else "")
        ax.margins(y=0.15)
        ax.grid(visible=False, axis="x")
    axes[0, 2].axhline(most, color=INK, linestyle="--", linewidth=1.2)
    axes[0, 2].annotate("H(Y)", (0, most), xytext=(0, 3), textcoords="offset points", ha="center")
    return figure
