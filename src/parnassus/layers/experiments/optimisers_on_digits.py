"""Five optimisers on one classifier, at a common and at a tuned learning rate (book fig. 3.2, ex. 3.5).

The network is trained as printed, with a final ReLU, and without it. The learning rate 10⁻³ of the listings suits the
adaptive methods; the search on a validation set tunes the learning rate of each method.
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
from parnassus.layers import Classifier, check_labels, dense_classifier, evaluate, identity, relu
from parnassus.optim import SGD, AdaGrad, Adam, Momentum, RMSProp, holdout_indices, validation_search
from parnassus.report import PALETTE, curves, subplots
from parnassus.report.plots import moving_average
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, at_most, between, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B3.4-4", "B3.2-7", "B3.3-7")
expected = {
    "loss_of_sgd": between(2.0, 2.31, "final training loss of SGD, without the final ReLU"),
    "loss_of_momentum": between(1.0, 2.25, "final training loss with momentum 0.8, without the final ReLU"),
    "loss_of_adagrad": at_most(0.75, "final training loss of AdaGrad, without the final ReLU"),
    "loss_of_rmsprop": at_most(0.6, "final training loss of RMSProp, without the final ReLU"),
    "loss_of_adam": at_most(0.6, "final training loss of Adam, without the final ReLU"),
    "lead_of_adaptive": at_least(
        0.5, "smallest loss of SGD and momentum minus largest loss of the three adaptive methods"
    ),
    "cost_of_the_last_relu": no_band("increase of Adam's loss caused by the final ReLU"),
    "tuned_spread": at_most(0.3, "range of the validation losses, each at its best learning rate"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"steps": 12, "search_steps": 4, "width": 16, "learning_rates": (0.01,)},
    "gpu": {"data": "fashion_mnist", "width": 512},
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
    data: GreyImageData = "mnist_mini"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    width: Positive[int] = 128  # units in each of the two hidden layers; 512 in the book
    steps: Positive[int] = 600  # gradient steps of each training run
    batch_size: Positive[int] = 64  # images per gradient step
    learning_rate: Positive[float] = 1e-3  # common learning rate of all five optimisers
    learning_rates: tuple[Positive[float], ...] = (1e-3, 1e-2, 1e-1, 1.0)  # candidates of the search
    search_steps: Positive[int] = 300  # gradient steps per candidate

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        labels, test_labels = (check_labels(split.y, len(data.classes)) for split in (data.train, data.test))
        printed, fixed = (self.build_network(data, output) for output in (relu, identity))
        fixed.load_state_dict(printed.state_dict())  # the same initial weights for all
        networks = {"without the final ReLU": fixed, "as printed": printed}
        final_loss: dict[str, dict[str, float]] = {}
        accuracy: dict[str, dict[str, float]] = {}
        for kind, network in networks.items():
            final_loss[kind], accuracy[kind] = {}, {}
            for name, optimiser in OPTIMISERS.items():
                factory = partial(optimiser, lr=self.learning_rate)
                model = self.train(run, f"loss {kind}/{name}", network, factory, data.train)
                losses = run.curve(f"loss {kind}/{name}")[1]
                final_loss[kind][name] = mean(losses[-max(1, len(losses) // 10) :])
                accuracy[kind][name] = evaluate(model, data.test.x, test_labels).accuracy
        run.figure(
            "training loss",
            plot_losses(run, list(networks)),
            f"Same initial weights, hyperparameters of the listings: learning rate {self.learning_rate:g}, momentum "
            "0.8, α = 0.9, β = (0.9, 0.99). The final ReLU preserves the ranking; it raises the losses of the best "
            "methods most (book fig. 3.2).",
        )

        train_rows, val_rows = holdout_indices(len(data.train), 0.2)
        inner = Split(data.train.x[train_rows], labels[train_rows])
        searches = {}
        for name, optimiser in OPTIMISERS.items():

            def validation_loss(rate: float, optimiser: Callable[..., Optimizer] = optimiser) -> float:
                model = self.train_candidate(fixed, partial(optimiser, lr=rate), inner, run.seed)
                return evaluate(model, data.train.x[val_rows], labels[val_rows]).loss

            searches[name] = validation_search(self.learning_rates, validation_loss)
        run.figure(
            "validation loss by learning rate",
            curves(
                {
                    name: (self.learning_rates, [clip_loss(loss) for loss in search.losses])
                    for name, search in searches.items()
                },
                x_label="learning rate",
                y_label="validation loss",
                log_x=True,
            ),
            f"Validation loss after {self.search_steps} steps for each learning rate, clipped at 3; NaN is plotted "
            "as 3.",
        )
        best = {name: min(map(clip_loss, search.losses)) for name, search in searches.items()}
        run.table(
            "optimisers",
            [
                {
                    "optimiser": name,
                    "training loss": round(final_loss["without the final ReLU"][name], 3),
                    "test accuracy (%)": round(100 * accuracy["without the final ReLU"][name], 1),
                    "training loss, as printed": round(final_loss["as printed"][name], 3),
                    "test accuracy (%), as printed": round(100 * accuracy["as printed"][name], 1),
                    "best learning rate": searches[name].best,
                    "validation loss at best learning rate": round(best[name], 3),
                }
                for name in OPTIMISERS
            ],
            "Mean training loss over the last tenth of the steps and test accuracy at the common learning rate; then "
            "the learning rate selected on the validation set.",
        )
        fixed_losses = final_loss["without the final ReLU"]
        adaptive = max(fixed_losses[name] for name in ("AdaGrad", "RMSProp", "Adam"))
        spread = max(best.values()) - min(best.values())
        run.note(
            "results",
            f"At the common learning rate {self.learning_rate:g} the adaptive methods are best, as the size of their "
            "steps is independent of the scale of the gradient; SGD has made little progress "
            f"({fixed_losses['SGD']:.2f} nats, Adam {fixed_losses['Adam']:.2f}). With tuned learning rates the "
            f"validation losses of all five are within {spread:.2f} nats. The final ReLU increases Adam's loss by "
            f"{final_loss['as printed']['Adam'] - fixed_losses['Adam']:.2f} nats.",
        )
        return {
            **{f"loss_of_{name.lower()}": fixed_losses[name] for name in OPTIMISERS},
            "lead_of_adaptive": min(fixed_losses["SGD"], fixed_losses["momentum"]) - adaptive,
            "cost_of_the_last_relu": final_loss["as printed"]["Adam"] - fixed_losses["Adam"],
            "tuned_spread": spread,
        }

    def build_network(self, data: Dataset, output: Callable[[torch.Tensor], torch.Tensor]) -> Classifier:
        return dense_classifier(prod(data.shape), len(data.classes), hidden=(self.width, self.width), output=output)

    def train(
        self, run: Run, name: str, network: Classifier, optimiser: Callable[..., Optimizer], split: Split
    ) -> Classifier:
        """Train a copy of `network` on `split` and log its losses."""
        model, optimizer = run.prepare(deepcopy(network), optimiser)
        for step, loss in descend(run, model, optimizer, split.pairs(self.batch_size, self.steps)):
            run.log(step, **{name: loss})
        return model

    def train_candidate(
        self, network: Classifier, optimiser: Callable[..., Optimizer], split: Split, seed: int
    ) -> Classifier:
        """Train a copy of `network` without logging; it may diverge at this learning rate."""
        model = deepcopy(network).to(split.x.device)
        optimizer, batches = optimiser(model.parameters()), split.pairs(self.batch_size, self.search_steps)
        for step in range(self.search_steps):
            optimizer.zero_grad()
            model.loss(*batches.at(step, seed)).backward()
            optimizer.step()
        return model


def clip_loss(loss: float, maximum: float = 3.0) -> float:
    """Clip a loss to the range of the figure; NaN becomes the maximum."""
    return loss if loss < maximum else maximum


def plot_losses(run: Run, kinds: list[str]) -> "Figure":
    """Plot the logged losses, one panel per network: batch losses (faint) and moving averages."""
    figure, axes = subplots(1, len(kinds), size=(10.0, 4.2))
    for ax, kind in zip(axes[0], kinds, strict=True):
        for name, colour in zip(OPTIMISERS, PALETTE, strict=False):
            steps, losses = run.curve(f"loss {kind}/{name}")
            ax.plot(steps, losses, color=colour, alpha=0.25, linewidth=1)
            ax.plot(steps, moving_average(np.asarray(losses), len(losses) // 40), color=colour, label=name)
        ax.set(title=kind, xlabel="step", ylim=(0, 2.5))
    axes[0, 0].set_ylabel("batch cross-entropy")
    axes[0, -1].legend(loc="lower left")
    return figure
