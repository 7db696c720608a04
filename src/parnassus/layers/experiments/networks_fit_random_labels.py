"""A network learns labels drawn by lot as perfectly as true ones, and nothing from them (Zhao sec. 5)."""

from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import Split, open_data
from parnassus.layers import dense_classifier, evaluate, parameter_count, require_labels
from parnassus.report import curves
from parnassus.train import Run, at_least, between, reported

covers = ("Z5.11",)
expected = {
    "train_accuracy_random": at_least(1.0, "share of training images whose random label is reproduced"),
    "test_accuracy_random": between(0.04, 0.17, "share of test images right after learning random labels: chance"),
    "train_accuracy_true": at_least(1.0, "share of training images right with true labels"),
    "test_accuracy_true": at_least(0.78, "share of test images right with true labels"),
    "test_accuracy_noise": reported("share of test images right after learning the true labels of shuffled pixels"),
    "times_slower": at_least(1.5, "epochs to fit every random label over epochs to fit every true one"),
    "weights_per_image": reported("parameters of the network over training images"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"images": 100, "epochs": 30, "hidden": 64},
    "gpu": {"data": "mnist", "images": 20_000, "epochs": 300, "hidden": 4_096},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # digits, mnist_mini, mnist, fashion_mnist, or a folder or file of your own
    images: int = 600  # training images
    hidden: int = 512  # hidden units
    epochs: int = 60  # passes over the training images
    batch: int = 100  # images a step

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        classes = len(data.classes)
        test_labels = require_labels(data.test.y, classes)
        mixed = torch.randperm(len(data.train), device=run.device)[: self.images]
        x, labels = data.train.x[mixed], require_labels(data.train.y, classes)[mixed]
        drawn = torch.randint(classes, labels.shape, device=run.device)
        tasks = {
            "true labels": Split(x, labels),
            "random labels": Split(x, drawn),
            "shuffled pixels": Split(shuffled_apart(x), labels),
        }
        nets = {
            name: run.prepare(
                dense_classifier(prod(data.shape), classes, hidden=(self.hidden,)), partial(Adam, lr=1e-3)
            )
            for name in tasks
        }
        batches = {name: task.pairs(self.batch, 0, partial=True) for name, task in tasks.items()}
        per_epoch = batches["true labels"].epoch
        for step, _ in run.steps(self.epochs * per_epoch):
            for name, (net, optimizer) in nets.items():
                run.update(optimizer, net.loss(*batches[name].at(step, run.seed)))
            if (step + 1) % per_epoch == 0:
                scores = {
                    name: evaluate(nets[name][0], task.x, labels_of(task)).accuracy for name, task in tasks.items()
                }
                run.record(step, **{f"accuracy/{name}": score for name, score in scores.items()})

        lines = {name: run.curve(f"accuracy/{name}")[1] for name in tasks}
        run.figure(
            "every label is learned",
            curves(
                {name: (range(1, len(line) + 1), line) for name, line in lines.items()},
                x_label="epoch",
                y_label="share of training images right",
            ),
            "The same network, the same images, as many steps. Labels drawn by lot take longer, that is all; "
            "images whose pixels were shuffled, each in its own way, are learned as well, with their true labels.",
        )
        on_test = {name: evaluate(net, data.test.x, test_labels).accuracy for name, (net, _) in nets.items()}
        on_train = {name: line[-1] for name, line in lines.items()}
        fitted = {name: first_perfect(line) for name, line in lines.items()}
        run.table(
            "seen and unseen",
            [
                {
                    "task": name,
                    "training images right": round(on_train[name], 4),
                    "test images right": round(on_test[name], 4),
                    "epochs until every label fits": fitted[name] if fitted[name] <= self.epochs else "not yet",
                }
                for name in tasks
            ],
        )
        weights = parameter_count(nets["true labels"][0])
        run.note(
            "what to see",
            f"{weights:,} parameters for {self.images:,} images: the network can learn anything, and does. With random "
            f"labels it names {100 * on_test['random labels']:.1f} % of new images rightly, no more than chance. So "
            "fitting the data explains nothing about generalising, and no bound that looks at the size of the network "
            f"alone can tell this run from the one that names {100 * on_test['true labels']:.1f} % rightly.",
        )
        return {
            "train_accuracy_random": on_train["random labels"],
            "test_accuracy_random": on_test["random labels"],
            "train_accuracy_true": on_train["true labels"],
            "test_accuracy_true": on_test["true labels"],
            "test_accuracy_noise": on_test["shuffled pixels"],
            "times_slower": fitted["random labels"] / fitted["true labels"],
            "weights_per_image": weights / self.images,
        }


def shuffled_apart(x: Tensor) -> Tensor:
    """Every image with its pixels in an order of its own: its grey values are kept, its shape is gone."""
    flat = x.flatten(1)
    return flat.gather(1, torch.rand_like(flat).argsort(1)).reshape(x.shape)


def labels_of(task: Split) -> Tensor:
    assert task.y is not None
    return task.y


def first_perfect(line: list[float]) -> int:
    """The first epoch, counted from 1, in which every label was right; one past the last if none was."""
    return next((epoch for epoch, right in enumerate(line, 1) if right >= 1.0), len(line) + 1)
