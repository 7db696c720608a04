"""Overfitting on purpose, and its cures: dropout, decay, stopping early, more data (Diehl sec. 1.3)."""

from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import torch
from torch.optim import Adam, AdamW

from parnassus.data import Dataset, Split, open_data
from parnassus.layers import dense_classifier, dropout_classifier, evaluate, require_labels
from parnassus.optim import EarlyStopping
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.train import Run, at_least, at_most, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.3.2", "D1.3.3")
expected = {
    "train_loss": at_most(1e-3, "cross-entropy, on its few images, of the network without a cure"),
    "test_rise": at_least(1.05, "its test loss at the end over its least"),
    "stopped": at_most(0.95, "test loss of the weights that early stopping keeps, over that at the end"),
    "dropout": at_most(1.0, "test loss with dropout at the end, over that without a cure"),
    "decay": at_most(0.95, "test loss with weight decay at the end, over that without a cure"),
    "more_data": at_most(0.7, "test loss with more images at the end, over that without a cure"),
    "accuracy": reported("share of test images right without a cure"),
    "accuracy_more_data": at_least(0.9, "share of test images right with more images"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 20, "widths": (4, 16), "hidden": 32},
    "gpu": {"data": "mnist", "images": 1_000, "steps": 5_000, "hidden": 1_024},
}

