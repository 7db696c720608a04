"""The book's first classifier, as printed and without its last ReLU (book sec. 1.4).

Fashion-MNIST is a download: without it the same training runs on the handwritten digits that come along. The
listing's five epochs over 60,000 images are 4,690 steps, which is what both networks get here on any data.
"""

from dataclasses import dataclass
from functools import partial
from math import inf, log, prod

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
    "starts_with_dead_logits_printed": reported("share of the starts in which the printed network lost a class"),
    "starts_with_dead_logits_fixed": between(0, 0, "the same without the last ReLU"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 60, "stages": 2, "starts": 2, "hidden": 64},
    "gpu": {"data": "fashion_mnist", "starts": 5},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # mnist_mini, fashion_mnist, mnist, digits, or a folder or file of your own
    hidden: int = 512  # units in each of the two hidden layers
    steps: int = 4_690  # gradient steps; 5 epochs of Fashion-MNIST
    stages: int = 5  # tests on the way; with Fashion-MNIST each stage is an epoch
    starts: int = 1  # independent starts; the numbers are means over them
    batch: int = 64  # images a step
    rate: float = 1e-3  # learning rate of plain SGD

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        show(run, data)
        inputs, classes = prod(data.shape), len(data.classes)
        ends: dict[str, list[End]] = {"printed": [], "fixed": []}
        for start in range(1, self.starts + 1):
            printed = dense_classifier(inputs, classes, hidden=(self.hidden, self.hidden), output=relu)
            fixed = dense_classifier(inputs, classes, hidden=(self.hidden, self.hidden), output=identity)
            fixed.load_state_dict(printed.state_dict())  # the same start for both
            for name, model in (("printed", printed), ("fixed", fixed)):
                trained = self.train(run, name if start == 1 else f"{name} {start}", model, data)
                ends[name].append(End.of(trained, data))
        self.tell(run, data, ends)
        run.note("size", f"Each network has {parameter_count(fixed):,} parameters (book ex. 1.1).")
        mean = {name: sum(end.accuracy for end in each) / self.starts for name, each in ends.items()}
        return {
            "printed_accuracy": mean["printed"],
            "printed_loss": sum(end.loss for end in ends["printed"]) / self.starts,
            "fixed_accuracy": mean["fixed"],
            "fixed_loss": sum(end.loss for end in ends["fixed"]) / self.starts,
            "gain": mean["fixed"] - mean["printed"],
            "starts_with_dead_logits_printed": sum(bool(end.dead) for end in ends["printed"]) / self.starts,
            "starts_with_dead_logits_fixed": sum(bool(end.dead) for end in ends["fixed"]) / self.starts,
        }

    def tell(self, run: Run, data: Dataset, ends: dict[str, list["End"]]) -> None:
        rows: list[dict[str, str | float]] = [
            {
                "network": name,
                "start": start,
                "accuracy %": round(100 * end.accuracy, 1),
                "loss": round(end.loss, 4),
                "dead classes": ", ".join(data.classes[k] for k in end.dead) or "none",
            }
            for name, each in ends.items()
            for start, end in enumerate(each, 1)
        ]
        run.table("every start", rows, "On the test set. The book's one run on Fashion-MNIST ends at 52.0 %, 1.5647.")
        stages = list(range(1, self.stages + 1))
        lines, reach = {}, {}
        for name in ends:
            names = [name, *(f"{name} {start}" for start in range(2, self.starts + 1))]
            every = torch.tensor([run.curve(f"accuracy/{each}")[1] for each in names])
            lines[name], reach[name] = (stages, every.mean(0)), (every.amin(0), every.amax(0))
        run.figure(
            "accuracy by stage",
            curves(lines, x_label="stage", y_label="test accuracy", bands=reach if self.starts > 1 else None),
            f"Mean over {self.starts} starts, and the best and the worst." if self.starts > 1 else "",
        )
        run.table(
            "accuracy by class",
            [
                {"class": label, **{name: round(float(each[0].by_class[k]), 3) for name, each in ends.items()}}
                for k, label in enumerate(data.classes)
            ],
            "Test accuracy within each class after the first start; a class with a dead logit is never named.",
        )
        run.note("what to see", story(data, ends))

    def train(self, run: Run, name: str, model: Classifier, data: Dataset) -> Classifier:
        """Plain SGD in shuffled batches; the listing forgets to shuffle."""
        labels = require_labels(data.test.y, len(data.classes))
        model, optimizer = run.prepare(model, partial(SGD, lr=self.rate))
        every = self.steps // self.stages
        for step, loss in descend(run, model, optimizer, data.train.pairs(self.batch, self.steps, partial=True)):
            run.log(step, **{f"loss/{name}": loss})
            if (step + 1) % every == 0:
                tested = evaluate(model, data.test.x, labels)
                run.record(step, **{f"accuracy/{name}": tested.accuracy, f"test_loss/{name}": tested.loss})
        return model


@dataclass(frozen=True)
class End:
    """What one training came to."""

    accuracy: float
    loss: float
    by_class: Tensor  # accuracy within each class
    dead: list[int]  # classes whose logit is 0 on all training images
    floor: float  # least loss of a test image of such a class

    @classmethod
    @torch.no_grad()
    def of(cls, model: Classifier, data: Dataset) -> "End":
        labels = require_labels(data.test.y, len(data.classes))
        logits, dead = model(data.test.x), dead_logits(model, data.train.x)
        lost = cross_entropy(logits, labels)[torch.isin(labels, dead)]
        tested = evaluate(model, data.test.x, labels)
        by_class = accuracy_per_class(logits, labels)
        return cls(tested.accuracy, tested.loss, by_class, dead.tolist(), float(lost.min()) if len(lost) else inf)


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


def story(data: Dataset, ends: dict[str, list[End]]) -> str:
    hurt = [end for end in ends["printed"] if end.dead]
    bound = f"ln {len(data.classes)} = {log(len(data.classes)):.4f}"
    lost = (
        f"It happened in {len(hurt)} of {len(ends['printed'])} starts: the logit is 0 on every training image, no "
        f"gradient reaches it any more, and each such test image costs at least {min(end.floor for end in hurt):.4f}; "
        f"less than {bound} is not possible."
        if hurt
        else "With this seed no class was lost for good, but logits below 0 still pass no gradient."
    )
    mean = {name: 100 * sum(end.accuracy for end in each) / len(each) for name, each in ends.items()}
    return (
        "The listing puts a ReLU behind the last layer, so that no logit can be negative. A class whose pre-activation "
        f"falls below 0 on all images is dead. {lost}\n\n"
        f"Without that ReLU the same start and the same batches end at {mean['fixed']:.1f} % instead of "
        f"{mean['printed']:.1f} %."
    )
