"""Kernel SHAP of an image classifier, with tiles or superpixels as players (book secs. 17.0, 17.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from jaxtyping import Int
from torch import Tensor, nn

from parnassus.data import DataError, Dataset, open_images
from parnassus.layers import Classifier, check_labels, evaluate
from parnassus.layers.commands.image_classifiers import EvaluateImages as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.layers.commands.image_classifiers import PredictImages as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.optim import Adam
from parnassus.report import FAINT, PALETTE, subplots
from parnassus.setting_types import ImageData
from parnassus.shapley.attributions.attribution import Attribution, explain
from parnassus.shapley.attributions.deletion_curve import deletion_curve
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.masked_images import expand_group_values, gaussian_blur, masked_images
from parnassus.shapley.attributions.superpixels import superpixels, tiles
from parnassus.shapley.figures.image_maps import plot_class_attributions
from parnassus.train import Positive, Run, at_least, at_most, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B17.0-1", "B17.3-1", "B17.4-3")
expected = {
    "accuracy": at_least(0.9, "accuracy on test images"),
    "max_gap": at_most(1e-5, "maximum difference between a logit and the sum of its SHAP values"),
    "deletion_shap": at_most(0.22, "mean of the deletion curve of the probability, largest SHAP values first"),
    "deletion_random": at_least(0.3, "mean of the deletion curve of the probability, random order"),
    "deletion_background_difference": no_band(
        "mean of the deletion curve of the probability, tiles that differ most from the background first"
    ),
    "standard_error": no_band("ratio of the root mean squares of standard errors and SHAP values"),
    "tiles": no_band("number of players: tiles of an image"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {
        "steps": 20,
        "tiles_across": 4,
        "max_evals": 60,
        "num_explained": 5,
        "background_size": 2,
        "num_random_orders": 3,
    },
    "gpu": {
        "data": "mnist",
        "steps": 4_000,
        "batch_size": 256,
        "channels": 32,
        "max_evals": 4_000,
        "background_size": 20,
    },
}
SHOWN = 4
"""Images in the figure of SHAP values."""


@dataclass(frozen=True)
class Experiment:
    data: ImageData = "mnist_mini"  # images by class, or a path to an image folder
    image_size: Positive[int] | None = None  # height and width to which images of a folder are resized
    steps: Positive[int] = 400  # gradient steps
    batch_size: Positive[int] = 50  # images per gradient step
    channels: Positive[int] = 8  # channels of the first convolution; twice as many in the second
    learning_rate: Positive[float] = 3e-3  # Adam's learning rate
    tiles_across: Positive[int] = 7  # tiles per row of an image
    max_evals: Positive[int] = 600  # coalitions of tiles evaluated per image
    background_size: Positive[int] = 5  # background images, which replace missing tiles
    num_explained: Positive[int] = 16  # test images that are explained
    num_random_orders: Positive[int] = 5  # random deletion orders per image

    def model(self, shape: Sequence[int], classes: Sequence[str]) -> Classifier:
        return convolutional(shape[0], len(classes), self.channels)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_images(self.data, self.image_size).to(run.device)
        if min(data.shape[1:]) < self.tiles_across:
            size = f"{self.tiles_across} × {self.tiles_across}"
            raise DataError(f"images must have at least {size} pixels; {self.data} has {data.shape}")
        labels = check_labels(data.test.y, len(data.classes))
        network = run.build(self.model, shape=data.shape, classes=data.classes)
        network, optimizer = run.prepare(network, partial(Adam, lr=self.learning_rate))
        for step, loss in descend(run, network, optimizer, data.train.pairs(self.batch_size, self.steps)):
            run.log(step, loss=loss)

        background = data.train.x[torch.randperm(len(data.train.x))[: self.background_size].to(run.device)]
        images = select_uncertain(network, data.test.x[:500], self.num_explained)
        grid = self.grid(data.shape)
        value = masked_images(network, background, grid)
        found = explain(value, images.flatten(1), self.max_evals)
        self.plot_classes(run, data, images, found, grid)
        self.compare_groups(run, network, data, images[:1], background)
        deletion = self.plot_deletion(run, value, images, found)
        return {
            "accuracy": evaluate(network, data.test.x, labels).accuracy,
            "max_gap": float((found.prediction - value.model(images.flatten(1))).abs().max()),
            "deletion_shap": deletion["SHAP values"],
            "deletion_random": deletion["random order"],
            "deletion_background_difference": deletion["difference from the background"],
            "standard_error": float(found.errors.square().mean().sqrt() / found.values.square().mean().sqrt()),
            "tiles": value.players,
        }

    def grid(self, shape: Sequence[int]) -> Int[Tensor, "height width"]:
        _, height, width = shape
        return tiles(height, width, side=-(-width // self.tiles_across))

    def plot_classes(self, run: Run, data: Dataset, images: Tensor, found: Attribution, grid: Tensor) -> None:
        """For each image the SHAP values of its two most probable classes, and their difference."""
        ranked = found.prediction.argsort(1, descending=True)[:SHOWN, :2]
        probability = found.prediction.softmax(1)
        both = torch.stack([found.values[row, pair] for row, pair in enumerate(ranked)])
        maps = expand_group_values(torch.cat([both, both[:, :1] - both[:, 1:]], 1), grid)
        titles = []
        for row, (first, second) in enumerate(ranked.tolist()):
            names = [f"{data.classes[index]}: {float(probability[row, index]):.0%}" for index in (first, second)]
            titles.append(["", *names, f"{data.classes[first]} − {data.classes[second]}"])
        run.figure(
            "SHAP values of two classes",
            plot_class_attributions(images[:SHOWN].cpu(), maps.cpu(), titles),
            "Test images with the least certain predictions. Red tiles raise the logit of a class, blue tiles lower "
            f"it, from its mean over {self.background_size} training images, which replace missing tiles. The second "
            "column is for the predicted class, the third for the second most probable class, the last is their "
            "difference.",
        )

    def compare_groups(self, run: Run, network: Classifier, data: Dataset, image: Tensor, background: Tensor) -> None:
        """One image by tiles and by superpixels, with other images and with a blur as background."""
        squares = self.grid(data.shape)
        segments = superpixels(image[0].cpu(), self.tiles_across**2)
        blur = gaussian_blur(image, data.shape[2] / 7)
        methods = {
            "tiles, other images": (squares, background),
            "superpixels, other images": (segments, background),
            "superpixels, blurred": (segments, blur),
        }
        predicted = int(network.predict(image)[0])
        maps: list[Tensor] = []
        rows: list[dict[str, str | float]] = []
        for name, (groups, replacements) in methods.items():
            value = masked_images(network, replacements, groups)
            found = explain(value, image.flatten(1), self.max_evals)
            maps.append(expand_group_values(found.values[0, predicted], groups))
            rows.append(
                {
                    "groups and background": name,
                    "players": value.players,
                    "coalitions": found.evaluations,
                    "base value": float(found.base_values[0, predicted]),
                    "logit": float(found.prediction[0, predicted]),
                    "standard error": float(found.errors[0, predicted].square().mean().sqrt()),
                }
            )
        run.figure(
            "groups and backgrounds",
            plot_class_attributions(image.cpu(), torch.stack(maps)[None].cpu(), [[data.classes[predicted], *methods]]),
            "The same image and class with square tiles, with superpixels that follow the strokes, and with "
            "superpixels replaced by a blurred image. A blur does not change empty regions, which therefore have no "
            "attribution.",
        )
        run.table("groups and backgrounds", rows, "The logit is the same; the base value depends on the background.")

    def plot_deletion(
        self, run: Run, value: InterventionalValue, images: Tensor, found: Attribution
    ) -> dict[str, float]:
        """Deletion curves of the probability of the predicted class, and their means."""
        predicted = found.prediction.argmax(1)
        probability = InterventionalValue(lambda x: value.model(x).softmax(1), value.background, value.groups)
        difference = (images - value.background.unflatten(1, images.shape[1:]).mean(0)).abs().mean(1)
        grid = self.grid(images.shape[1:])
        by_tile = torch.stack([difference[:, grid == tile].sum(1) for tile in range(value.players)], 1)
        of_predicted = found.values[torch.arange(len(predicted)), predicted]
        random = [torch.rand_like(of_predicted) for _ in range(self.num_random_orders)]

        def mean_curve(scores: Tensor) -> Tensor:
            return deletion_curve(probability, images.flatten(1), predicted, scores).mean(0)

        curves = {"SHAP values": mean_curve(of_predicted), "difference from the background": mean_curve(by_tile)}
        random_curves = torch.stack([mean_curve(each) for each in random])
        run.figure(
            "deletion curves",
            plot_deletion_curves(curves, random_curves),
            f"Probability of the predicted class, averaged over {len(images)} images, while tiles are replaced one by "
            "one. The faster it falls, the better the order of deletion; the band is the range of "
            f"{self.num_random_orders} random orders. At the end tiles with negative values are deleted.",
        )
        return {
            **{name: float(curve.mean()) for name, curve in curves.items()},
            "random order": float(random_curves.mean()),
        }


def convolutional(channels_in: int, classes: int, channels: int) -> Classifier:
    """Two convolutions, adaptive max pooling to 4 × 4, and a linear layer."""
    return Classifier(
        nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveMaxPool2d(4),
            nn.Flatten(),
            nn.Linear(32 * channels, classes),
        )
    )


@torch.no_grad()
def select_uncertain(network: Classifier, images: Tensor, count: int) -> Tensor:
    """`count` images: first those with the smallest margin between two classes, then a regular selection of others."""
    best: Tensor = network(images).topk(2, dim=1).values
    ranked = images[(best[:, 0] - best[:, 1]).argsort()]
    step = max(1, (len(ranked) - SHOWN) // max(1, count - SHOWN))
    return torch.cat([ranked[:SHOWN], ranked[SHOWN::step]])[:count]


def plot_deletion_curves(curves: dict[str, Tensor], random_curves: Tensor) -> "Figure":
    figure, axes = subplots(size=(6.4, 3.6))
    ax = axes[0, 0]
    deleted = torch.arange(random_curves.shape[1])
    ax.fill_between(
        deleted, random_curves.amin(0).cpu(), random_curves.amax(0).cpu(), color=FAINT, alpha=0.4, linewidth=0
    )
    ax.plot(deleted, random_curves.mean(0).cpu(), color=FAINT, label="random order")
    for colour, (name, curve) in zip(PALETTE[1::-1], curves.items(), strict=True):
        ax.plot(deleted, curve.cpu(), color=colour, label=name)
    ax.set(xlabel="tiles deleted", ylabel="probability of the predicted class", ylim=(0, None))
    ax.legend()
    return figure
