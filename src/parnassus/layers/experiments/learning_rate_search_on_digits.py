"""Learning-rate selection: learning-rate range test and validation search (book sec. 1.3)."""

from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from torch.optim import SGD

from parnassus.data import Dataset, Split, open_data
from parnassus.layers import Classifier, check_labels, dense_classifier, evaluate
from parnassus.optim import LearningRateCurve, find_learning_rate, holdout_indices, validation_search
from parnassus.report import curves
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, UnitInterval, at_least, between, descend

covers = ("B1.3-10", "B1.3-11")
expected = {
    "best_rate": between(0.3, 3.0, "learning rate with the smallest validation loss"),
    "range_test_rate": between(0.1, 5.0, "learning rate suggested by the range test"),
    "test_accuracy": at_least(0.95, "test accuracy with the best learning rate"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"epochs": 1}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    learning_rates: tuple[Positive[float], ...] = (
        0.003,
        0.01,
        0.03,
        0.1,
        0.3,
        1.0,
        3.0,
        10.0,
    )  # candidate learning rates
    validation_fraction: UnitInterval = 0.2  # fraction of training images held out
    width: Positive[int] = 128  # hidden units
    epochs: Positive[int] = 30  # passes over the training images, per candidate
    batch_size: Positive[int] = 64  # images per gradient step

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        labels, test_labels = (check_labels(split.y, len(data.classes)) for split in (data.train, data.test))
        rows, held = holdout_indices(len(data.train), self.validation_fraction)
        train = Split(data.train.x[rows], labels[rows])
        validation = Split(data.train.x[held], labels[held])

        range_test = self.range_test(data, train)
        search = validation_search(
            self.learning_rates, lambda rate: self.validation_loss(run, data, train, validation, rate)
        )
        run.figure(
            "learning-rate range test",
            curves(
                {"smoothed mini-batch loss": (range_test.rates, range_test.losses)},
                x_label="learning rate",
                y_label="loss",
                log_x=True,
                marks={"suggestion": range_test.suggestion},
            ),
            "The learning rate grows with every step; the test ends when the loss has quadrupled.",
        )
        run.figure(
            "validation search",
            curves(
                {"validation loss": (self.learning_rates, [min(loss, 10.0) for loss in search.losses])},
                x_label="learning rate",
                y_label="cross-entropy",
                log_x=True,
                marks={"best": search.best},
            ),
            f"One training of {self.epochs} epochs per learning rate, evaluated on {len(validation)} held-out images.",
        )
        run.table(
            "validation losses",
            [
                {"learning rate": rate, "validation loss": round(loss, 4)}
                for rate, loss in zip(self.learning_rates, search.losses, strict=True)
            ],
        )

        model, optimizer = run.prepare(self.network(data), partial(SGD, lr=search.best))
        per_epoch = data.train.pairs(self.batch_size, 0, partial=True).steps_per_epoch
        batches = data.train.pairs(self.batch_size, self.epochs * per_epoch, partial=True)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss)
        test = evaluate(model, data.test.x, test_labels)
        run.note(
            "results",
            "The range test, a single run of at most 100 steps, suggests a learning rate of "
            f"{range_test.suggestion:.2g}; the validation search, with {len(self.learning_rates)} trainings, selects "
            f"{search.best:g}. The test set is used once, after training on all images with that rate: accuracy "
            f"{100 * test.accuracy:.1f} %.",
        )
        return {"best_rate": search.best, "range_test_rate": range_test.suggestion, "test_accuracy": test.accuracy}

    def network(self, data: Dataset) -> Classifier:
        return dense_classifier(prod(data.shape), len(data.classes), hidden=(self.width,))

    def range_test(self, data: Dataset, train: Split) -> LearningRateCurve:
        model = self.network(data).to(train.x.device)
        batches = iter(train.pairs(self.batch_size, 100))
        return find_learning_rate(
            model.parameters(),
            lambda: model.loss(*next(batches)),
            min_rate=1e-4,
            max_rate=100.0,
            steps=100,
            smoothing=0.7,
        )

    def validation_loss(self, run: Run, data: Dataset, train: Split, validation: Split, rate: float) -> float:
        """Train with one learning rate; all candidates share the initialisation and the batches."""
        torch.manual_seed(run.seed)
        model = self.network(data).to(run.device)
        optimizer = SGD(model.parameters(), lr=rate)
        per_epoch = train.pairs(self.batch_size, 0, partial=True).steps_per_epoch
        for x, y in train.pairs(self.batch_size, self.epochs * per_epoch, partial=True):
            run.update(optimizer, model.loss(x, y))
        return evaluate(model, validation.x, check_labels(validation.y, len(data.classes))).loss
