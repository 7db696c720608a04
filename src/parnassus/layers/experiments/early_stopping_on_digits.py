"""When to stop: a network learns few digits with some wrong labels by heart (book fig. 2.3)."""

from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import Adam

from parnassus.data import Split, open_data
from parnassus.layers import Classifier, Evaluation, dense_classifier, evaluate, require_labels
from parnassus.losses import softmax
from parnassus.optim import EarlyStopping, hold_out
from parnassus.report import curves
from parnassus.train import Run, at_least, at_most, between, descend, reported

covers = ("B2.2-8", "D1.3.2", "D1.3.3")
expected = {
    "best_epoch": between(1, 40, "epoch with the least validation loss"),
    "stopped_at": reported("epoch at which patience ran out"),
    "validation_rise": at_least(1.4, "validation loss of the last epoch over the least"),
    "training_fall": at_most(0.25, "training loss of the last epoch over that of the best"),
    "accuracy_stopped": at_least(0.78, "share of test images right with the restored weights"),
    "accuracy_last": reported("the same with the weights of the last epoch"),
    "restored_error": between(0.0, 1e-6, "distance of the restored net's validation loss from the one recorded"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"epochs": 8, "patience": 3, "hidden": 64},
    "gpu": {"data": "mnist", "images": 4_000, "hidden": 2_048},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # digits, mnist_mini, mnist, fashion_mnist, or a folder or file of your own
    images: int = 500  # labelled images, for training and validation together
    wrong: float = 0.2  # share of their labels that are drawn by lot
    share: float = 0.4  # share of the images held out for validation
    hidden: int = 512  # hidden units of the network
    epochs: int = 150  # passes over the training images, well beyond where one should stop
    patience: int = 20  # epochs to wait for a better validation loss
    batch: int = 32  # images a step

    def model(self, inputs: int, classes: int) -> Classifier:
        return dense_classifier(inputs, classes, hidden=(self.hidden,))

    def predict(self, model: Classifier, x: Float[Tensor, "rows *example"]) -> Float[Tensor, "rows classes"]:
        """Probabilities, which `parnassus explain` shares out among the inputs."""
        return softmax(model(x))

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        classes = len(data.classes)
        test_labels = require_labels(data.test.y, classes)
        few = data.train.take(self.images)
        labels = partly_wrong(require_labels(few.y, classes), classes, self.wrong)
        rows, held = hold_out(len(few), self.share)
        train, validation = Split(few.x[rows], labels[rows]), Split(few.x[held], labels[held])

        model = run.build(self.model, inputs=prod(data.shape), classes=classes)
        model, optimizer = run.prepare(model, partial(Adam, lr=1e-3))
        stopping = EarlyStopping(self.patience)
        run.keep("stopping", stopping)
        per_epoch = train.pairs(self.batch, 0, partial=True).epoch
        batches = train.pairs(self.batch, self.epochs * per_epoch, partial=True)
        for step, _ in descend(run, model, optimizer, batches):
            if (step + 1) % per_epoch:
                continue
            errors = {"train": on(model, train), "validation": on(model, validation)}
            stopping.update(errors["validation"].loss, model)  # the test images have no say
            errors["test"] = evaluate(model, data.test.x, test_labels)
            run.record(step, **{f"loss/{name}": error.loss for name, error in errors.items()})

        last = evaluate(model, data.test.x, test_labels).accuracy
        stopping.restore(model)
        stopped = evaluate(model, data.test.x, test_labels).accuracy
        lines = {name: run.curve(f"loss/{name}")[1] for name in ("train", "validation", "test")}
        self.show(run, lines, stopping)
        best = stopping.best_update
        run.note(
            "what to see",
            f"The training loss falls on and on: {100 * self.wrong:.0f} % of the labels are drawn by lot, and the "
            f"network learns those too. The validation loss is least after epoch {best + 1} and then rises to "
            f"{lines['validation'][-1] / stopping.best_error:.1f} times that value. Stopping gives back the weights of "
            f"that epoch: {100 * stopped:.1f} % of the test images are named rightly, whose labels are all true, "
            f"against {100 * last:.1f} % at the end.",
        )
        return {
            "best_epoch": float(best + 1),
            "stopped_at": float((stopping.stopped_at or self.epochs - 1) + 1),
            "validation_rise": lines["validation"][-1] / stopping.best_error,
            "training_fall": lines["train"][-1] / lines["train"][best],
            "accuracy_stopped": stopped,
            "accuracy_last": last,
            "restored_error": abs(on(model, validation).loss - stopping.best_error),
        }

    def show(self, run: Run, lines: dict[str, list[float]], stopping: EarlyStopping) -> None:
        epochs = range(1, len(lines["train"]) + 1)
        marks = {"best": stopping.best_update + 1.0}
        if stopping.stopped_at is not None:
            marks["stop"] = stopping.stopped_at + 1.0
        run.figure(
            "two curves part",
            curves(
                {name: (epochs, values) for name, values in lines.items()},
                x_label="epoch",
                y_label="cross-entropy",
                log_y=True,
                marks=marks,
            ),
            "Training error falls on and on; on images held out it falls and then rises. Weights are kept at the "
            f"first mark; training would end at the second, {self.patience} epochs later (book fig. 2.3). The test "
            "labels are all true, so their loss is lower; nothing was chosen by them.",
        )


def partly_wrong(labels: Tensor, classes: int, share: float) -> Tensor:
    """The labels, each with chance `share` drawn anew among all classes."""
    drawn = torch.randint(classes, labels.shape, device=labels.device)
    return torch.where(torch.rand(labels.shape, device=labels.device) < share, drawn, labels)


def on(model: Classifier, split: Split) -> Evaluation:
    assert split.y is not None
    return evaluate(model, split.x, split.y)
