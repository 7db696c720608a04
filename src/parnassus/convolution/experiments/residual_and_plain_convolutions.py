"""The same deep convolutional network with and without skip connections (Diehl sec. 1.6)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import SGD

from parnassus.convolution.residual import Block, basic_block, bottleneck_block, resnet, small_stem
from parnassus.data import Dataset, open_data
from parnassus.layers import Classifier, evaluate, parameter_count, require_labels
from parnassus.report import curves
from parnassus.train import Run, at_least, descend, reported

covers = ("D1.6.5", "Z8.5")
expected = {
    "residual_accuracy": at_least(0.7, "test accuracy with skips"),
    "plain_accuracy": reported("the same without"),
    "bottleneck_accuracy": reported("with skips and bottleneck blocks"),
    "gain": at_least(0.1, "accuracy that the skips add"),
    "first_gradient_ratio": reported("length of the first layer's gradient before training, with skips over without"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"blocks": 1, "width": 8, "epochs": 1, "batch": 400},
    "gpu": {"data": "cifar10", "width": 64, "blocks": 9, "epochs": 30, "batch": 128},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # digits, mnist_mini, mnist, fashion_mnist, cifar10, or a folder of pictures of your own
    blocks: int = 6  # blocks in each of two stages; two convolutions a block
    width: int = 12  # channels of the first stage; the second has twice as many
    epochs: int = 3  # passes over the training images
    batch: int = 64  # images a step
    rate: float = 0.05  # learning rate of SGD with momentum 0.9

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        kinds: dict[str, Block] = {"residual": basic_block, "plain": plain_block, "bottleneck": bottleneck_block}
        models, first = {}, {}
        for name, block in kinds.items():
            model = self.build(block, data)
            first[name] = first_gradient(model.to(run.device), data)
            models[name] = self.train(run, name, model, data)
        labels = require_labels(data.test.y, len(data.classes))
        accuracy = {name: evaluate(model, data.test.x, labels).accuracy for name, model in models.items()}
        lines = {name: run.curve(f"loss/{name}") for name in kinds}
        depth = 4 * self.blocks + 2
        run.figure(
            "training loss",
            curves(lines, x_label="step", y_label="cross-entropy", log_y=True, smooth=True),
            f"{depth} layers deep. Residual and plain networks have the same convolutions but for the one projection; "
            "the bottleneck network has three a block and, at the same width, far fewer weights.",
        )
        run.table(
            "the networks",
            [
                {
                    "network": name,
                    "parameters": parameter_count(model),
                    "test accuracy": round(accuracy[name], 4),
                    "first gradient": f"{float(first[name]):.1e}",
                }
                for name, model in models.items()
            ],
            "First gradient: length of the loss's gradient in the first convolution's weights before training.",
        )
        run.note(
            "what to see",
            f"After {self.epochs} epochs the network with skips names {100 * accuracy['residual']:.1f} % of the test "
            f"images rightly, the one without {100 * accuracy['plain']:.1f} %. Batch normalisation keeps the values "
            "level in both, and so the plain network's gradients do not vanish: they grow on their way back. At the "
            f"first layer they are {float(first['plain'] / first['residual']):.1f} times as long as with skips.",
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
        model, optimizer = run.prepare(model, partial(SGD, lr=self.rate, momentum=0.9))
        per_epoch = data.train.pairs(self.batch, 0).epoch
        for step, loss in descend(run, model, optimizer, data.train.pairs(self.batch, self.epochs * per_epoch)):
            run.log(step, **{f"loss/{name}": loss})
        return model


def plain_block(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The body of a residual block without its shortcut."""
    return nn.Sequential(basic_block(inputs, outputs, stride).body, nn.ReLU())


def first_gradient(model: Classifier, data: Dataset) -> Tensor:
    x, y = data.train.x[:64], require_labels(data.train.y, len(data.classes))[:64]
    (slope,) = torch.autograd.grad(model.loss(x, y), model.get_parameter("network.0.0.weight"))
    return slope.square().sum().sqrt()
