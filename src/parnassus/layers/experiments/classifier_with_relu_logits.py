"""The book's dense classifier, as printed (ReLU on the logits) and with linear logits (book sec. 1.4).

Fashion-MNIST must be downloaded; the default is the embedded handwritten digits. The listing's five epochs over
60,000 images are 4,690 steps; both networks are trained for as many steps on any data set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, log, prod

import torch
from torch import Tensor
from torch.optim import SGD

from parnassus.data import Dataset, open_data
from parnassus.layers import (
    Activation,
    Classifier,
    check_labels,
    count_parameters,
    dead_logits,
    dense_classifier,
    evaluate,
    identity,
    relu,
)
from parnassus.layers.commands.image_classifiers import EvaluateImages as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.layers.commands.image_classifiers import PredictImages as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.losses import accuracy_per_class, cross_entropy
from parnassus.report import curves, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, at_most, between, descend, no_band

covers = ("B1.4-4", "B1.4-8", "B1.4-10", "B1.4-11", "B1.4-12", "B1.4-13", "B1.4-14")
expected = {
    "fixed_accuracy": at_least(0.62, "test accuracy with linear logits"),
    "fixed_loss": at_most(1.85, "test cross-entropy with linear logits, in nats"),
    "printed_accuracy": between(0.2, 0.7, "test accuracy of the network as printed"),
    "printed_loss": no_band("test cross-entropy of the network as printed, in nats"),
    "gain": at_least(0.0, "test accuracy with linear logits minus that as printed"),
    "starts_with_dead_logits_printed": no_band("fraction of runs in which the printed network has a dead logit"),
    "starts_with_dead_logits_fixed": between(
        0, 0, "fraction of runs in which the network with linear logits has a dead logit"
    ),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 60, "num_evaluations": 2, "num_networks": 2, "width": 64},
    "gpu": {"data": "fashion_mnist", "num_networks": 5},
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "mnist_mini"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    width: Positive[int] = 512  # units of each of the two hidden layers
    steps: Positive[int] = 4_690  # gradient steps; 5 epochs of Fashion-MNIST
    num_evaluations: Positive[int] = 5  # evaluations during training; on Fashion-MNIST one per epoch by default
    num_networks: Positive[int] = 1  # independent initialisations; results are means over them
    batch_size: Positive[int] = 64  # images per gradient step
    learning_rate: Positive[float] = 1e-3  # learning rate of SGD

    def model(self, shape: Sequence[int], classes: Sequence[str], output: Activation = identity) -> Classifier:
        return dense_classifier(prod(shape), len(classes), hidden=(self.width, self.width), output=output)

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        describe_data(run, data)
        results: dict[str, list[ClassifierResult]] = {"printed": [], "fixed": []}
        for seed in range(1, self.num_networks + 1):
            printed = self.model(data.shape, data.classes, relu)
            fixed = run.build(self.model, shape=data.shape, classes=data.classes)
            fixed.load_state_dict(printed.state_dict())  # the same initialisation for both
            for name, model in (("printed", printed), ("fixed", fixed)):
                trained = self.train(run, name if seed == 1 else f"{name} {seed}", model, data)
                results[name].append(ClassifierResult.measure(trained, data))
                if seed == 1 and name == "fixed":
                    run.publish(trained)
        self.report(run, data, results)
        run.note("size", f"Each network has {count_parameters(fixed):,} parameters (book ex. 1.1).")
        mean = {name: sum(end.accuracy for end in each) / self.num_networks for name, each in results.items()}
        return {
            "printed_accuracy": mean["printed"],
            "printed_loss": sum(end.loss for end in results["printed"]) / self.num_networks,
            "fixed_accuracy": mean["fixed"],
            "fixed_loss": sum(end.loss for end in results["fixed"]) / self.num_networks,
            "gain": mean["fixed"] - mean["printed"],
            "starts_with_dead_logits_printed": sum(bool(end.dead) for end in results["printed"]) / self.num_networks,
            "starts_with_dead_logits_fixed": sum(bool(end.dead) for end in results["fixed"]) / self.num_networks,
        }

    def report(self, run: Run, data: Dataset, results: dict[str, list["ClassifierResult"]]) -> None:
        rows: list[dict[str, str | float]] = [
            {
                "network": name,
                "seed": seed,
                "accuracy (%)": round(100 * end.accuracy, 1),
                "loss": round(end.loss, 4),
                "dead classes": ", ".join(data.classes[k] for k in end.dead) or "none",
            }
            for name, each in results.items()
            for seed, end in enumerate(each, 1)
        ]
        run.table("test results", rows, "The book reports 52.0 % and 1.5647 for one run on Fashion-MNIST.")
        indices = list(range(1, self.num_evaluations + 1))
        lines, ranges = {}, {}
        for name in results:
            names = [name, *(f"{name} {seed}" for seed in range(2, self.num_networks + 1))]
            values = torch.tensor([run.curve(f"accuracy/{each}")[1] for each in names])
            lines[name], ranges[name] = (indices, values.mean(0)), (values.amin(0), values.amax(0))
        run.figure(
            "accuracy during training",
            curves(
                lines, x_label="evaluation", y_label="test accuracy", bands=ranges if self.num_networks > 1 else None
            ),
            f"Mean and range over {self.num_networks} initialisations." if self.num_networks > 1 else "",
        )
        run.table(
            "accuracy by class",
            [
                {"class": label, **{name: round(float(each[0].by_class[k]), 3) for name, each in results.items()}}
                for k, label in enumerate(data.classes)
            ],
            "Test accuracy within each class, first initialisation; a class with a dead logit is never predicted.",
        )
        run.note("results", summarise(data, results))

    def train(self, run: Run, name: str, model: Classifier, data: Dataset) -> Classifier:
        """SGD with shuffled batches; the listing does not shuffle."""
        labels = check_labels(data.test.y, len(data.classes))
        model, optimizer = run.prepare(model, partial(SGD, lr=self.learning_rate))
        interval = self.steps // self.num_evaluations
        for step, loss in descend(run, model, optimizer, data.train.pairs(self.batch_size, self.steps, partial=True)):
            run.log(step, **{f"loss/{name}": loss})
            if (step + 1) % interval == 0:
                test = evaluate(model, data.test.x, labels)
                run.record(step, **{f"accuracy/{name}": test.accuracy, f"test_loss/{name}": test.loss})
        return model


@dataclass(frozen=True)
class ClassifierResult:
    """Test results of one trained network."""

    accuracy: float
    loss: float
    by_class: Tensor  # accuracy within each class
    dead: list[int]  # classes whose logit is 0 on all training images
    floor: float  # minimum loss of a test image of such a class

    @classmethod
    @torch.no_grad()
    def measure(cls, model: Classifier, data: Dataset) -> "ClassifierResult":
        labels = check_labels(data.test.y, len(data.classes))
        logits, dead = model(data.test.x), dead_logits(model, data.train.x)
        losses = cross_entropy(logits, labels)[torch.isin(labels, dead)]
        test = evaluate(model, data.test.x, labels)
        by_class = accuracy_per_class(logits, labels)
        return cls(test.accuracy, test.loss, by_class, dead.tolist(), float(losses.min()) if len(losses) else inf)


def describe_data(run: Run, data: Dataset) -> None:
    """Example images (book fig. 1.5) and statistics of the data set."""
    labels = check_labels(data.train.y, len(data.classes))
    counts = torch.bincount(labels, minlength=len(data.classes))
    if len(data.shape) == 3 and int(counts.min()) >= 8:
        first = torch.cat([(labels == k).nonzero()[:8, 0] for k in range(len(data.classes))])
        run.figure(
            "sample images",
            image_grid(data.train.x[first], columns=8, row_labels=data.classes, scale=0.8),
            "The first images of each class (book fig. 1.5).",
        )
    run.table(
        "data",
        [
            {
                "name": data.name,
                "training images": len(data.train),
                "test images": len(data.test),
                "smallest class": int(counts.min()),
                "largest class": int(counts.max()),
                "pixel mean": round(float(data.train.x.mean()), 5),
                "pixel std": round(float(data.train.x.std()), 5),
            }
        ],
    )


def summarise(data: Dataset, results: dict[str, list[ClassifierResult]]) -> str:
    affected = [end for end in results["printed"] if end.dead]
    bound = f"ln {len(data.classes)} = {log(len(data.classes)):.4f}"
    outcome = (
        f"This happened in {len(affected)} of {len(results['printed'])} runs: the logit is 0 on every training image, "
        f"it receives no gradient, and the loss of a test image of the class is at least "
        f"{min(end.floor for end in affected):.4f}, where the bound is {bound}."
        if affected
        else "With this seed no logit is dead, but negative pre-activations still pass no gradient."
    )
    mean = {name: 100 * sum(end.accuracy for end in each) / len(each) for name, each in results.items()}
    return (
        "The listing applies a ReLU to the logits, so no logit is negative. The logit of a class is dead if its "
        f"pre-activation is negative on all images. {outcome}\n\n"
        f"With linear logits the same initialisation reaches {mean['fixed']:.1f} % instead of {mean['printed']:.1f} %."
    )
