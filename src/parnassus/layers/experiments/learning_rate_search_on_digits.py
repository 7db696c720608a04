"""Two ways to a learning rate: a finder, and a search on held-out digits (book sec. 1.3)."""

from dataclasses import dataclass
from functools import partial
from math import prod

import torch
from torch.optim import SGD

from parnassus.data import Dataset, Split, open_data
from parnassus.layers import Classifier, dense_classifier, evaluate, require_labels
from parnassus.optim import RateCurve, find_rate, hold_out, validation_search
from parnassus.report import curves
from parnassus.train import Run, at_least, between, descend

covers = ("B1.3-10", "B1.3-11")
expected = {
    "best_rate": between(0.3, 3.0, "rate with the least loss on held-out digits"),
    "finder_rate": between(0.1, 5.0, "largest rate that the finder calls safe"),
    "test_accuracy": at_least(0.95, "test accuracy after training with the best rate"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"epochs": 1}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # digits, mnist_mini, mnist, fashion_mnist, or a folder or file of your own
    rates: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # candidates
    share: float = 0.2  # share of the training rows held out for validation
    hidden: int = 128  # hidden units
    epochs: int = 30  # passes over the training rows, for each candidate
    batch: int = 64  # images a step

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        labels, test_labels = (require_labels(split.y, len(data.classes)) for split in (data.train, data.test))
        rows, held = hold_out(len(data.train), self.share)
        train = Split(data.train.x[rows], labels[rows])
        validation = Split(data.train.x[held], labels[held])

        walk = self.walk(data, train)
        search = validation_search(self.rates, lambda rate: self.validation_loss(run, data, train, validation, rate))
        run.figure(
            "the rate finder",
            curves(
                {"smoothed mini-batch loss": (walk.rates, walk.losses)},
                x_label="learning rate",
                y_label="loss",
                log_x=True,
                marks={"last safe rate": walk.safe},
            ),
            "The rate grows with every step; the walk ends when the loss has quadrupled.",
        )
        run.figure(
            "validation",
            curves(
                {"loss on held-out rows": (self.rates, [min(loss, 10.0) for loss in search.losses])},
                x_label="learning rate",
                y_label="cross-entropy",
                log_x=True,
                marks={"chosen": search.best},
            ),
            f"One training of {self.epochs} epochs for each rate, judged on {len(validation)} rows that none saw.",
        )
        run.table(
            "search",
            [
                {"rate": rate, "validation loss": round(loss, 4)}
                for rate, loss in zip(self.rates, search.losses, strict=True)
            ],
        )

        model, optimizer = run.prepare(self.network(data), partial(SGD, lr=search.best))
        per_epoch = data.train.pairs(self.batch, 0, partial=True).epoch
        batches = data.train.pairs(self.batch, self.epochs * per_epoch, partial=True)
        for step, loss in descend(run, model, optimizer, batches):
            run.log(step, loss=loss)
        on_test = evaluate(model, data.test.x, test_labels)
        run.note(
            "what to see",
            f"The finder, in one walk of a hundred steps, allows rates up to {walk.safe:.2g}; validation, at the price "
            f"of {len(self.rates)} trainings, prefers {search.best:g}. Only then is the test set looked at, once: "
            f"{100 * on_test.accuracy:.1f} % right after training on all rows with that rate.",
        )
        return {"best_rate": search.best, "finder_rate": walk.safe, "test_accuracy": on_test.accuracy}

    def network(self, data: Dataset) -> Classifier:
        return dense_classifier(prod(data.shape), len(data.classes), hidden=(self.hidden,))

    def walk(self, data: Dataset, train: Split) -> RateCurve:
        model = self.network(data).to(train.x.device)
        batches = iter(train.pairs(self.batch, 100))
        return find_rate(
            model.parameters(), lambda: model.loss(*next(batches)), lowest=1e-4, highest=100.0, steps=100, smoothing=0.7
        )

    def validation_loss(self, run: Run, data: Dataset, train: Split, validation: Split, rate: float) -> float:
        """Train afresh with one rate, every candidate from the same start and on the same batches."""
        torch.manual_seed(run.seed)
        model = self.network(data).to(run.device)
        optimizer = SGD(model.parameters(), lr=rate)
        per_epoch = train.pairs(self.batch, 0, partial=True).epoch
        for x, y in train.pairs(self.batch, self.epochs * per_epoch, partial=True):
            run.update(optimizer, model.loss(x, y))
        return evaluate(model, validation.x, require_labels(validation.y, len(data.classes))).loss
