"""A LeNet reads handwritten digits, better than any dense network here (book ex. 1.3).

Trained on pictures that are moved, turned and scaled a little each time, with a 1cycle of the rate. On all of MNIST
(`--profile gpu`) it makes fewer than 60 mistakes in 10,000.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim import AdamW

from parnassus.convolution import filters, lenet, random_affine
from parnassus.data import Dataset, open_data
from parnassus.layers import Classifier, evaluate, parameter_count, require_labels
from parnassus.optim import one_cycle_rate
from parnassus.report import confusion, curves, image_grid
from parnassus.train import Run, at_least, at_most, reported

covers = ("B1.4-16",)
expected = {
    "accuracy": at_least(0.95, "share of the test pictures that are named right"),
    "test_loss": at_most(0.2, "cross-entropy on the test pictures, in nats"),
    "mistakes": reported("test pictures named wrong"),
    "parameters": reported("numbers that training may change"),
    "training_seconds": reported("time of the training loop"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 30, "tests": 2, "batch": 50},
    "gpu": {"data": "mnist", "steps": 9_600, "batch": 250, "channels": 32, "hidden": 256},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # mnist_mini, mnist, fashion_mnist, or a folder or file of your own
    steps: int = 600  # gradient steps
    tests: int = 10  # times on the way that the test set is read
    batch: int = 100  # pictures a step
    channels: int = 16  # filters of the first convolution; the second has twice as many
    hidden: int = 128  # units of the dense layer
    dropout: float = 0.5  # share of units left out before each dense layer
    peak: float = 3e-3  # largest learning rate of the 1cycle
    weight_decay: float = 1e-2  # decoupled, as AdamW has it
    shift: float = 2.0  # most pixels that a picture is moved
    turn: float = 10.0  # most degrees that it is turned
    scale: float = 0.1  # most share by which it grows or shrinks

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        model = run.build(self.model, shape=data.shape, classes=len(data.classes))
        before = filters(model).cpu()
        model, optimizer = run.prepare(model, partial(AdamW, weight_decay=self.weight_decay))
        labels = require_labels(data.test.y, len(data.classes))
        every = max(1, self.steps // self.tests)
        began = time.perf_counter()
        for step, (x, y) in run.steps(data.train.pairs(self.batch, self.steps)):
            for group in optimizer.param_groups:
                group["lr"] = one_cycle_rate(step, self.steps, peak=self.peak)
            moved = random_affine(x, shift=self.shift, turn=self.turn, scale=self.scale)
            with run.autocast():
                loss = model.loss(moved, y)
            run.update(optimizer, loss)
            run.log(step, loss=loss.detach())
            if (step + 1) % every == 0:
                tested = evaluate(model, data.test.x, labels)
                run.record(step, accuracy=tested.accuracy, test_loss=tested.loss)
        seconds = time.perf_counter() - began
        model.eval()
        run.publish(model)
        self.tell(run, model, data, before)
        tested = evaluate(model, data.test.x, labels)
        return {
            "accuracy": tested.accuracy,
            "test_loss": tested.loss,
            "mistakes": round((1 - tested.accuracy) * len(labels)),
            "parameters": parameter_count(model),
            "training_seconds": seconds,
        }

    def model(self, shape: Sequence[int], classes: int) -> Classifier:
        inputs, height, width = shape
        return lenet(
            (inputs, height, width),
            classes,
            channels=(self.channels, 2 * self.channels),
            hidden=(self.hidden,),
            dropout=self.dropout,
        )

    def tell(self, run: Run, model: Classifier, data: Dataset, before: Tensor) -> None:
        x = data.train.x[:10]
        moved = torch.cat(
            [x, *(random_affine(x, shift=self.shift, turn=self.turn, scale=self.scale) for _ in range(2))]
        )
        labels = ("as they are", "moved once", "and again")
        run.figure("moved pictures", image_grid(moved, columns=10, row_labels=labels), "What the training sees.")
        steps, accuracy = run.curve("accuracy")
        wrong = {"mistakes": (steps, [1 - share for share in accuracy])}
        run.figure("mistakes", curves(wrong, x_label="step", y_label="share of the test named wrong", log_y=True))
        if data.shape[0] == 1:
            both = torch.cat([before, filters(model).cpu()])
            reach = both.abs().amax()
            run.figure(
                "filters",
                image_grid(both / (2 * reach) + 0.5, columns=self.channels // 2, scale=0.8),
                f"The {self.channels} filters of the first layer before training (above) and after it (below).",
            )
        show_mistakes(run, model, data)


@torch.no_grad()
def show_mistakes(run: Run, model: Classifier, data: Dataset) -> None:
    """The test pictures that are named wrong, the surest first, and which classes are taken for which."""
    labels = require_labels(data.test.y, len(data.classes))
    probabilities = torch.cat([model(part).softmax(-1) for part in data.test.x.split(1_000)])
    sure, named = probabilities.max(-1)
    wrong = (named != labels).nonzero()[:, 0]
    if len(wrong) == 0:
        run.note("mistakes", "Every test picture was named right.")
        return
    shown = wrong[sure[wrong].argsort(descending=True)][:30]
    titles = [f"{data.classes[int(labels[k])]} as {data.classes[int(named[k])]}" for k in shown]
    run.figure(
        "named wrong",
        image_grid(data.test.x[shown], columns=10, titles=titles),
        f"{len(shown)} of the {len(wrong)} test pictures named wrong, the surest mistakes first.",
    )
    run.figure(
        "confusion",
        confusion(labels[wrong], named[wrong], data.classes),
        "How often each class was taken for another.",
    )
