"""A vision transformer beside a convolutional network: what first layers see, and how far (book sec. 10.1.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from parnassus.attention import (
    VisionTransformer,
    attention_distance,
    attention_maps,
    class_token,
    dilated_receptive_field,
    patch_places,
    receptive_field,
    vit,
)
from parnassus.data import DataError, Dataset, open_data
from parnassus.layers import Classifier, evaluate, parameter_count, require_labels
from parnassus.optim import Adam, one_cycle_rate
from parnassus.report import FAINT, PALETTE, image_grid, subplots
from parnassus.train import Run, SideBySide, at_least, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1.2-9", "B10.1.2-10")
expected = {
    "vit_accuracy": at_least(0.75, "share of unseen pictures that the vision transformer names right"),
    "cnn_accuracy": at_least(0.85, "the same for the convolutional network"),
    "first_layer_distance": between(8.0, 15.0, "pixels that a head of the first layer looks away, on average"),
    "last_layer_distance": reported("the same in the last layer"),
    "nearest_head": reported("the same of the head that looks nearest"),
    "farthest_head": reported("and of the one that looks farthest"),
    "even_distance": reported("the same for a head that looks everywhere alike"),
    "vit_parameters": reported("numbers that the transformer learns"),
    "cnn_parameters": reported("and the convolutional network"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 6, "width": 16, "depth": 2, "batch": 20},
    "gpu": {"data": "mnist", "steps": 8_000, "batch": 256, "width": 128, "depth": 6, "channels": 32},
}

KERNEL = 3


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # pictures: mnist_mini, digits, mnist, fashion_mnist, cifar10, or a folder of yours
    size: int | None = None  # resize the pictures of a folder to this height and width
    steps: int = 500  # gradient steps
    batch: int = 50  # pictures a step
    patch: int = 4  # pixels on a side of a patch; must divide height and width
    width: int = 48  # numbers in a token
    heads: int = 4  # heads of each layer
    depth: int = 3  # layers of both networks
    channels: int = 16  # filters of each convolution
    lr: float = 2e-3  # largest learning rate of the 1cycle

    def model(self, shape: Sequence[int], classes: int) -> SideBySide[nn.Module]:
        transformer = vit(shape, classes, patch=self.patch, width=self.width, heads=self.heads, depth=self.depth)
        convolutional = plain_network(shape[0], classes, channels=self.channels, depth=self.depth)
        return SideBySide({"vit": transformer, "cnn": convolutional})

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=None if self.size is None else (self.size, self.size)).to(run.device)
        if len(data.shape) != 3 or data.shape[1] % self.patch or data.shape[2] % self.patch:
            raise DataError(f"patches of {self.patch} pixels must divide the pictures; {self.data} has {data.shape}")
        labels = require_labels(data.test.y, len(data.classes))
        models = run.build(self.model, shape=list(data.shape), classes=len(data.classes))
        before = {"vit": filters_of(models.one("vit")), "cnn": filters_of(models.one("cnn"))}
        models, optimizer = run.prepare(models, partial(Adam, lr=self.lr))
        for step, loss in descend(run, models, optimizer, data.train.pairs(self.batch, self.steps)):
            for group in optimizer.param_groups:
                group["lr"] = one_cycle_rate(step, self.steps, peak=self.lr)
            run.log(step, loss=loss / 2)

        accuracy = {name: evaluate(model, data.test.x, labels).accuracy for name, model in models.every()}
        transformer = models.one("vit")
        assert isinstance(transformer, VisionTransformer)
        distances = head_distances(transformer, data.test.x[:200])
        places = patch_places(transformer.patches)
        even = float(torch.cdist(places, places).mean())
        show_filters(run, {name: (before[name], filters_of(model)) for name, model in models.every()})
        run.figure(
            "how far each head looks",
            draw_distances(distances, even, data.shape[1]),
            f"Left: the mean distance at which each of {self.heads} heads looks, in pixels, by layer. Right: what one "
            f"place can know after L layers of {KERNEL} × {KERNEL} convolutions, 1 + L(k−1) pixels in a row, or "
            "1 + (k−1)(2^L − 1) when dilation doubles. Attention could see the whole picture from the first layer on.",
        )
        show_where_it_looks(run, transformer, data)
        run.note(
            "what to see",
            f"The convolutional network names {accuracy['cnn']:.1%} of the unseen pictures, the transformer "
            f"{accuracy['vit']:.1%}: it must learn from data what a convolution has built in, that neighbours belong "
            f"together. On average the heads of its first layer look {float(distances[0].min()):.1f} to "
            f"{float(distances[0].max()):.1f} pixels away, which {receptive_field(KERNEL, 1)} × "
            f"{receptive_field(KERNEL, 1)} pixels cannot; looking everywhere alike would be {even:.1f}.",
        )
        return {
            "vit_accuracy": accuracy["vit"],
            "cnn_accuracy": accuracy["cnn"],
            "first_layer_distance": float(distances[0].mean()),
            "last_layer_distance": float(distances[-1].mean()),
            "nearest_head": float(distances.min()),
            "farthest_head": float(distances.max()),
            "even_distance": even,
            "vit_parameters": float(parameter_count(transformer)),
            "cnn_parameters": float(parameter_count(models.one("cnn"))),
        }


def plain_network(channels_in: int, classes: int, *, channels: int, depth: int) -> Classifier:
    """Convolutions of one size one after the other, then the mean over all places: nothing but local looks."""
    layers: list[nn.Module] = []
    for inputs in (channels_in, *[channels] * (depth - 1)):
        layers += [nn.Conv2d(inputs, channels, KERNEL, padding=KERNEL // 2), nn.BatchNorm2d(channels), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, classes)]
    return Classifier(nn.Sequential(*layers))


def filters_of(model: nn.Module) -> Tensor:
    """The first layer, as pictures."""
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    return first.weight.detach().cpu().clone()


@torch.no_grad()
def head_distances(model: VisionTransformer, x: Tensor) -> Tensor:
    """Pixels between a patch and where it looks, by layer and head; the token in front stands nowhere."""
    places = patch_places(model.patches).to(x.device)
    found = []
    for weights in attention_maps(model, x).values():
        among = weights[..., 1:, 1:]
        found.append(attention_distance(among / among.sum(-1, keepdim=True), places).mean((0, 2)))
    return torch.stack(found).cpu()


def draw_distances(distances: Tensor, even: float, side: int) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    left, right = axes[0]
    layers = torch.arange(1, len(distances) + 1)
    for head in range(distances.shape[1]):
        left.scatter(layers, distances[:, head], color=PALETTE[0], s=40, alpha=0.8)
    left.plot(layers, distances.mean(1), color=PALETTE[0], label="mean of the heads")
    left.axhline(even, color=FAINT, linestyle="--", linewidth=1.2, label="looking everywhere alike")
    left.set(xlabel="layer", ylabel="mean distance (pixels)", xticks=layers.tolist(), ylim=(0, None))
    left.legend(loc="lower right")
    plain = [receptive_field(KERNEL, int(layer)) for layer in layers]
    right.plot(layers, plain, "o-", color=PALETTE[1], label="convolutions")
    wide = [dilated_receptive_field(KERNEL, int(layer)) for layer in layers]
    right.plot(layers, wide, "s-", color=PALETTE[2], label="dilated convolutions")
    right.plot(layers, [side] * len(layers), "^-", color=PALETTE[0], label="attention: the whole picture")
    right.set(
        xlabel="layers", ylabel="receptive field (pixels)", xticks=layers.tolist(), ylim=(0, 1.5 * max(side, *wide))
    )
    right.legend(loc="upper left")
    return figure


def show_filters(run: Run, filters: dict[str, tuple[Tensor, Tensor]]) -> None:
    """First layers before and after training; grey is 0."""
    titles = {"vit": "patch embedding of the transformer", "cnn": "first convolution"}
    for name, (before, after) in filters.items():
        count = min(12, len(after))
        chosen = after.flatten(1).norm(dim=1).argsort(descending=True)[:count]
        both = torch.cat([part[chosen] / (2 * part[chosen].abs().amax()) + 0.5 for part in (before, after)])
        grid = image_grid(both, columns=count, row_labels=["before", "after"], scale=1.2)
        run.figure(
            f"first layer of the {name}",
            grid,
            f"The {count} strongest filters of the {titles[name]}, before and after training; grey is 0.",
        )


@torch.no_grad()
def show_where_it_looks(run: Run, model: VisionTransformer, data: Dataset) -> None:
    """What the token in front looks at in each layer, for a few unseen pictures."""
    x = data.test.x[:6]
    rows, columns = model.patches.grid
    maps = [weights[:, :, 0, 1:].mean(1) for weights in attention_maps(model, x).values()]
    looked = []
    for weights in maps:
        picture = (weights / weights.amax(1, keepdim=True)).view(-1, 1, rows, columns)
        looked.append(picture.repeat_interleave(model.patches.patch, 2).repeat_interleave(model.patches.patch, 3))
    shown = [x.mean(1, keepdim=True), *looked]
    titles = ["picture", *(f"layer {layer}" for layer in range(1, len(maps) + 1))]
    who = "token in front" if model.pool is class_token else "first token"
    run.figure(
        "where it looks",
        image_grid(torch.stack(shown, 1).flatten(0, 1), columns=len(titles), titles=titles),
        f"Unseen pictures, and the patches at which the {who} looks in each layer, mean over heads; white is most.",
    )
