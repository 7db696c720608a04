"""Why is this a 4 and not a 9? A network's logits, shared out among tiles of an image (book secs. 17.0, 17.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from jaxtyping import Int
from torch import Tensor, nn

from parnassus.data import DataError, Dataset, open_data
from parnassus.layers import Classifier, evaluate, require_labels
from parnassus.optim import Adam
from parnassus.report import FAINT, PALETTE, subplots
from parnassus.report.attributions import maps_of_classes
from parnassus.shapley.attribution import Attribution, explain
from parnassus.shapley.deletion import deletion_curve
from parnassus.shapley.masking import Interventional
from parnassus.shapley.superpixels import blurred, masked_images, painted, superpixels, tiles
from parnassus.train import Run, at_least, at_most, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B17.0-1", "B17.3-1", "B17.4-3")
expected = {
    "accuracy": at_least(0.9, "share of unseen images that are named right"),
    "not_additive": at_most(1e-5, "largest gap between a logit and the sum of its parts"),
    "left_by_parts": at_most(0.22, "mean probability while tiles go, those with the largest parts first"),
    "left_at_random": at_least(0.3, "the same while they go in a random order"),
    "left_by_ink": reported("the same, those that differ most from the mean image first"),
    "standard_error": reported("root mean square of the parts' standard errors, over that of the parts"),
    "tiles": reported("players: tiles of an image"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "across": 4, "budget": 60, "explained": 5, "others": 2, "orders": 3},
    "gpu": {"data": "mnist", "steps": 4_000, "batch": 256, "channels": 32, "budget": 4_000, "others": 20},
}
SHOWN = 4
"""Images whose parts are drawn."""


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # mnist_mini, digits, mnist, fashion_mnist, cifar10, or a folder of your own
    size: int | None = None  # resize the pictures of a folder to this height and width
    steps: int = 400  # gradient steps
    batch: int = 50  # pictures a step
    channels: int = 8  # filters of the first convolution; the second has twice as many
    lr: float = 3e-3  # Adam's learning rate
    across: int = 7  # tiles from left to right
    budget: int = 600  # coalitions of tiles that are asked
    others: int = 5  # pictures that stand in for missing tiles
    explained: int = 16  # unseen pictures that are explained
    orders: int = 5  # random orders for each, to compare with

    def model(self, shape: Sequence[int], classes: int) -> Classifier:
        return convolutional(shape[0], classes, self.channels)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=None if self.size is None else (self.size, self.size)).to(run.device)
        if len(data.shape) != 3 or min(data.shape[1:]) < self.across:
            raise DataError(f"pictures of at least {self.across} pixels are needed; {self.data} has {data.shape}")
        labels = require_labels(data.test.y, len(data.classes))
        network = run.build(self.model, shape=list(data.shape), classes=len(data.classes))
        network, optimizer = run.prepare(network, partial(Adam, lr=self.lr))
        for step, loss in descend(run, network, optimizer, data.train.pairs(self.batch, self.steps)):
            run.log(step, loss=loss)

        stand_ins = data.train.x[torch.randperm(len(data.train.x))[: self.others].to(run.device)]
        images = some_doubtful(network, data.test.x[:500], self.explained)
        grid = self.grid(data.shape)
        game = masked_images(network, stand_ins, grid)
        parts = explain(game, images.flatten(1), self.budget)
        self.show_classes(run, data, images, parts, grid)
        self.show_groups(run, network, data, images[:1], stand_ins)
        left = self.show_deletion(run, game, images, parts)
        return {
            "accuracy": evaluate(network, data.test.x, labels).accuracy,
            "not_additive": float((parts.prediction - game.model(images.flatten(1))).abs().max()),
            "left_by_parts": left["largest parts first"],
            "left_at_random": left["at random"],
            "left_by_ink": left["most ink first"],
            "standard_error": float(parts.errors.square().mean().sqrt() / parts.values.square().mean().sqrt()),
            "tiles": game.players,
        }

    def grid(self, shape: Sequence[int]) -> Int[Tensor, "height width"]:
        _, height, width = shape
        return tiles(height, width, side=-(-width // self.across))

    def show_classes(self, run: Run, data: Dataset, images: Tensor, parts: Attribution, grid: Tensor) -> None:
        """For each image: what speaks for the class it is named, for the next one, and for the one rather than both."""
        ranked = parts.prediction.argsort(1, descending=True)[:SHOWN, :2]
        probability = parts.prediction.softmax(1)
        both = torch.stack([parts.values[row, pair] for row, pair in enumerate(ranked)])
        maps = painted(torch.cat([both, both[:, :1] - both[:, 1:]], 1), grid)
        titles = []
        for row, (first, second) in enumerate(ranked.tolist()):
            names = [f"{data.classes[place]}: {float(probability[row, place]):.0%}" for place in (first, second)]
            titles.append(["", *names, f"{data.classes[first]}, not {data.classes[second]}"])
        run.figure(
            "why this and not that",
            maps_of_classes(images[:SHOWN].cpu(), maps.cpu(), titles),
            "Unseen images of which the network is least sure. Red tiles raise the logit of a class, blue ones lower "
            f"it, from its mean over {self.others} training images, which stand in for tiles that are missing, to what "
            "it is here. The second column is for the class that the network names, the third for the next, the last "
            "is their difference: what decides between the two.",
        )

    def show_groups(self, run: Run, network: Classifier, data: Dataset, image: Tensor, stand_ins: Tensor) -> None:
        """One image by tiles and by superpixels, and with a blur instead of other images."""
        squares = self.grid(data.shape)
        shapes = superpixels(image[0].cpu(), self.across**2)
        blur = blurred(image, data.shape[2] / 7)
        ways = {
            "tiles, other images": (squares, stand_ins),
            "superpixels, other images": (shapes, stand_ins),
            "superpixels, blurred": (shapes, blur),
        }
        named = int(network.predict(image)[0])
        maps: list[Tensor] = []
        rows: list[dict[str, str | float]] = []
        for name, (groups, missing) in ways.items():
            game = masked_images(network, missing, groups)
            found = explain(game, image.flatten(1), self.budget)
            maps.append(painted(found.values[0, named], groups))
            rows.append(
                {
                    "groups and what stands in": name,
                    "players": game.players,
                    "coalitions": found.coalitions,
                    "base": float(found.base[0, named]),
                    "logit": float(found.prediction[0, named]),
                    "standard error": float(found.errors[0, named].square().mean().sqrt()),
                }
            )
        run.figure(
            "three ways to ask",
            maps_of_classes(image.cpu(), torch.stack(maps)[None].cpu(), [[data.classes[named], *ways]]),
            "The same image and class: square tiles, superpixels that keep to the strokes, and superpixels that are "
            "blurred rather than taken from other images. A blur leaves an empty background as it is: it gets no part.",
        )
        run.table("what it took", rows, "The logit is the same; from where it is explained depends on what stands in.")

    def show_deletion(self, run: Run, game: Interventional, images: Tensor, parts: Attribution) -> dict[str, float]:
        """The probability of the named class while tiles go one by one, and its mean on the way."""
        named = parts.prediction.argmax(1)
        likely = Interventional(lambda x: game.model(x).softmax(1), game.background, game.groups)
        odd = (images - game.background.unflatten(1, images.shape[1:]).mean(0)).abs().mean(1)
        ink = torch.stack([odd[:, self.grid(images.shape[1:]) == tile].sum(1) for tile in range(game.players)], 1)
        of_named = parts.values[torch.arange(len(named)), named]
        random = [torch.rand_like(of_named) for _ in range(self.orders)]
        curves = {
            "largest parts first": deletion_curve(likely, images.flatten(1), named, of_named).mean(0),
            "most ink first": deletion_curve(likely, images.flatten(1), named, ink).mean(0),
        }
        chance = torch.stack([deletion_curve(likely, images.flatten(1), named, each).mean(0) for each in random])
        run.figure(
            "tiles go one by one",
            draw_deletion(curves, chance),
            f"The probability of the class that the network names, a mean over {len(images)} images, while tiles are "
            "replaced one after the other. If parts say what matters it falls faster when the largest go first; the "
            f"band is what {self.orders} random orders give. Later the tiles that spoke against the class go.",
        )
        return {**{name: float(curve.mean()) for name, curve in curves.items()}, "at random": float(chance.mean())}


def convolutional(channels_in: int, classes: int, channels: int) -> Classifier:
    """Two convolutions, a look at 4 × 4 places, and a logit for each class."""
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
def some_doubtful(network: Classifier, images: Tensor, count: int) -> Tensor:
    """`count` images: first those with the smallest lead of the first class over the second, then all kinds."""
    best: Tensor = network(images).topk(2, dim=1).values
    ranked = images[(best[:, 0] - best[:, 1]).argsort()]
    step = max(1, (len(ranked) - SHOWN) // max(1, count - SHOWN))
    return torch.cat([ranked[:SHOWN], ranked[SHOWN::step]])[:count]


def draw_deletion(curves: dict[str, Tensor], chance: Tensor) -> "Figure":
    figure, axes = subplots(size=(6.4, 3.6))
    ax = axes[0, 0]
    gone = torch.arange(chance.shape[1])
    ax.fill_between(gone, chance.amin(0).cpu(), chance.amax(0).cpu(), color=FAINT, alpha=0.4, linewidth=0)
    ax.plot(gone, chance.mean(0).cpu(), color=FAINT, label="at random")
    for colour, (name, curve) in zip(PALETTE[1::-1], curves.items(), strict=True):
        ax.plot(gone, curve.cpu(), color=colour, label=name)
    ax.set(xlabel="tiles that are gone", ylabel="probability of the named class", ylim=(0, None))
    ax.legend()
    return figure
