"""The book's first classifier, as printed and without its last ReLU (book sec. 1.4).

Fashion-MNIST is a download: without it the same training runs on the handwritten digits that come along. The
listing's five epochs over 60,000 images are 4,690 steps, which is what both networks get here on any data.
"""

from dataclasses import dataclass
from functools import partial
from math import log, prod

import torch
from torch import Tensor
from torch.optim import SGD

from parnassus.data import Dataset, open_data
from parnassus.layers import (
    Classifier,
    dead_logits,
    dense_classifier,
    evaluate,
    identity,
    parameter_count,
    relu,
    require_labels,
)
from parnassus.losses import accuracy_per_class, cross_entropy
from parnassus.report import curves, image_grid
from parnassus.train import Run, at_least, at_most, between, descend, reported

covers = ("B1.4-4", "B1.4-8", "B1.4-10", "B1.4-11", "B1.4-12", "B1.4-13", "B1.4-14")
expected = {
    "fixed_accuracy": at_least(0.62, "test accuracy without the last ReLU"),
    "fixed_loss": at_most(1.85, "its cross-entropy, in nats"),
    "printed_accuracy": between(0.2, 0.7, "test accuracy of the network as printed"),
    "printed_loss": reported("its cross-entropy, in nats"),
    "gain": at_least(0.0, "accuracy gained by leaving the last ReLU out"),
    "dead_logits_printed": reported("classes that the printed network can no longer name"),
    "dead_logits_fixed": between(0, 0, "the same without the last ReLU"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 60, "stages": 2, "hidden": 64},
    "gpu": {"data": "fashion_mnist"},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # mnist_mini, fashion_mnist, mnist, digits, or a folder or file of your own
    hidden: int = 512  # units in each of the two hidden layers
    steps: int = 4_690  # gradient steps; 5 epochs of Fashion-MNIST
    stages: int = 5  # tests on the way; with Fashion-MNIST each stage is an epoch
    batch: int = 64  # images a step
    rate: float = 1e-3  # learning rate of plain SGD

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        show(run, data)
        inputs, classes = prod(data.shape), len(data.classes)
        printed = dense_classifier(inputs, classes, hidden=(self.hidden, self.hidden), output=relu)
        fixed = dense_classifier(inputs, classes, hidden=(self.hidden, self.hidden), output=identity)
        fixed.load_state_dict(printed.state_dict())  # the same start for both
        models = {"printed": printed, "fixed": fixed}
        for name, model in models.items():
            self.train(run, name, model, data)

        accuracy = {name: run.curve(f"accuracy/{name}")[1] for name in models}
        losses = {name: run.curve(f"test_loss/{name}")[1] for name in models}
        rows: list[dict[str, str | float]] = [
            {"network": name, "stage": stage, "accuracy %": round(100 * share, 1), "loss": round(loss, 4)}
            for name in models
            for stage, (share, loss) in enumerate(zip(accuracy[name], losses[name], strict=True), 1)
        ]
        run.table("after each stage", rows, "On the test set. The book's one run on Fashion-MNIST: 38.5 to 52.0 %.")
        stage = range(1, self.stages + 1)
        lines = {name: (stage, values) for name, values in accuracy.items()}
        run.figure("accuracy by stage", curves(lines, x_label="stage", y_label="test accuracy"))

        dead = {name: dead_logits(model.to(run.device), data.train.x).tolist() for name, model in models.items()}
        by_class = {name: class_accuracy(model, data) for name, model in models.items()}
        run.table(
            "accuracy by class",
            [
                {"class": label, **{name: round(float(shares[k]), 3) for name, shares in by_class.items()}}
                for k, label in enumerate(data.classes)
            ],
            "Test accuracy within each class; a class with a dead logit is never named.",
        )
        run.note("what to see", story(data, dead, float(dead_class_loss(printed, data, dead["printed"])), accuracy))
        run.note("size", f"Each network has {parameter_count(fixed):,} parameters (book ex. 1.1).")
        return {
            "printed_accuracy": accuracy["printed"][-1],
            "printed_loss": losses["printed"][-1],
            "fixed_accuracy": accuracy["fixed"][-1],
            "fixed_loss": losses["fixed"][-1],
            "gain": accuracy["fixed"][-1] - accuracy["printed"][-1],
            "dead_logits_printed": len(dead["printed"]),
            "dead_logits_fixed": len(dead["fixed"]),
        }

    def train(self, run: Run, name: str, model: Classifier, data: Dataset) -> None:
        """Plain SGD in shuffled batches; the listing forgets to shuffle."""
        labels = require_labels(data.test.y, len(data.classes))
        model, optimizer = run.prepare(model, partial(SGD, lr=self.rate))
        every = self.steps // self.stages
        for step, loss in descend(run, model, optimizer, data.train.pairs(self.batch, self.steps, partial=True)):
            run.log(step, **{f"loss/{name}": loss})
            if (step + 1) % every == 0:
                tested = evaluate(model, data.test.x, labels)
                run.record(step, **{f"accuracy/{name}": tested.accuracy, f"test_loss/{name}": tested.loss})


def show(run: Run, data: Dataset) -> None:
    """A sheet of images (book fig. 1.5) and what the set is like."""
    labels = require_labels(data.train.y, len(data.classes))
    counts = torch.bincount(labels, minlength=len(data.classes))
    if len(data.shape) == 3 and int(counts.min()) >= 8:
        first = torch.cat([(labels == k).nonzero()[:8, 0] for k in range(len(data.classes))])
        run.figure(
            "sample images",
            image_grid(data.train.x[first], columns=8, row_labels=data.classes, scale=0.8),
            "The first images of each class (book fig. 1.5).",
        )
    run.table(
        "the data",
        [
            {
                "name": data.name,
                "training images": len(data.train),
                "test images": len(data.test),
                "smallest class": int(counts.min()),
                "largest class": int(counts.max()),
                "pixel mean": round(float(data.train.x.mean()), 5),
                "pixel spread": round(float(data.train.x.std()), 5),
            }
        ],
    )


@torch.no_grad()
def class_accuracy(model: Classifier, data: Dataset) -> Tensor:
    return accuracy_per_class(model(data.test.x), require_labels(data.test.y, len(data.classes)))


@torch.no_grad()
def dead_class_loss(model: Classifier, data: Dataset, dead: list[int]) -> Tensor:
    """The least loss of any test image whose class is dead; NaN when none is."""
    labels = require_labels(data.test.y, len(data.classes))
    losses = cross_entropy(model(data.test.x), labels)
    chosen = losses[torch.isin(labels, torch.tensor(dead, device=losses.device, dtype=torch.long))]
    return chosen.min() if len(chosen) else torch.tensor(torch.nan)


def story(data: Dataset, dead: dict[str, list[int]], floor: float, accuracy: dict[str, list[float]]) -> str:
    names = ", ".join(data.classes[k] for k in dead["printed"])
    lost = (
        f"Here it happened to {names}: the logit is 0 on every training image, no gradient reaches it any more, and "
        f"each such test image costs at least {floor:.4f}; less than ln {len(data.classes)} = "
        f"{log(len(data.classes)):.4f} is not possible."
        if names
        else "With this seed no class was lost for good, but logits below 0 still pass no gradient."
    )
    ends = {name: 100 * values[-1] for name, values in accuracy.items()}
    return (
        "The listing puts a ReLU behind the last layer, so that no logit can be negative. A class whose pre-activation "
        f"falls below 0 on all images is dead. {lost}\n\n"
        f"Without that ReLU the same start and the same batches end at {ends['fixed']:.1f} % instead of "
        f"{ends['printed']:.1f} %."
    )
