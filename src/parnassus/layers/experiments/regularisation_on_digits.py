"""Overfitting reduced by dropout, weight decay, early stopping and more training data (Diehl sec. 1.3)."""

from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import torch
from torch.optim import Adam, AdamW

from parnassus.data import Dataset, Split, open_data
from parnassus.layers import check_labels, dense_classifier, dropout_classifier, evaluate
from parnassus.optim import EarlyStopping
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, at_most, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.3.2", "D1.3.3")
expected = {
    "train_loss": at_most(1e-3, "training loss of the network without regularisation"),
    "test_loss_ratio": at_least(1.05, "ratio of final to minimum test loss without regularisation"),
    "early_stopping_ratio": at_most(
        0.95, "ratio of the test loss with early stopping to the final one without regularisation"
    ),
    "dropout_ratio": at_most(1.0, "ratio of the final test loss with dropout to that without regularisation"),
    "weight_decay_ratio": at_most(
        0.95, "ratio of the final test loss with weight decay to that without regularisation"
    ),
    "more_data_ratio": at_most(0.7, "ratio of the final test loss with more training images to that with fewer"),
    "accuracy": no_band("test accuracy without regularisation"),
    "accuracy_more_data": at_least(0.9, "test accuracy with more training images"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "widths": (4, 16), "width": 32},
    "gpu": {"data": "mnist", "num_examples": 1_000, "steps": 5_000, "width": 1_024},
}

