"""A vision transformer and a CNN on digits: accuracy, filters and attention distance (book sec. 10.1.2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from parnassus.attention import (
    VisionTransformer,
    attention_distance,
    attention_maps,
    class_token_pool,
    dilated_receptive_field,
    patch_centres,
    receptive_field,
    vit,
)
from parnassus.data import DataError, Dataset, open_images
from parnassus.layers import Classifier, check_labels, count_parameters, evaluate
from parnassus.layers.commands.image_classifiers import IMAGE_SUFFIXES, evaluate_images, predict_images
from parnassus.optim import Adam, one_cycle_rate
from parnassus.report import FAINT, PALETTE, image_grid, subplots
from parnassus.setting_types import ImageData
from parnassus.train import ModelCollection, Positive, Run, at_least, between, descend, no_band
from parnassus.train.sample_predict_evaluate import Input, ResultRow
from parnassus.train.trained import TrainedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1.2-9", "B10.1.2-10")
expected = {
    "vit_accuracy": at_least(0.75, "test accuracy of the vision transformer"),
    "cnn_accuracy": at_least(0.85, "test accuracy of the convolutional network"),
    "first_layer_distance": between(8.0, 15.0, "mean attention distance of the first layer, in pixels"),
    "last_layer_distance": no_band("mean attention distance of the last layer, in pixels"),
    "nearest_head": no_band("the smallest mean attention distance of a head, in pixels"),
    "farthest_head": no_band("the largest mean attention distance of a head, in pixels"),
    "uniform_distance": no_band("attention distance of uniform weights, in pixels"),
    "vit_parameters": no_band("number of parameters of the vision transformer"),
    "cnn_parameters": no_band("number of parameters of the convolutional network"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 6, "width": 16, "num_layers": 2, "batch_size": 20},
    "gpu": {"data": "mnist", "steps": 8_000, "batch_size": 256, "width": 128, "num_layers": 6, "channels": 32},
}

KERNEL = 3  # side of the convolution kernels


@dataclass(frozen=True)
class Experiment:
    data: ImageData = "mnist_mini"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to this height and width
    steps: Positive[int] = 500  # gradient steps
    batch_size: Positive[int] = 50  # images per gradient step
    patch_size: Positive[int] = 4  # side of a patch in pixels; must divide height and width
    width: Positive[int] = 48  # width of the tokens
    num_heads: Positive[int] = 4  # attention heads per layer
    num_layers: Positive[int] = 3  # layers of both networks
    channels: Positive[int] = 16  # filters of each convolution
    learning_rate: Positive[float] = 2e-3  # peak learning rate of the 1cycle schedule

    def model(self, shape: Sequence[int], classes: Sequence[str]) -> ModelCollection[nn.Module]:
        transformer = vit(
            shape, len(classes), patch=self.patch_size, width=self.width, heads=self.num_heads, depth=self.num_layers
        )
        convolutional = plain_cnn(shape[0], len(classes), channels=self.channels, depth=self.num_layers)
        return ModelCollection({"vit": transformer, "cnn": convolutional})

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_images(self.data, self.image_size).to(run.device)
        if data.shape[1] % self.patch_size or data.shape[2] % self.patch_size:
            raise DataError(
                f"patch_size must divide height and width of the images; got patch_size={self.patch_size}, "
                f"shape={data.shape}"
            )
        labels = check_labels(data.test.y, len(data.classes))
        models = run.build(self.model, shape=list(data.shape), classes=list(data.classes))
        before = {
            "vit": first_layer_filters(models.model("vit")),
            "cnn": first_layer_filters(models.model("cnn")),
        }
        models, optimizer = run.prepare(models, partial(Adam, lr=self.learning_rate))
        for step, loss in descend(run, models, optimizer, data.train.pairs(self.batch_size, self.steps)):
            for group in optimizer.param_groups:
                group["lr"] = one_cycle_rate(step, self.steps, peak=self.learning_rate)
            run.log(step, loss=loss / 2)

        accuracy = {name: evaluate(model, data.test.x, labels).accuracy for name, model in models.named_models()}
        transformer = models.model("vit")
        assert isinstance(transformer, VisionTransformer)
        distances = head_distances(transformer, data.test.x[:200])
        centres = patch_centres(transformer.patches)
        uniform = float(torch.cdist(centres, centres).mean())
        plot_filters(run, {name: (before[name], first_layer_filters(model)) for name, model in models.named_models()})
        run.figure(
            "attention distance",
            plot_distances(distances, uniform, data.shape[1]),
            f"Left: mean attention distance of each of {self.num_heads} heads by layer. Right: receptive field after L "
            f"layers: 1 + L(k−1) for {KERNEL} × {KERNEL} convolutions, 1 + (k−1)(2^L − 1) with dilation 2^l, and the "
            "whole image for attention.",
        )
        plot_attention(run, transformer, data)
        run.note(
            "results",
            f"The test accuracy is {accuracy['cnn']:.1%} for the convolutional network and {accuracy['vit']:.1%} for "
            "the transformer, which has no inductive bias for neighbouring pixels. The mean attention distance of the "
            f"heads in its first layer is {float(distances[0].min()):.1f} to {float(distances[0].max()):.1f} pixels, "
            f"beyond the {receptive_field(KERNEL, 1)} × {receptive_field(KERNEL, 1)} receptive field of a convolution; "
            f"uniform attention would have {uniform:.1f}.",
        )
        return {
            "vit_accuracy": accuracy["vit"],
            "cnn_accuracy": accuracy["cnn"],
            "first_layer_distance": float(distances[0].mean()),
            "last_layer_distance": float(distances[-1].mean()),
            "nearest_head": float(distances.min()),
            "farthest_head": float(distances.max()),
            "uniform_distance": uniform,
            "vit_parameters": float(count_parameters(transformer)),
            "cnn_parameters": float(count_parameters(models.model("cnn"))),
        }


@dataclass(frozen=True)
class Predict:
    suffixes: ClassVar[tuple[str, ...]] = IMAGE_SUFFIXES
    network: Literal["vit", "cnn"] = "vit"  # vision transformer or convolutional network
    top_k: Positive[int] = 3  # classes reported for each image

    def __call__(self, trained: TrainedRun, inputs: Sequence[Input]) -> Iterator[ResultRow]:
        model = cast("ModelCollection[nn.Module]", trained.model).model(self.network)
        return predict_images(model, trained, inputs, top_k=self.top_k)


@dataclass(frozen=True)
class Evaluate:
    data: ImageData | None = None  # labelled images of the same classes; by default the test images of the run

    def __call__(self, runs: Sequence[TrainedRun]) -> list[ResultRow]:
        return [self.evaluate(trained) for trained in runs]

    def evaluate(self, trained: TrainedRun) -> ResultRow:
        """Test accuracy and cross-entropy of both networks of one run."""
        models = cast("ModelCollection[nn.Module]", trained.model)
        return evaluate_images({f"{name}_": model for name, model in models.named_models()}, trained, self.data)


def plain_cnn(channels_in: int, classes: int, *, channels: int, depth: int) -> Classifier:
    """Convolutions of constant width with batch normalisation, pooled to 2 × 2."""
    layers: list[nn.Module] = []
    for inputs in (channels_in, *[channels] * (depth - 1)):
        layers += [nn.Conv2d(inputs, channels, KERNEL, padding=KERNEL // 2), nn.BatchNorm2d(channels), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * channels, classes)]
    return Classifier(nn.Sequential(*layers))


def first_layer_filters(model: nn.Module) -> Tensor:
    """The filters of the first layer, as images."""
    first = next(module for module in model.modules() if isinstance(module, nn.Conv2d))
    return first.weight.detach().cpu().clone()


@torch.no_grad()
def head_distances(model: VisionTransformer, x: Tensor) -> Tensor:
    """The mean attention distance in pixels by layer and head, without the class token."""
    centres = patch_centres(model.patches).to(x.device)
    distances = []
    for weights in attention_maps(model, x).values():
        patches = weights[..., 1:, 1:]
        distances.append(attention_distance(patches / patches.sum(-1, keepdim=True), centres).mean((0, 2)))
    return torch.stack(distances).cpu()


def plot_distances(distances: Tensor, uniform: float, side: int) -> "Figure":
    """Attention distances by layer and head, and receptive fields by depth."""
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    left, right = axes[0]
    layers = torch.arange(1, len(distances) + 1)
    for head in range(distances.shape[1]):
        left.scatter(layers, distances[:, head], color=PALETTE[0], s=40, alpha=0.8)
    left.plot(layers, distances.mean(1), color=PALETTE[0], label="mean over heads")
    left.axhline(uniform, color=FAINT, linestyle="--", linewidth=1.2, label="uniform attention")
    left.set(xlabel="layer", ylabel="mean attention distance (pixels)", xticks=layers.tolist(), ylim=(0, None))
    left.legend(loc="lower right")
    plain = [receptive_field(KERNEL, int(layer)) for layer in layers]
    right.plot(layers, plain, "o-", color=PALETTE[1], label="convolutions")
    dilated = [dilated_receptive_field(KERNEL, int(layer)) for layer in layers]
    right.plot(layers, dilated, "s-", color=PALETTE[2], label="dilated convolutions")
    right.plot(layers, [side] * len(layers), "^-", color=PALETTE[0], label="attention")
    right.set(
        xlabel="layers", ylabel="receptive field (pixels)", xticks=layers.tolist(), ylim=(0, 1.5 * max(side, *dilated))
    )
    right.legend(loc="upper left")
    return figure


def plot_filters(run: Run, filters: dict[str, tuple[Tensor, Tensor]]) -> None:
    """Filters of the first layer before and after training."""
    titles = {"vit": "patch embedding", "cnn": "first convolution"}
    for name, (before, after) in filters.items():
        count = min(12, len(after))
        chosen = after.flatten(1).norm(dim=1).argsort(descending=True)[:count]
        both = torch.cat([part[chosen] / (2 * part[chosen].abs().amax()) + 0.5 for part in (before, after)])
        grid = image_grid(both, columns=count, row_labels=["before", "after"], scale=1.2)
        run.figure(
            f"first layer ({name})",
            grid,
            f"The {count} filters of the {titles[name]} with the largest norm, before and after training; grey is 0.",
        )


@torch.no_grad()
def plot_attention(run: Run, model: VisionTransformer, data: Dataset) -> None:
    """The attention of the class token in each layer on six test images."""
    x = data.test.x[:6]
    rows, columns = model.patches.grid
    maps = [weights[:, :, 0, 1:].mean(1) for weights in attention_maps(model, x).values()]
    images = []
    for weights in maps:
        image = (weights / weights.amax(1, keepdim=True)).view(-1, 1, rows, columns)
        images.append(image.repeat_interleave(model.patches.patch, 2).repeat_interleave(model.patches.patch, 3))
    panels = [x.mean(1, keepdim=True), *images]
    titles = ["image", *(f"layer {layer}" for layer in range(1, len(maps) + 1))]
    token = "class token" if model.pool is class_token_pool else "first token"
    run.figure(
        "attention of the class token",
        image_grid(torch.stack(panels, 1).flatten(0, 1), columns=len(titles), titles=titles),
        f"Test images, and the attention weights of the {token} on the patches in each layer, mean over heads; white "
        "is the maximum.",
    )
