"""Deep convolutional networks with and without skip connections (Diehl sec. 1.6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import SGD

from parnassus.convolution.residual import Block, basic_block, bottleneck_block, resnet, small_stem
from parnassus.data import Dataset, open_data
from parnassus.layers import Classifier, check_labels, count_parameters, evaluate
from parnassus.layers.commands.image_classifiers import EvaluateImages as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.layers.commands.image_classifiers import PredictImages as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.report import curves
from parnassus.setting_types import ImageData
from parnassus.train import Positive, Run, at_least, descend, no_band

covers = ("D1.6.5", "Z8.5")
expected = {
    "residual_accuracy": at_least(0.7, "test accuracy with skip connections"),
    "plain_accuracy": no_band("test accuracy without skip connections"),
    "bottleneck_accuracy": no_band("test accuracy with skip connections and bottleneck blocks"),
    "gain": at_least(0.1, "gain in test accuracy from skip connections"),
    "first_gradient_ratio": no_band(
        "ratio of initial gradient norms of the first layer with and without skip connections"
    ),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"num_blocks": 1, "width": 8, "epochs": 1, "batch_size": 400},
    "gpu": {"data": "cifar10", "width": 64, "num_blocks": 9, "epochs": 30, "batch_size": 128},
}


@dataclass(frozen=True)
class Experiment:
    data: ImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_blocks: Positive[int] = 6  # blocks in each of two stages, with two convolutions each
    width: Positive[int] = 12  # channels of the first stage; the second has twice as many
    epochs: Positive[int] = 3  # passes over the training images
    batch_size: Positive[int] = 64  # images per gradient step
    learning_rate: Positive[float] = 0.05  # learning rate of SGD with momentum 0.9

    def model(self, shape: Sequence[int], classes: Sequence[str]) -> Classifier:
        """The network with skip connections, whose weights are saved."""
        return self.build_network(basic_block, shape, classes)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        kinds: dict[str, Block] = {"residual": basic_block, "plain": plain_block, "bottleneck": bottleneck_block}
        residual = run.build(self.model, shape=data.shape, classes=data.classes)
        models, first = {}, {}
        for name, block in kinds.items():
            model = residual if name == "residual" else self.build_network(block, data.shape, data.classes)
            first[name] = first_layer_gradient_norm(model.to(run.device), data)
            models[name] = self.train(run, name, model, data)
        labels = check_labels(data.test.y, len(data.classes))
        accuracy = {name: evaluate(model, data.test.x, labels).accuracy for name, model in models.items()}
        lines = {name: run.curve(f"loss/{name}") for name in kinds}
        depth = 4 * self.num_blocks + 2
        run.figure(
            "training loss",
            curves(lines, x_label="step", y_label="cross-entropy", log_y=True, smooth=True),
            f"Networks of {depth} layers. Residual and plain networks have the same convolutions except for one "
            "projection; the bottleneck network has three convolutions per block and far fewer weights.",
        )
        run.table(
            "networks",
            [
                {
                    "network": name,
                    "parameters": count_parameters(model),
                    "test accuracy": round(accuracy[name], 4),
                    "initial gradient norm": f"{float(first[name]):.1e}",
                }
                for name, model in models.items()
            ],
            "Initial gradient norm: with respect to the weights of the first convolution, before training.",
        )
        run.note(
            "results",
            f"After {self.epochs} epochs the test accuracy is {100 * accuracy['residual']:.1f} % with skip connections "
            f"and {100 * accuracy['plain']:.1f} % without. With batch normalisation the gradients of the plain "
            "network do not vanish but grow towards the input: in the first layer their norm is "
            f"{float(first['plain'] / first['residual']):.1f} times that with skip connections.",
        )
        return {
            "residual_accuracy": accuracy["residual"],
            "plain_accuracy": accuracy["plain"],
            "bottleneck_accuracy": accuracy["bottleneck"],
            "gain": accuracy["residual"] - accuracy["plain"],
            "first_gradient_ratio": float(first["residual"] / first["plain"]),
        }

    def build_network(self, block: Block, shape: Sequence[int], classes: Sequence[str]) -> Classifier:
        return resnet(
            small_stem(shape[0], self.width),
            len(classes),
            block=block,
            counts=(self.num_blocks, self.num_blocks),
            widths=(self.width, 2 * self.width),
            inputs=self.width,
        )

    def train(self, run: Run, name: str, model: Classifier, data: Dataset) -> Classifier:
        model, optimizer = run.prepare(model, partial(SGD, lr=self.learning_rate, momentum=0.9))
        per_epoch = data.train.pairs(self.batch_size, 0).steps_per_epoch
        for step, loss in descend(run, model, optimizer, data.train.pairs(self.batch_size, self.epochs * per_epoch)):
            run.log(step, **{f"loss/{name}": loss})
        return model


def plain_block(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The body of a residual block without its shortcut."""
    return nn.Sequential(basic_block(inputs, outputs, stride).body, nn.ReLU())


def first_layer_gradient_norm(model: Classifier, data: Dataset) -> Tensor:
    x, y = data.train.x[:64], check_labels(data.train.y, len(data.classes))[:64]
    (gradient,) = torch.autograd.grad(model.loss(x, y), model.get_parameter("network.0.0.weight"))
    return gradient.square().sum().sqrt()
