"""Early stopping: a network overfits few digits with label noise (book fig. 2.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from jaxtyping import Float
from torch import Tensor
from torch.optim import Adam

from parnassus.data import Split, open_data
from parnassus.layers import Classifier, check_labels, dense_classifier, evaluate
from parnassus.layers.commands.image_classifiers import EvaluateImages as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.layers.commands.image_classifiers import PredictImages as Predict  # noqa: F401 - declares `parnassus predict`
from parnassus.layers.commands.image_classifiers import evaluate_split
from parnassus.losses import softmax
from parnassus.optim import EarlyStopping, holdout_indices
from parnassus.report import curves
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, UnitInterval, at_least, at_most, between, descend, no_band

covers = ("B2.2-8", "D1.3.2", "D1.3.3")
expected = {
    "best_epoch": between(1, 40, "epoch with the smallest validation loss"),
    "stopped_at": no_band("epoch at which early stopping would end training"),
    "validation_rise": at_least(1.4, "ratio of the last to the smallest validation loss"),
    "training_fall": at_most(0.25, "ratio of the training loss of the last epoch to that of the best epoch"),
    "accuracy_stopped": at_least(0.78, "test accuracy with the restored weights"),
    "accuracy_last": no_band("test accuracy with the weights of the last epoch"),
    "restored_error": between(
        0.0, 1e-6, "absolute difference between the validation loss of the restored weights and the recorded one"
    ),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"epochs": 8, "patience": 3, "width": 64},
    "gpu": {"data": "mnist", "num_examples": 4_000, "width": 2_048},
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_examples: Positive[int] = 500  # labelled images, training and validation together
    label_noise: UnitInterval = 0.2  # fraction of their labels replaced at random
    validation_fraction: UnitInterval = 0.4  # fraction of the images held out for validation
    width: Positive[int] = 512  # hidden units
    epochs: Positive[int] = 150  # passes over the training images, far beyond the optimum
    patience: Positive[int] = 20  # epochs without improvement before stopping
    batch_size: Positive[int] = 32  # images per gradient step

    def model(self, shape: Sequence[int], classes: Sequence[str]) -> Classifier:
        return dense_classifier(prod(shape), len(classes), hidden=(self.width,))

    def predict(self, model: Classifier, x: Float[Tensor, "rows *example"]) -> Float[Tensor, "rows classes"]:
        """Class probabilities, which `parnassus explain` attributes to the inputs."""
        return softmax(model(x))

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        classes = len(data.classes)
        test_labels = check_labels(data.test.y, classes)
        subset = data.train.take(self.num_examples)
        labels = corrupt_labels(check_labels(subset.y, classes), classes, self.label_noise)
        rows, held = holdout_indices(len(subset), self.validation_fraction)
        train, validation = Split(subset.x[rows], labels[rows]), Split(subset.x[held], labels[held])

        model = run.build(self.model, shape=data.shape, classes=data.classes)
        model, optimizer = run.prepare(model, partial(Adam, lr=1e-3))
        stopping = EarlyStopping(self.patience)
        run.keep("stopping", stopping)
        per_epoch = train.pairs(self.batch_size, 0, partial=True).steps_per_epoch
        batches = train.pairs(self.batch_size, self.epochs * per_epoch, partial=True)
        for step, _ in descend(run, model, optimizer, batches):
            if (step + 1) % per_epoch:
                continue
            errors = {"train": evaluate_split(model, train), "validation": evaluate_split(model, validation)}
            stopping.update(errors["validation"].loss, model)  # test images are not used
            errors["test"] = evaluate(model, data.test.x, test_labels)
            run.record(step, **{f"loss/{name}": error.loss for name, error in errors.items()})

        last = evaluate(model, data.test.x, test_labels).accuracy
        stopping.restore(model)
        stopped = evaluate(model, data.test.x, test_labels).accuracy
        lines = {name: run.curve(f"loss/{name}")[1] for name in ("train", "validation", "test")}
        self.plot_losses(run, lines, stopping)
        best = stopping.best_update
        run.note(
            "results",
            f"The training loss decreases throughout, since the network also fits the {100 * self.label_noise:.0f} % "
            f"random labels. The validation loss is smallest after epoch {best + 1} and then rises to "
            f"{lines['validation'][-1] / stopping.best_error:.1f} times that value. With the weights of that epoch the "
            f"test accuracy (true labels) is {100 * stopped:.1f} %, with those of the last epoch {100 * last:.1f} %.",
        )
        return {
            "best_epoch": float(best + 1),
            "stopped_at": float((stopping.stopped_at or self.epochs - 1) + 1),
            "validation_rise": lines["validation"][-1] / stopping.best_error,
            "training_fall": lines["train"][-1] / lines["train"][best],
            "accuracy_stopped": stopped,
            "accuracy_last": last,
            "restored_error": abs(evaluate_split(model, validation).loss - stopping.best_error),
        }

    def plot_losses(self, run: Run, lines: dict[str, list[float]], stopping: EarlyStopping) -> None:
        epochs = range(1, len(lines["train"]) + 1)
        marks = {"best": stopping.best_update + 1.0}
        if stopping.stopped_at is not None:
            marks["stop"] = stopping.stopped_at + 1.0
        run.figure(
            "loss by epoch",
            curves(
                {name: (epochs, values) for name, values in lines.items()},
                x_label="epoch",
                y_label="cross-entropy",
                log_y=True,
                marks=marks,
            ),
            "The training loss decreases throughout; the validation loss has a minimum. The weights of the first mark "
            f"are kept; training would stop at the second, {self.patience} epochs later (book fig. 2.3). The test "
            "labels have no noise, hence the lower loss; they are not used for the selection.",
        )


def corrupt_labels(labels: Tensor, classes: int, probability: float) -> Tensor:
    """Each label replaced, with the given probability, by one drawn uniformly from all classes."""
    replacements = torch.randint(classes, labels.shape, device=labels.device)
    return torch.where(torch.rand(labels.shape, device=labels.device) < probability, replacements, labels)