PLAIN = "no regularisation"
LossCurves = dict[str, list[float]]


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    num_examples: Positive[int] = 100  # training images
    train_size_factor: Positive[int] = 5  # ratio of training set sizes, for the network with more data
    num_validation: Positive[int] = 300  # validation images for early stopping
    width: Positive[int] = 256  # units in each of the two hidden layers
    steps: Positive[int] = 800  # gradient steps
    batch_size: Positive[int] = 40  # images per gradient step
    widths: tuple[Positive[int], ...] = (2, 4, 8, 16, 32, 64, 128, 256)  # widths of the networks with one hidden layer

    def __call__(self, run: Run) -> dict[str, float]:
        data = shuffle_training_data(open_data(self.data, size=self.image_size)).to(run.device)
        if self.train_size_factor * self.num_examples + self.num_validation > len(data.train):
            raise ValueError(
                f"train_size_factor × num_examples + num_validation must not exceed {len(data.train)}; got {self}"
            )
        labels = check_labels(data.test.y, len(data.classes))
        small_set = data.train.take(self.num_examples)
        validation = Split(
            data.train.x[-self.num_validation :],
            check_labels(data.train.y, len(data.classes))[-self.num_validation :],
        )
        sets = {
            PLAIN: small_set,
            "dropout": small_set,
            "weight decay": small_set,
            "more data": data.train.take(self.train_size_factor * self.num_examples),
        }
        batches = {name: split.pairs(self.batch_size, 0, partial=True) for name, split in sets.items()}

        inputs, classes, hidden = prod(data.shape), len(data.classes), (self.width, self.width)
        plain = partial(dense_classifier, inputs, classes, hidden=hidden)
        with_dropout = partial(dropout_classifier, inputs, classes, hidden=hidden, rates=(0.5, 0.5))
        nets = {
            PLAIN: run.prepare(plain(), partial(Adam, lr=1e-3)),
            "dropout": run.prepare(with_dropout(), partial(Adam, lr=1e-3)),
            "weight decay": run.prepare(plain(), partial(AdamW, lr=1e-3, weight_decay=1.0)),
            "more data": run.prepare(plain(), partial(Adam, lr=1e-3)),
        }
        stopping = EarlyStopping(patience=10)
        run.keep("stopping", stopping)
        interval = max(1, self.steps // 50)
        for step, _ in run.steps(self.steps):
            for name, (net, optimizer) in nets.items():
                run.update(optimizer, net.loss(*batches[name].at(step, run.seed)))
            if (step + 1) % interval == 0:
                stopping.update(
                    evaluate(nets[PLAIN][0], validation.x, check_labels(validation.y, 2)).loss, nets[PLAIN][0]
                )
                for name, (net, _) in nets.items():
                    train_loss = evaluate(net, sets[name].x, check_labels(sets[name].y, 2)).loss
                    run.record(
                        step, **{f"train/{name}": train_loss, f"test/{name}": evaluate(net, data.test.x, labels).loss}
                    )

        end = evaluate(nets[PLAIN][0], data.test.x, labels)
        with_more_data = evaluate(nets["more data"][0], data.test.x, labels)
        stopping.restore(nets[PLAIN][0])
        stopped = evaluate(nets[PLAIN][0], data.test.x, labels)
        train = {name: run.curve(f"train/{name}")[1] for name in nets}
        test = {name: run.curve(f"test/{name}")[1] for name in nets}
        best_step = (stopping.best_update + 1) * interval
        run.figure(
            "training and test loss",
            plot_losses(train, test, interval, best_step, stopped.loss),
            f"All networks have two layers of {self.width} units and are trained on {self.num_examples} "
            f"images, the last one on {self.train_size_factor} times as many. The dot marks early stopping, selected "
            f"on {self.num_validation} validation images.",
        )
        self.plot_capacity(run, data, small_set)
        tail = max(1, len(test[PLAIN]) // 5)  # mean over the last fifth, as single values fluctuate
        final = {name: sum(line[-tail:]) / tail for name, line in test.items()}
        run.note(
            "results",
            f"Without regularisation the network memorises its {self.num_examples} images, and its test loss ends at "
            f"{final[PLAIN]:.2f} after a minimum of {min(test[PLAIN]):.2f}. Early stopping gives "
            f"{stopped.loss:.2f}, dropout ends at {final['dropout']:.2f}, weight decay at {final['weight decay']:.2f}, "
            f"and {self.train_size_factor} times as many images at {final['more data']:.2f}.",
        )
        return {
            "train_loss": train[PLAIN][-1],
            "test_loss_ratio": final[PLAIN] / min(test[PLAIN]),
            "early_stopping_ratio": stopped.loss / final[PLAIN],
            "dropout_ratio": final["dropout"] / final[PLAIN],
            "weight_decay_ratio": final["weight decay"] / final[PLAIN],
            "more_data_ratio": final["more data"] / final[PLAIN],
            "accuracy": end.accuracy,
            "accuracy_more_data": with_more_data.accuracy,
        }

    def plot_capacity(self, run: Run, data: Dataset, small_set: Split) -> None:
        """Plot training and test loss of networks with one hidden layer against its width."""
        train, test = [], []
        for width in self.widths:
            torch.manual_seed(run.seed)
            net = dense_classifier(prod(data.shape), len(data.classes), hidden=(width,)).to(run.device)
            optimizer = Adam(net.parameters(), lr=3e-3)
            for x, y in small_set.pairs(self.batch_size, self.steps):
                run.update(optimizer, net.loss(x, y))
            train.append(max(evaluate(net, small_set.x, check_labels(small_set.y, 2)).loss, 1e-4))
            test.append(evaluate(net, data.test.x, check_labels(data.test.y, 2)).loss)
        run.figure(
            "capacity",
            curves(
                {"training": (self.widths, train), "test": (self.widths, test)},
                x_label="hidden units",
                y_label="cross-entropy",
                log_x=True,
                log_y=True,
            ),
            f"Networks of one hidden layer after {self.steps} steps on {self.num_examples} images: with more units the "
            "training loss approaches 0, the test loss does not decrease further.",
        )


def shuffle_training_data(data: Dataset) -> Dataset:
    """Return the data with its training examples in random order."""
    rows = torch.randperm(len(data.train))
    y = data.train.y
    return replace(data, train=Split(data.train.x[rows], None if y is None else y[rows]))


def plot_losses(train: LossCurves, test: LossCurves, interval: int, best_step: int, stopped_loss: float) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    left, right = axes[0]
    for name, colour in zip(train, PALETTE, strict=False):
        steps = [interval * (index + 1) for index in range(len(train[name]))]
        left.plot(steps, train[name], color=colour)
        right.plot(steps, test[name], color=colour, label=name)
    right.scatter(best_step, stopped_loss, color=INK, s=36, zorder=4, label="early stopping")
    left.set(title="training loss", xlabel="step", yscale="log")
    right.set(title="test loss", xlabel="step", ylim=(0.0, 2 * max(line[-1] for line in test.values())))
    right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
