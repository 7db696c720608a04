"""Five optimisers on one classifier, at the listed rate and each at its best (book fig. 3.2, ex. 3.5).

Both networks are trained: as printed, with a last ReLU, and without it. The rate 10⁻³ of the listings suits the
adaptive methods; a search on held-out rows shows what the others can do at a rate of their own.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import prod
from statistics import mean
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.optim import Optimizer

from parnassus.data import Dataset, Split, open_data
from parnassus.layers import Classifier, dense_classifier, evaluate, identity, relu, require_labels
from parnassus.optim import SGD, AdaGrad, Adam, Momentum, RMSProp, hold_out, validation_search
from parnassus.report import PALETTE, curves, subplots
from parnassus.report.plots import moving_mean
from parnassus.train import Run, at_least, at_most, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B3.4-4", "B3.2-7", "B3.3-7")
expected = {
    "loss_of_sgd": between(2.0, 2.31, "training loss at the end, without the last ReLU"),
    "loss_of_momentum": between(1.0, 2.25, "the same of momentum 0.8"),
    "loss_of_adagrad": at_most(0.75, "the same of AdaGrad"),
    "loss_of_rmsprop": at_most(0.6, "the same of RMSProp"),
    "loss_of_adam": at_most(0.6, "the same of Adam"),
    "lead_of_adaptive": at_least(0.5, "least loss of the others less the largest of the adaptive three"),
    "cost_of_the_last_relu": reported("how much higher Adam's loss is with the last ReLU"),
    "tuned_spread": at_most(0.3, "largest less least validation loss, each at its best rate"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 12, "search_steps": 4, "hidden": 16, "rates": (0.01,)},
    "gpu": {"data": "fashion_mnist", "hidden": 512},
}

OPTIMISERS: dict[str, Callable[..., Optimizer]] = {
    "SGD": SGD,
    "momentum": partial(Momentum, momentum=0.8),
    "AdaGrad": AdaGrad,
    "RMSProp": partial(RMSProp, alpha=0.9),
    "Adam": partial(Adam, betas=(0.9, 0.99)),
}


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # mnist_mini, fashion_mnist, mnist, digits, or a folder or file of your own
    hidden: int = 128  # units in each of the two hidden layers; the book has 512
    steps: int = 600  # gradient steps of each training
    batch: int = 64  # images a step
    rate: float = 1e-3  # learning rate of all five
    rates: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0)  # candidates of the search
    search_steps: int = 300  # gradient steps for each candidate

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        labels, test_labels = (require_labels(split.y, len(data.classes)) for split in (data.train, data.test))
        printed, fixed = (self.network(data, output) for output in (relu, identity))
        fixed.load_state_dict(printed.state_dict())  # one start for all
        networks = {"without the last ReLU": fixed, "as printed": printed}
        last: dict[str, dict[str, float]] = {}
        accuracy: dict[str, dict[str, float]] = {}
        for kind, network in networks.items():
            last[kind], accuracy[kind] = {}, {}
            for name, optimiser in OPTIMISERS.items():
                factory = partial(optimiser, lr=self.rate)
                model = self.train(run, f"loss {kind}/{name}", network, factory, data.train)
                losses = run.curve(f"loss {kind}/{name}")[1]
                last[kind][name] = mean(losses[-max(1, len(losses) // 10) :])
                accuracy[kind][name] = evaluate(model, data.test.x, test_labels).accuracy
        run.figure(
            "training loss",
            side_by_side(run, list(networks)),
            f"From one start with the settings of the listings: rate {self.rate:g}, momentum 0.8, α = 0.9, "
            "β = (0.9, 0.99). The last ReLU keeps the order and costs those most that get furthest (book fig. 3.2).",
        )

        rows, held = hold_out(len(data.train), 0.2)
        inner = Split(data.train.x[rows], labels[rows])
        searches = {}
        for name, optimiser in OPTIMISERS.items():

            def held_loss(rate: float, optimiser: Callable[..., Optimizer] = optimiser) -> float:
                model = self.try_out(fixed, partial(optimiser, lr=rate), inner, run.seed)
                return evaluate(model, data.train.x[held], labels[held]).loss

            searches[name] = validation_search(self.rates, held_loss)
        run.figure(
            "each at its own rate",
            curves(
                {name: (self.rates, [cut(loss) for loss in search.losses]) for name, search in searches.items()},
                x_label="learning rate",
                y_label="loss on held-out rows",
                log_x=True,
            ),
            f"Loss after {self.search_steps} steps on rows that training did not see, for each rate (cut at 3, which "
            "also stands for a loss that is not a number).",
        )
        best = {name: min(map(cut, search.losses)) for name, search in searches.items()}
        run.table(
            "five optimisers",
            [
                {
                    "optimiser": name,
                    "loss": round(last["without the last ReLU"][name], 3),
                    "accuracy %": round(100 * accuracy["without the last ReLU"][name], 1),
                    "loss as printed": round(last["as printed"][name], 3),
                    "accuracy % as printed": round(100 * accuracy["as printed"][name], 1),
                    "best rate": searches[name].best,
                    "validation loss there": round(best[name], 3),
                }
                for name in OPTIMISERS
            ],
            "Training loss over the last tenth of the steps and accuracy on the test images at the listed rate; then "
            "the rate that validation prefers.",
        )
        right = last["without the last ReLU"]
        adaptive = max(right[name] for name in ("AdaGrad", "RMSProp", "Adam"))
        spread = max(best.values()) - min(best.values())
        run.note(
            "what to see",
            f"At one rate for all, {self.rate:g}, the adaptive methods lead, for their steps have that size whatever "
            f"the gradient; SGD has hardly begun ({right['SGD']:.2f} nats against {right['Adam']:.2f} of Adam). Each "
            f"at its own rate, the five end within {spread:.2f} nats on held-out rows. The last ReLU costs Adam "
            f"{last['as printed']['Adam'] - right['Adam']:.2f} nats.",
        )
        return {
            **{f"loss_of_{name.lower()}": right[name] for name in OPTIMISERS},
            "lead_of_adaptive": min(right["SGD"], right["momentum"]) - adaptive,
            "cost_of_the_last_relu": last["as printed"]["Adam"] - right["Adam"],
            "tuned_spread": spread,
        }

    def network(self, data: Dataset, output: Callable[[torch.Tensor], torch.Tensor]) -> Classifier:
        return dense_classifier(prod(data.shape), len(data.classes), hidden=(self.hidden, self.hidden), output=output)

    def train(
        self, run: Run, name: str, network: Classifier, optimiser: Callable[..., Optimizer], rows: Split
    ) -> Classifier:
        """A copy of `network`, trained on `rows` with its losses logged."""
        model, walker = run.prepare(deepcopy(network), optimiser)
        for step, loss in descend(run, model, walker, rows.pairs(self.batch, self.steps)):
            run.log(step, **{name: loss})
        return model

    def try_out(self, network: Classifier, optimiser: Callable[..., Optimizer], rows: Split, seed: int) -> Classifier:
        """The same for a candidate of the search, which may well diverge: nothing of it is kept."""
        model = deepcopy(network).to(rows.x.device)
        walker, batches = optimiser(model.parameters()), rows.pairs(self.batch, self.search_steps)
        for step in range(self.search_steps):
            walker.zero_grad()
            model.loss(*batches.at(step, seed)).backward()
            walker.step()
        return model


def cut(loss: float, most: float = 3.0) -> float:
    """A loss that fits into the figure; NaN is as bad as any."""
    return loss if loss < most else most


def side_by_side(run: Run, kinds: list[str]) -> "Figure":
    """The logged losses, one panel a network: each batch faintly, the moving mean over it."""
    figure, axes = subplots(1, len(kinds), size=(10.0, 4.2))
    for ax, kind in zip(axes[0], kinds, strict=True):
        for name, colour in zip(OPTIMISERS, PALETTE, strict=False):
            steps, losses = run.curve(f"loss {kind}/{name}")
            ax.plot(steps, losses, color=colour, alpha=0.25, linewidth=1)
            ax.plot(steps, moving_mean(np.asarray(losses), len(losses) // 40), color=colour, label=name)
        ax.set(title=kind, xlabel="step", ylim=(0, 2.5))
    axes[0, 0].set_ylabel("cross-entropy of the batch")
    axes[0, -1].legend(loc="lower left")
    return figure
