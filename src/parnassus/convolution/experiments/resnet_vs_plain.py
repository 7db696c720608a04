"""Deep convolutional networks with and without skip connections (Diehl sec. 1.6)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import SGD

from parnassus.convolution.residual import Block, basic_block, bottleneck_block, resnet, small_stem
from parnassus.data import Dataset, open_data
from parnassus.layers import Classifier, count_parameters, evaluate, require_labels
from parnassus.report import curves
from parnassus.setting_types import ImageData
from parnassus.train import Positive, Run, at_least, descend, no_band

covers = ("D1.6.5", "Z8.5")
expected = {
    "residual_accuracy": at_least(0.7, "test accuracy with skip connections"),
    "plain_accuracy": no_band("the same without skip connections"),
    "bottleneck_accuracy": no_band("the same with bottleneck blocks"),
    "gain": at_least(0.1, "test accuracy with minus without skip connections"),
    "first_gradient_ratio": no_band(
        "gradient norm of the first layer before training, with over without skip connections"
    ),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"blocks": 1, "width": 8, "epochs": 1, "batch_size": 400},
    "gpu": {"data": "cifar10", "width": 64, "blocks": 9, "epochs": 30, "batch_size": 128},
}


@dataclass(frozen=True)
class Experiment:
    data: ImageData = "digits"  # images by class, or a folder of your own
    blocks: Positive[int] = 6  # blocks in each of two stages, with two convolutions each
    width: Positive[int] = 12  # channels of the first stage; the second has twice as many
    epochs: Positive[int] = 3  # passes over the training images
    batch_size: Positive[int] = 64  # images per gradient step
    learning_rate: Positive[float] = 0.05  # learning rate of SGD with momentum 0.9

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        kinds: dict[str, Block] = {"residual": basic_block, "plain": plain_block, "bottleneck": bottleneck_block}
        models, first = {}, {}
        for name, block in kinds.items():
            model = self.build(block, data)
            first[name] = first_layer_gradient_norm(model.to(run.device), data)
            models[name] = self.train(run, name, model, data)
        labels = require_labels(data.test.y, len(data.classes))
        accuracy = {name: evaluate(model, data.test.x, labels).accuracy for name, model in models.items()}
        lines = {name: run.curve(f"loss/{name}") for name in kinds}
        depth = 4 * self.blocks + 2
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
                    "first gradient": f"{float(first[name]):.1e}",
                }
                for name, model in models.items()
            ],
            "First gradient: norm of the gradient of the loss in the weights of the first convolution before training.",
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

    def build(self, block: Block, data: Dataset) -> Classifier:
        return resnet(
            small_stem(data.shape[0], self.width),
            len(data.classes),
            block=block,
            counts=(self.blocks, self.blocks),
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
    x, y = data.train.x[:64], require_labels(data.train.y, len(data.classes))[:64]
    (gradient,) = torch.autograd.grad(model.loss(x, y), model.get_parameter("network.0.0.weight"))
    return gradient.square().sum().sqrt()
