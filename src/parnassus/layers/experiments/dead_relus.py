"""Dead ReLUs: dependence on learning rate and bias; recovery with leaky ReLU and ELU (Diehl sec. 1)."""

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import SGD

from parnassus.data import Dataset, load_digits
from parnassus.layers import (
    Activation,
    Classifier,
    check_labels,
    dead_units,
    elu,
    evaluate,
    he_normal,
    leaky_relu,
    mlp,
    relu,
    tanh,
)
from parnassus.report import curves, heatmap
from parnassus.train import Positive, Run, at_least, at_most, descend

covers = ("D1.0.10", "B1.2-12")
expected = {
    "dead_fraction_small_rate": at_most(0.05, "fraction of dead units after training at learning rate 0.03, bias 0"),
    "dead_fraction_large_rate": at_least(0.75, "fraction of dead units after training at learning rate 3, bias 0"),
    "dead_fraction_low_bias": at_least(
        0.4, "fraction of dead units after training at learning rate 0.03, lowest initial bias"
    ),
    "dead_fraction_after_recovery": at_least(
        1.0, "fraction of units of an initially dead ReLU layer that are dead after training"
    ),
    "relu_accuracy": at_most(0.15, "test accuracy of a network with an initially dead ReLU layer"),
    "leaky_accuracy": at_least(0.85, "test accuracy with leaky ReLU from the same initialisation"),
    "elu_accuracy": at_least(0.9, "test accuracy with ELU from the same initialisation"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 2, "recovery_steps": 6}, "gpu": {}}

RATES = (0.03, 0.1, 0.3, 1.0, 3.0)
BIASES = (0.0, -0.5, -1.0, -1.5, -2.0)
ACTIVATIONS: dict[str, Activation] = {"ReLU": relu, "leaky ReLU": leaky_relu, "ELU": elu, "tanh": tanh}


@dataclass(frozen=True)
class Experiment:
    width: Positive[int] = 100  # units of each of the two hidden layers
    steps: Positive[int] = 200  # gradient steps of each network of the heatmap
    recovery_steps: Positive[int] = 1_200  # gradient steps from an initially dead layer
    batch_size: Positive[int] = 64  # images per gradient step
    recovery_learning_rate: Positive[float] = 0.1  # learning rate for these steps

    def __call__(self, run: Run) -> dict[str, float]:
        digits = standardised_digits().to(run.device)
        dead = torch.tensor([[self.dead_fraction(digits, rate, bias, run) for rate in RATES] for bias in BIASES])
        run.figure(
            "dead units",
            heatmap(
                dead,
                row_labels=[f"{bias:g}" for bias in BIASES],
                column_labels=[f"{rate:g}" for rate in RATES],
                x_label="learning rate",
                y_label="initial bias",
                annotate=True,
            ),
            f"Fraction of the {2 * self.width} hidden units that are 0 on every training image after {self.steps} "
            "steps of SGD. Units die in large steps; with a low initial bias they are dead or nearly dead from the "
            "start.",
        )
        for name, sigma in ACTIVATIONS.items():
            self.train_dead_layer(run, digits, name, sigma)
        lines = {name: run.curve(f"accuracy/{name}") for name in ACTIVATIONS}
        run.figure(
            "recovery",
            curves(lines, x_label="step", y_label="test accuracy"),
            "Four activations, trained from initial biases with which all pre-activations of the first layer are "
            "negative on all images. The dead ReLU layer outputs 0 and receives no gradient: the network can only "
            "learn the class frequencies. A slope of 0.01 is enough for recovery.",
        )
        still = {name: run.curve(f"still_dead/{name}") for name in ACTIVATIONS}
        run.figure(
            "dead units during recovery",
            curves(still, x_label="step", y_label="fraction of the first layer"),
            "Fraction of first-layer units with negative pre-activations on every training image.",
        )
        run.note(
            "results",
            f"{100 * float(dead[0, 0]):.0f} % of the units die with learning rate {RATES[0]} and "
            f"{100 * float(dead[0, -1]):.0f} % with {RATES[-1]:g}. They do not recover: the gradient of a dead unit is "
            "exactly 0. Leaky ReLU and ELU have no such state; a smaller learning rate and non-negative initial biases "
            "also prevent it.",
        )
        return {
            "dead_fraction_small_rate": float(dead[0, 0]),
            "dead_fraction_large_rate": float(dead[0, -1]),
            "dead_fraction_low_bias": float(dead[-1, 0]),
            "dead_fraction_after_recovery": still["ReLU"][1][-1],
            "relu_accuracy": lines["ReLU"][1][-1],
            "leaky_accuracy": lines["leaky ReLU"][1][-1],
            "elu_accuracy": lines["ELU"][1][-1],
        }

    def dead_fraction(self, digits: Dataset, rate: float, bias: float, run: Run) -> float:
        """Train a ReLU classifier; the fraction of hidden units that are 0 on every training image."""
        torch.manual_seed(run.seed)
        network = self.network(relu, bias).to(run.device)
        model, optimizer = Classifier(network), SGD(network.parameters(), lr=rate)
        batches = digits.train.pairs(self.batch_size, self.steps)
        for step in range(self.steps):
            optimizer.zero_grad()
            model.loss(*batches.at(step, run.seed)).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 10.0)  # too large a rate should kill units, not overflow
            optimizer.step()
        return float(torch.cat(dead_units(network, digits.train.x)).double().mean())

    def train_dead_layer(self, run: Run, digits: Dataset, name: str, sigma: Activation) -> None:
        """Train from biases with which the first layer's pre-activations are negative on all images."""
        torch.manual_seed(run.seed)
        network = self.network(sigma, 0.0)
        with torch.no_grad():
            values = digits.train.x.cpu() @ network.get_parameter("0.weight")
            network.get_parameter("0.bias").copy_(-values.amax(0) - 0.1)  # negative on every image
        model, optimizer = run.prepare(Classifier(network), partial(SGD, lr=self.recovery_learning_rate))
        for step, loss in descend(run, model, optimizer, digits.train.pairs(self.batch_size, self.recovery_steps)):
            run.log(step, **{f"loss/{name}": loss})
            if (step + 1) % max(1, self.recovery_steps // 50) == 0 or step == 0:
                accuracy = evaluate(model, digits.test.x, check_labels(digits.test.y, 10)).accuracy
                dead = float(negative_fraction(network, digits.train.x))
                run.record(step + 1, **{f"accuracy/{name}": accuracy, f"still_dead/{name}": dead})

    def network(self, sigma: Activation, bias: float) -> nn.Sequential:
        def initialise(weight: Tensor, offset: Tensor) -> None:
            he_normal()(weight, offset)
            if weight.shape[1] == self.width:
                nn.init.constant_(offset, bias)

        return mlp((64, self.width, self.width, 10), activation=sigma, initialise=initialise)


@torch.no_grad()
def negative_fraction(network: nn.Sequential, x: Tensor) -> Tensor:
    """The fraction of units of the first layer whose pre-activation is negative on all of x."""
    values = x @ network.get_parameter("0.weight") + network.get_parameter("0.bias")
    return (values < 0).all(0).double().mean()


def standardised_digits() -> Dataset:
    """The digits as vectors of 64 pixels, with mean 0 and variance 1 over all training images and pixels."""
    digits = load_digits()
    mean, std = digits.train.x.mean(), digits.train.x.std()
    train, test = (replace(part, x=(part.x.flatten(1) - mean) / std) for part in (digits.train, digits.test))
    return replace(digits, train=train, test=test)