PLAIN = "no cure"
Lines = dict[str, list[float]]


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # digits, mnist_mini, mnist, fashion_mnist, or a folder or file of your own
    images: int = 100  # training images, of which there are too few
    more: int = 5  # times as many for the cure by data
    held: int = 300  # images by which early stopping decides
    hidden: int = 256  # units in each of two hidden layers
    steps: int = 800  # gradient steps
    batch: int = 40  # images a step
    widths: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 128, 256)  # of one hidden layer, to see capacity grow

    def __call__(self, run: Run) -> dict[str, float]:
        data = shuffled(open_data(self.data)).to(run.device)
        if self.more * self.images + self.held > len(data.train):
            raise ValueError(f"more × images + held must not exceed {len(data.train)}; got {self}")
        labels = require_labels(data.test.y, len(data.classes))
        few = data.train.take(self.images)
        held = Split(data.train.x[-self.held :], require_labels(data.train.y, len(data.classes))[-self.held :])
        sets = {PLAIN: few, "dropout": few, "weight decay": few, "more data": data.train.take(self.more * self.images)}
        batches = {name: split.pairs(self.batch, 0, partial=True) for name, split in sets.items()}

        inputs, classes, hidden = prod(data.shape), len(data.classes), (self.hidden, self.hidden)
        plain = partial(dense_classifier, inputs, classes, hidden=hidden)
        thinned = partial(dropout_classifier, inputs, classes, hidden=hidden, rates=(0.5, 0.5))
        nets = {
            PLAIN: run.prepare(plain(), partial(Adam, lr=1e-3)),
            "dropout": run.prepare(thinned(), partial(Adam, lr=1e-3)),
            "weight decay": run.prepare(plain(), partial(AdamW, lr=1e-3, weight_decay=1.0)),
            "more data": run.prepare(plain(), partial(Adam, lr=1e-3)),
        }
        stopping = EarlyStopping(patience=10)
        run.keep("stopping", stopping)
        every = max(1, self.steps // 50)
        for step, _ in run.steps(self.steps):
            for name, (net, optimizer) in nets.items():
                run.update(optimizer, net.loss(*batches[name].at(step, run.seed)))
            if (step + 1) % every == 0:
                stopping.update(evaluate(nets[PLAIN][0], held.x, require_labels(held.y, 2)).loss, nets[PLAIN][0])
                for name, (net, _) in nets.items():
                    seen = evaluate(net, sets[name].x, require_labels(sets[name].y, 2)).loss
                    run.record(step, **{f"train/{name}": seen, f"test/{name}": evaluate(net, data.test.x, labels).loss})

        end = evaluate(nets[PLAIN][0], data.test.x, labels)
        with_more = evaluate(nets["more data"][0], data.test.x, labels)
        stopping.restore(nets[PLAIN][0])
        stopped = evaluate(nets[PLAIN][0], data.test.x, labels)
        train = {name: run.curve(f"train/{name}")[1] for name in nets}
        test = {name: run.curve(f"test/{name}")[1] for name in nets}
        place = (stopping.best_update + 1) * every
        run.figure(
            "the cures",
            both_losses(train, test, every, place, stopped.loss),
            f"All networks have two layers of {self.hidden} units and see {self.images} images, the last one "
            f"{self.more} times as many. The dot is what early stopping keeps, chosen on {self.held} other images.",
        )
        self.show_capacity(run, data, few)
        late = max(1, len(test[PLAIN]) // 5)  # means over the last fifth, as single values jump about
        last = {name: sum(line[-late:]) / late for name, line in test.items()}
        run.note(
            "what to see",
            f"Without a cure the network knows its {self.images} images by heart, and its test loss ends at "
            f"{last[PLAIN]:.2f} after a least value of {min(test[PLAIN]):.2f}. Stopping early gives "
            f"{stopped.loss:.2f}, dropout ends at {last['dropout']:.2f}, weight decay at {last['weight decay']:.2f}, "
            f"and {self.more} times as many images at {last['more data']:.2f}: no trick replaces data.",
        )
        return {
            "train_loss": train[PLAIN][-1],
            "test_rise": last[PLAIN] / min(test[PLAIN]),
            "stopped": stopped.loss / last[PLAIN],
            "dropout": last["dropout"] / last[PLAIN],
            "decay": last["weight decay"] / last[PLAIN],
            "more_data": last["more data"] / last[PLAIN],
            "accuracy": end.accuracy,
            "accuracy_more_data": with_more.accuracy,
        }

    def show_capacity(self, run: Run, data: Dataset, few: Split) -> None:
        """Both losses of networks of one hidden layer, over its width."""
        train, test = [], []
        for width in self.widths:
            torch.manual_seed(run.seed)
            net = dense_classifier(prod(data.shape), len(data.classes), hidden=(width,)).to(run.device)
            optimizer = Adam(net.parameters(), lr=3e-3)
            for x, y in few.pairs(self.batch, self.steps):
                run.update(optimizer, net.loss(x, y))
            train.append(max(evaluate(net, few.x, require_labels(few.y, 2)).loss, 1e-4))
            test.append(evaluate(net, data.test.x, require_labels(data.test.y, 2)).loss)
        run.figure(
            "capacity",
            curves(
                {"training": (self.widths, train), "test": (self.widths, test)},
                x_label="hidden units",
                y_label="cross-entropy",
                log_x=True,
                log_y=True,
            ),
            f"Networks of one hidden layer after {self.steps} steps on {self.images} images: with more units the "
            "training loss sinks out of sight, the test loss stays.",
        )


def shuffled(data: Dataset) -> Dataset:
    """The same data with its training rows in an order of this run."""
    rows = torch.randperm(len(data.train))
    y = data.train.y
    return replace(data, train=Split(data.train.x[rows], None if y is None else y[rows]))


def both_losses(train: Lines, test: Lines, every: int, place: int, stopped: float) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    left, right = axes[0]
    for name, colour in zip(train, PALETTE, strict=False):
        steps = [every * (index + 1) for index in range(len(train[name]))]
        left.plot(steps, train[name], color=colour)
        right.plot(steps, test[name], color=colour, label=name)
    right.scatter(place, stopped, color=INK, s=36, zorder=4, label="stopped early")
    left.set(title="training loss", xlabel="step", yscale="log")
    right.set(title="test loss", xlabel="step", ylim=(0.0, 2 * max(line[-1] for line in test.values())))
    right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
