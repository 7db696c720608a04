"""ReLU: training speed, sparsity, folding, homogeneity and dead units (Diehl sec. 1).

See also `relu_confidence_far_from_data`, `betti_numbers_by_layer` and `dead_relus`.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam

from parnassus.data import Split, load_digits
from parnassus.data.built_in.toy import moons
from parnassus.layers import (
    Activation,
    Classifier,
    betti_numbers,
    check_labels,
    evaluate,
    layer_outputs,
    mlp,
    relu,
    sigmoid,
    tanh,
    xavier_normal,
)
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.train import Positive, Run, UnitInterval, at_least, at_most, between, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.0.10", "D1.0.4", "Z5.4")
expected = {
    "epoch_ratio_equal_rate": at_least(
        4.0, "ratio of epochs to the target error, tanh to ReLU, raw grey values, learning rate 0.01"
    ),
    "epoch_ratio_best_rate": no_band("ratio of epochs to the target error, tanh to ReLU, best learning rate of each"),
    "zero_fraction_initial": between(0.4, 0.6, "fraction of ReLU activations equal to 0 before training"),
    "zero_fraction_final": between(0.4, 0.6, "fraction of ReLU activations equal to 0 after training"),
    "holes_after_folding": between(0, 0, "number of holes of a circle after x ↦ |x|"),
    "homogeneity_error": at_most(1e-4, "maximum of |f(αx)/(α f(x)) − 1| of a ReLU network without biases"),
    "dead_layer_gradient_norm": between(0, 0, "gradient norm of a layer with negative pre-activations only"),
    "zero_preactivation_fraction": between(0, 0.001, "fraction of pre-activations equal to 0 in a trained network"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"max_epochs": 1, "steps": 30, "batch_size": 700}, "gpu": {}}

LEARNING_RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
ACTIVATIONS: dict[str, Activation] = {"ReLU": relu, "tanh": tanh}


@dataclass(frozen=True)
class Experiment:
    max_epochs: Positive[int] = 20  # maximum number of epochs
    target_error: UnitInterval = 0.05  # training error to reach
    batch_size: Positive[int] = 64  # images per gradient step
    input_scale: Positive[float] = 100.0  # ratio of raw to scaled grey values
    steps: Positive[int] = 600  # gradient steps of the classifiers on two moons

    def __call__(self, run: Run) -> dict[str, float]:
        return {
            **self.measure_training_speed(run),
            **self.measure_sparsity(run),
            **measure_folding(run),
            **measure_homogeneity(run),
            **measure_dead_units(run),
        }

    def measure_training_speed(self, run: Run) -> dict[str, float]:
        """Epochs to the target error by learning rate, on scaled and on raw grey values."""
        digits = load_digits().train
        labels = check_labels(digits.y, 10)
        centred = digits.x.flatten(1) - digits.x.flatten(1).mean(0)
        epochs: dict[str, list[float]] = {}
        for scale, kind in ((1.0, "scaled"), (self.input_scale, "raw")):
            for name, sigma in ACTIVATIONS.items():
                split = Split(scale * centred, labels)
                epochs[f"{name}, {kind}"] = [
                    self.epochs_needed(split, sigma, rate, run.seed) for rate in LEARNING_RATES
                ]
        run.figure(
            "training speed",
            plot_training_speed(epochs, self.max_epochs),
            f"Epochs until {100 * self.target_error:.0f} % training error on digits, 64-64-64-10, plain SGD. On raw "
            "grey values tanh saturates and needs several times the epochs at the same small learning rate, which ReLU "
            "requires there; with the best learning rate of each, the two are equally fast. On scaled grey values tanh "
            "is not slower than ReLU.",
        )
        index = LEARNING_RATES.index(0.01)
        best = {name: min(needed) for name, needed in epochs.items()}
        return {
            "epoch_ratio_equal_rate": epochs["tanh, raw"][index] / epochs["ReLU, raw"][index],
            "epoch_ratio_best_rate": best["tanh, raw"] / best["ReLU, raw"],
        }

    def epochs_needed(self, split: Split, sigma: Activation, rate: float, seed: int) -> float:
        torch.manual_seed(seed)  # the same initial weights for both activations
        model = Classifier(mlp((64, 64, 64, 10), activation=sigma, initialise=xavier_normal()))
        optimizer = SGD(model.parameters(), lr=rate)
        batches = split.pairs(self.batch_size, 0, partial=True)
        for epoch in range(self.max_epochs):
            for step in range(batches.steps_per_epoch):
                optimizer.zero_grad()
                model.loss(*batches.at(epoch * batches.steps_per_epoch + step, seed)).backward()
                optimizer.step()
            if evaluate(model, split.x, check_labels(split.y, 10)).accuracy >= 1 - self.target_error:
                return epoch + 1.0
        return self.max_epochs + 1.0

    def measure_sparsity(self, run: Run) -> dict[str, float]:
        """Fraction of hidden activations equal to 0 while a classifier is trained on two moons."""
        data, zero_fraction = moons(400, noise=0.15, seed=run.seed), 0.0
        activations = {**ACTIVATIONS, "sigmoid": sigmoid}
        for name, sigma in activations.items():
            network = mlp((2, 32, 32, 2), activation=sigma)
            model, optimizer = run.prepare(Classifier(network), partial(Adam, lr=0.01))
            for step, _ in descend(run, model, optimizer, data.to(run.device).pairs(100, self.steps)):
                if step % max(1, self.steps // 60) == 0 or step + 1 == self.steps:
                    hidden = torch.cat(layer_outputs(network, data.x.to(run.device))[:-1], 1)
                    run.record(step, **{f"zeros/{name}": (hidden == 0).double().mean()})
            if name == "ReLU":
                values = data.x.to(run.device) @ network.get_parameter("0.weight") + network.get_parameter("0.bias")
                zero_fraction = float((values == 0).double().mean())
        lines = {name: run.curve(f"zeros/{name}") for name in activations}
        run.figure(
            "activation sparsity",
            curves(lines, x_label="step", y_label="fraction of zero activations"),
            "Fraction of hidden activations equal to 0: about one half with ReLU, none with the others.",
        )
        relu_line = lines["ReLU"][1]
        return {
            "zero_fraction_initial": relu_line[0],
            "zero_fraction_final": relu_line[-1],
            "zero_preactivation_fraction": zero_fraction,
        }


def plot_training_speed(epochs: dict[str, list[float]], max_epochs: int) -> "Figure":
    figure, axes = subplots(1, 2, size=(9.6, 3.7))
    for ax, kind in zip(axes[0], ("scaled", "raw"), strict=True):
        for name in ACTIVATIONS:
            ax.plot(LEARNING_RATES, epochs[f"{name}, {kind}"], "o-", markersize=4, label=name)
        ax.axhline(max_epochs + 1, color=FAINT, linestyle=":", linewidth=1)
        ax.annotate(
            f"not within {max_epochs}",
            (LEARNING_RATES[0], max_epochs + 1),
            xytext=(0, 3),
            textcoords="offset points",
            fontsize=8,
        )
        ax.set(xscale="log", ylim=(0, 1.15 * (max_epochs + 1)), xlabel="learning rate", title=f"{kind} grey values")
    axes[0, 0].set_ylabel("epochs to target error")
    axes[0, 0].legend(loc="lower left")
    return figure


def measure_folding(run: Run) -> dict[str, float]:
    """Betti numbers of a circle before and after x ↦ |x| = ReLU(x) + ReLU(−x), in both coordinates."""
    angle = torch.linspace(0, 2 * torch.pi, 81)[:-1]
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    folded = relu(circle) + relu(-circle)
    before, after = betti_numbers(circle, 0.3), betti_numbers(folded, 0.3)
    figure, axes = subplots(1, 2, size=(7.6, 3.8))
    quarter = (angle / (torch.pi / 2)).long()
    for ax, points, shape in zip(axes[0], (circle, folded), (before, after), strict=True):
        for index, size in enumerate((150, 95, 50, 16)):
            subset = points[quarter == index]
            ax.scatter(subset[:, 0], subset[:, 1], s=size, color=PALETTE[index], linewidths=0)
        ax.set(
            xlim=(-1.2, 1.2),
            ylim=(-1.2, 1.2),
            aspect="equal",
            title=f"components {shape.components}, holes {shape.holes}",
        )
    run.figure(
        "folding",
        figure,
        "A circle and its image under four ReLU units: x ↦ ReLU(x) + ReLU(−x) = |x| in both coordinates folds it "
        "twice, so that the four quarters, one colour each, coincide and the hole disappears. A homeomorphism, for "
        "example a layer of tanh units with a square invertible weight, cannot do this.",
    )
    return {"holes_after_folding": float(after.holes)}


@torch.no_grad()
def measure_homogeneity(run: Run) -> dict[str, float]:
    """f(αx) / (α f(x)) along a ray, which is 1 for ReLU without biases."""
    alpha = torch.logspace(-1, 1, 41)
    x, lines, gap = torch.tensor([0.8, -0.6]), {}, 0.0
    for name, sigma, initialise in (
        ("ReLU, no biases", relu, xavier_normal()),
        ("ReLU with biases", relu, init_normal_biases),
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
        "ReLU(αx) = α ReLU(x) for α > 0, and a network of ReLU layers without biases is homogeneous as well. Biases "
        "violate this near the origin, a bounded activation far from it.",
    )
    return {"homogeneity_error": gap}


def init_normal_biases(weight: Tensor, bias: Tensor) -> None:
    xavier_normal()(weight, bias)
    nn.init.normal_(bias, std=0.1)


def measure_dead_units(run: Run) -> dict[str, float]:
    """Gradient norm of a hidden layer by bias, and one-sided difference quotients at 0."""
    biases, norms = torch.linspace(0, -8, 33), {}
    for name, sigma in ACTIVATIONS.items():
        torch.manual_seed(run.seed)
        network, x = mlp((5, 64, 1), activation=sigma, initialise=xavier_normal()), torch.randn(500, 5)
        y = x.sum(1, keepdim=True).sin()
        gradient_norms = []
        for bias in biases:
            nn.init.constant_(network.get_parameter("0.bias"), float(bias))
            loss = (network(x) - y).square().mean()
            (gradient,) = torch.autograd.grad(loss, network.get_parameter("0.weight"))
            gradient_norms.append(float(gradient.norm()))
        norms[name] = gradient_norms
    figure, axes = subplots(1, 2, size=(9.6, 3.6))
    for name, gradient_norms in norms.items():
        axes[0, 0].plot(biases, np.maximum(gradient_norms, 1e-9), label=name)
    axes[0, 0].set(xlabel="bias of all hidden units", ylabel="gradient norm", yscale="log")
    axes[0, 0].annotate("exactly 0", (-7.9, 1.3e-9))
    axes[0, 0].legend()
    h = torch.logspace(-6, 0, 25, dtype=torch.float64)
    for (name, sigma), colour in zip(ACTIVATIONS.items(), PALETTE, strict=False):
        for side, style in ((1, "-"), (-1, "--")):
            quotient = sigma(side * h) / (side * h)
            axes[0, 1].plot(
                h, quotient, style, color=colour, label=f"{name} from the {'right' if side > 0 else 'left'}"
            )
    axes[0, 1].set(xlabel="distance from 0, h", ylabel="difference quotient", xscale="log")
    axes[0, 1].legend(fontsize=8)
    run.figure(
        "dead units and derivative at 0",
        figure,
        "Left: if all pre-activations are negative on all data, the gradient of a ReLU layer is exactly 0 and the "
        "units cannot recover; with tanh it is small but not 0. Right: one-sided difference quotients at 0. ReLU "
        "has 0 from the left and 1 from the right; no pre-activation of a trained network is exactly 0.",
    )
    return {"dead_layer_gradient_norm": norms["ReLU"][-1]}
