"""What is said for and against ReLU, each point measured (Diehl sec. 1).

Two of them have experiments of their own: `certainty_far_from_data` and `relu_changes_topology`; `dead_relus` goes on
where this one ends.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam

from parnassus.data import Split, load_digits
from parnassus.data.toy import moons
from parnassus.layers import (
    Activation,
    Classifier,
    betti,
    evaluate,
    layer_outputs,
    mlp,
    relu,
    require_labels,
    sigmoid,
    tanh,
    xavier_normal,
)
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Run, at_least, at_most, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.0.10", "D1.0.4", "Z5.4")
expected = {
    "speed_at_equal_rate": at_least(4.0, "epochs of tanh over epochs of ReLU, raw grey values, rate 0.01"),
    "speed_at_best_rate": reported("the same with the best rate for each"),
    "zeros_at_start": between(0.4, 0.6, "share of ReLU activations that are exactly 0 before training"),
    "zeros_at_end": between(0.4, 0.6, "the same after training"),
    "holes_after_folding": between(0, 0, "holes of a ring after x ↦ |x|"),
    "homogeneity_gap": at_most(1e-4, "largest |f(αx)/(α f(x)) − 1| of a ReLU network without biases"),
    "gradient_when_dead": between(0, 0, "gradient of a layer whose units are all below 0"),
    "exact_hits_of_zero": between(0, 0.001, "share of pre-activations that are exactly 0 in a trained network"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"most_epochs": 1, "steps": 30, "batch": 700}, "gpu": {}}

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
UNITS: dict[str, Activation] = {"ReLU": relu, "tanh": tanh}


@dataclass(frozen=True)
class Experiment:
    most_epochs: int = 20  # epochs after which a network counts as not there yet
    error: float = 0.05  # training error that is asked for
    batch: int = 64  # images a step
    grey: float = 100.0  # factor between scaled and raw grey values
    steps: int = 600  # steps of the classifiers of moons whose zeros are counted

    def __call__(self, run: Run) -> dict[str, float]:
        return {
            **self.training_speed(run),
            **self.true_zeros(run),
            **folding(run),
            **homogeneity(run),
            **death(run),
        }

    def training_speed(self, run: Run) -> dict[str, float]:
        """Epochs to a training error, by rate, on scaled and on raw grey values."""
        digits = load_digits().train
        labels = require_labels(digits.y, 10)
        centred = digits.x.flatten(1) - digits.x.flatten(1).mean(0)
        epochs: dict[str, list[float]] = {}
        for scale, about in ((1.0, "scaled"), (self.grey, "raw")):
            for name, sigma in UNITS.items():
                split = Split(scale * centred, labels)
                epochs[f"{name}, {about}"] = [self.epochs_needed(split, sigma, rate, run.seed) for rate in RATES]
        run.figure(
            "training speed",
            draw_speed(epochs, self.most_epochs),
            f"Epochs until {100 * self.error:.0f} % training error on digits, 64-64-64-10, plain SGD. On raw "
            "grey values tanh saturates and at the same small rate needs several times the epochs; but there ReLU has "
            "to have a small rate, and with the best rate for each the two tie. On scaled ones tanh is no slower.",
        )
        at = RATES.index(0.01)
        best = {name: min(needed) for name, needed in epochs.items()}
        return {
            "speed_at_equal_rate": epochs["tanh, raw"][at] / epochs["ReLU, raw"][at],
            "speed_at_best_rate": best["tanh, raw"] / best["ReLU, raw"],
        }

    def epochs_needed(self, split: Split, sigma: Activation, rate: float, seed: int) -> float:
        torch.manual_seed(seed)  # both kinds of unit begin with the same weights
        model = Classifier(mlp((64, 64, 64, 10), activation=sigma, initialise=xavier_normal()))
        optimizer = SGD(model.parameters(), lr=rate)
        batches = split.pairs(self.batch, 0, partial=True)
        for epoch in range(self.most_epochs):
            for step in range(batches.epoch):
                optimizer.zero_grad()
                model.loss(*batches.at(epoch * batches.epoch + step, seed)).backward()
                optimizer.step()
            if evaluate(model, split.x, require_labels(split.y, 10)).accuracy >= 1 - self.error:
                return epoch + 1.0
        return self.most_epochs + 1.0

    def true_zeros(self, run: Run) -> dict[str, float]:
        """The share of hidden activations that are exactly 0, while a classifier of moons is trained."""
        data, hits = moons(400, noise=0.15, seed=run.seed), 0.0
        units = {**UNITS, "sigmoid": sigmoid}
        for name, sigma in units.items():
            network = mlp((2, 32, 32, 2), activation=sigma)
            model, optimizer = run.prepare(Classifier(network), partial(Adam, lr=0.01))
            for step, _ in descend(run, model, optimizer, data.to(run.device).pairs(100, self.steps)):
                if step % max(1, self.steps // 60) == 0 or step + 1 == self.steps:
                    hidden = torch.cat(layer_outputs(network, data.x.to(run.device))[:-1], 1)
                    run.record(step, **{f"zeros/{name}": (hidden == 0).double().mean()})
            if name == "ReLU":
                values = data.x.to(run.device) @ network.get_parameter("0.weight") + network.get_parameter("0.bias")
                hits = float((values == 0).double().mean())
        lines = {name: run.curve(f"zeros/{name}") for name in units}
        run.figure(
            "true zeros",
            curves(lines, x_label="step", y_label="share of exact zeros"),
            "Hidden activations that are exactly 0 on the data: about half of them with ReLU, none with the others.",
        )
        relu_line = lines["ReLU"][1]
        return {"zeros_at_start": relu_line[0], "zeros_at_end": relu_line[-1], "exact_hits_of_zero": hits}


def draw_speed(epochs: dict[str, list[float]], most: int) -> "Figure":
    figure, axes = subplots(1, 2, size=(9.6, 3.7))
    for ax, about in zip(axes[0], ("scaled", "raw"), strict=True):
        for name in UNITS:
            ax.plot(RATES, epochs[f"{name}, {about}"], "o-", markersize=4, label=name)
        ax.axhline(most + 1, color=FAINT, linestyle=":", linewidth=1)
        ax.annotate(f"not within {most}", (RATES[0], most + 1), xytext=(0, 3), textcoords="offset points", fontsize=8)
        ax.set(xscale="log", ylim=(0, 1.15 * (most + 1)), xlabel="learning rate", title=f"{about} grey values")
    axes[0, 0].set_ylabel("epochs needed")
    axes[0, 0].legend(loc="lower left")
    return figure


def folding(run: Run) -> dict[str, float]:
    """A ring before and after x ↦ |x| = ReLU(x) + ReLU(−x), in both coordinates."""
    angle = torch.linspace(0, 2 * torch.pi, 81)[:-1]
    ring = torch.stack([angle.cos(), angle.sin()], 1)
    folded = relu(ring) + relu(-ring)
    before, after = betti(ring, 0.3), betti(folded, 0.3)
    figure, axes = subplots(1, 2, size=(7.6, 3.8))
    quarter = (angle / (torch.pi / 2)).long()
    for ax, points, shape in zip(axes[0], (ring, folded), (before, after), strict=True):
        for number, size in enumerate((150, 95, 50, 16)):
            chosen = points[quarter == number]
            ax.scatter(chosen[:, 0], chosen[:, 1], s=size, color=PALETTE[number], linewidths=0)
        ax.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal", title=f"pieces {shape.pieces}, holes {shape.holes}")
    run.figure(
        "folding",
        figure,
        "A ring, and the same after four ReLU units: x ↦ ReLU(x) + ReLU(−x) = |x| in both coordinates folds it twice "
        "on itself: the four quarters, one colour each, come to lie on one another, and the hole is gone. A continuous "
        "map with a continuous inverse, as a layer of tanh units with a square invertible weight is, cannot do this.",
    )
    return {"holes_after_folding": float(after.holes)}


@torch.no_grad()
def homogeneity(run: Run) -> dict[str, float]:
    """Along a ray, f(αx) / (α f(x)): 1 for ReLU without biases."""
    alpha = torch.logspace(-1, 1, 41)
    x, lines, gap = torch.tensor([0.8, -0.6]), {}, 0.0
    for name, sigma, initialise in (
        ("ReLU, no biases", relu, xavier_normal()),
        ("ReLU with biases", relu, with_bias),
        ("tanh, no biases", tanh, xavier_normal()),
    ):
        torch.manual_seed(run.seed)
        network = mlp((2, 16, 16, 1), activation=sigma, initialise=initialise)
        ratio = network(alpha[:, None] * x)[:, 0] / (alpha * network(x))
        lines[name] = (alpha, ratio)
        if name == "ReLU, no biases":
            gap = float((ratio - 1).abs().max())
    run.figure(
        "homogeneity",
        curves(lines, x_label="α", y_label="f(αx) / (α f(x))", log_x=True),
        "ReLU(αx) = α ReLU(x) for α > 0 passes on to a whole network without biases: twice the input, twice the "
        "output. Biases break it near the origin; a bounded unit breaks it far out.",
    )
    return {"homogeneity_gap": gap}


def with_bias(weight: Tensor, bias: Tensor) -> None:
    xavier_normal()(weight, bias)
    nn.init.normal_(bias, std=0.1)


def death(run: Run) -> dict[str, float]:
    """The gradient of a hidden layer as its bias goes down, and slopes on both sides of 0."""
    biases, norms = torch.linspace(0, -8, 33), {}
    for name, sigma in UNITS.items():
        torch.manual_seed(run.seed)
        network, x = mlp((5, 64, 1), activation=sigma, initialise=xavier_normal()), torch.randn(500, 5)
        y = x.sum(1, keepdim=True).sin()
        sizes = []
        for bias in biases:
            nn.init.constant_(network.get_parameter("0.bias"), float(bias))
            loss = (network(x) - y).square().mean()
            (slope,) = torch.autograd.grad(loss, network.get_parameter("0.weight"))
            sizes.append(float(slope.norm()))
        norms[name] = sizes
    figure, axes = subplots(1, 2, size=(9.6, 3.6))
    for name, sizes in norms.items():
        axes[0, 0].plot(biases, np.maximum(sizes, 1e-9), label=name)
    axes[0, 0].set(xlabel="bias of all hidden units", ylabel="size of the gradient", yscale="log")
    axes[0, 0].annotate("exactly 0", (-7.9, 1.3e-9))
    axes[0, 0].legend()
    h = torch.logspace(-6, 0, 25, dtype=torch.float64)
    for (name, sigma), colour in zip(UNITS.items(), PALETTE, strict=False):
        for side, style in ((1, "-"), (-1, "--")):
            slope = sigma(side * h) / (side * h)
            axes[0, 1].plot(h, slope, style, color=colour, label=f"{name} from the {'right' if side > 0 else 'left'}")
    axes[0, 1].set(xlabel="distance from 0, h", ylabel="slope of the secant", xscale="log")
    axes[0, 1].legend(fontsize=8)
    run.figure(
        "death and the kink",
        figure,
        "Left: once all units are below 0 on all data, a ReLU layer has gradient exactly 0 and cannot come back; with "
        "tanh it is small but there. Right: slopes of secants at 0. ReLU has 0 from the left and 1 from the right, "
        "however near; no pre-activation of a trained network falls on the kink itself.",
    )
    return {"gradient_when_dead": norms["ReLU"][-1]}
