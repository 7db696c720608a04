"""Dead ReLUs: what kills them, that they stay dead, and that leaky ones come back (Diehl sec. 1)."""

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import SGD

from parnassus.data import Dataset, load_digits
from parnassus.layers import (
    Activation,
    Classifier,
    dead_units,
    elu,
    evaluate,
    he_normal,
    leaky_relu,
    mlp,
    relu,
    require_labels,
    tanh,
)
from parnassus.report import curves, heatmap
from parnassus.train import Run, at_least, at_most, descend

covers = ("D1.0.10", "B1.2-12")
expected = {
    "dead_at_a_small_rate": at_most(0.05, "share of dead units after training at rate 0.03 from bias 0"),
    "dead_at_a_large_rate": at_least(0.75, "the same at rate 3"),
    "dead_from_a_low_bias": at_least(0.4, "the same at rate 0.03 from the lowest bias"),
    "relu_stays_dead": at_least(1.0, "share of a dead ReLU layer that is still dead after training"),
    "relu_accuracy": at_most(0.15, "test accuracy of a network with a dead ReLU layer"),
    "leaky_accuracy": at_least(0.85, "the same with leaky ReLU, from the same start"),
    "elu_accuracy": at_least(0.9, "the same with ELU"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 2, "rescue_steps": 6}, "gpu": {}}

RATES = (0.03, 0.1, 0.3, 1.0, 3.0)
BIASES = (0.0, -0.5, -1.0, -1.5, -2.0)
UNITS: dict[str, Activation] = {"ReLU": relu, "leaky ReLU": leaky_relu, "ELU": elu, "tanh": tanh}


@dataclass(frozen=True)
class Experiment:
    width: int = 100  # units in each of the two hidden layers
    steps: int = 200  # steps of each network of the map
    rescue_steps: int = 1_200  # steps in which a dead layer may come back
    batch: int = 64  # images a step
    rescue_rate: float = 0.1  # learning rate meanwhile

    def __call__(self, run: Run) -> dict[str, float]:
        digits = standardised_digits().to(run.device)
        dead = torch.tensor([[self.share_dead(digits, rate, bias, run) for rate in RATES] for bias in BIASES])
        run.figure(
            "what kills",
            heatmap(
                dead,
                row_labels=[f"{bias:g}" for bias in BIASES],
                column_labels=[f"{rate:g}" for rate in RATES],
                x_label="learning rate",
                y_label="bias at the start",
                annotate=True,
            ),
            f"Share of the {2 * self.width} hidden units that are 0 on every training image after {self.steps} steps "
            "of SGD. A large rate throws units so far that no image reaches them again; a low bias has them dead or "
            "nearly dead from the beginning.",
        )
        for name, sigma in UNITS.items():
            self.rescue(run, digits, name, sigma)
        lines = {name: run.curve(f"accuracy/{name}") for name in UNITS}
        run.figure(
            "who comes back",
            curves(lines, x_label="step", y_label="test accuracy"),
            "The same network, its first layer pushed below 0 on all images by its biases, trained with four kinds of "
            "unit. The dead ReLU layer passes on nothing and gets no gradient: the network can only learn how frequent "
            "the classes are. A hundredth of a slope is enough to come back, in time.",
        )
        still = {name: run.curve(f"still_dead/{name}") for name in UNITS}
        run.figure(
            "who is dead",
            curves(still, x_label="step", y_label="share of the first layer"),
            "How much of the first layer is below 0 on every training image, step by step.",
        )
        run.note(
            "what to see",
            "Death needs no bad luck, only a large step: the same network loses "
            f"{100 * float(dead[0, 0]):.0f} % of its units at rate {RATES[0]} and {100 * float(dead[0, -1]):.0f} % at "
            f"rate {RATES[-1]:g}. And it is final: the gradient of a dead unit is exactly 0. Leaky ReLU and ELU cost "
            "hardly more and have no such trap; a smaller rate and biases not below 0 help as well.",
        )
        return {
            "dead_at_a_small_rate": float(dead[0, 0]),
            "dead_at_a_large_rate": float(dead[0, -1]),
            "dead_from_a_low_bias": float(dead[-1, 0]),
            "relu_stays_dead": still["ReLU"][1][-1],
            "relu_accuracy": lines["ReLU"][1][-1],
            "leaky_accuracy": lines["leaky ReLU"][1][-1],
            "elu_accuracy": lines["ELU"][1][-1],
        }

    def share_dead(self, digits: Dataset, rate: float, bias: float, run: Run) -> float:
        """Train a fresh ReLU classifier and count the units that no training image wakes."""
        torch.manual_seed(run.seed)
        network = self.network(relu, bias).to(run.device)
        model, optimizer = Classifier(network), SGD(network.parameters(), lr=rate)
        batches = digits.train.pairs(self.batch, self.steps)
        for step in range(self.steps):
            optimizer.zero_grad()
            model.loss(*batches.at(step, run.seed)).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 10.0)  # a rate too large should kill units, not overflow
            optimizer.step()
        return float(torch.cat(dead_units(network, digits.train.x)).double().mean())

    def rescue(self, run: Run, digits: Dataset, name: str, sigma: Activation) -> None:
        """Train from a start at which the first layer is below 0 on all images."""
        torch.manual_seed(run.seed)
        network = self.network(sigma, 0.0)
        with torch.no_grad():
            values = digits.train.x.cpu() @ network.get_parameter("0.weight")
            network.get_parameter("0.bias").copy_(-values.amax(0) - 0.1)  # just out of reach of every image
        model, optimizer = run.prepare(Classifier(network), partial(SGD, lr=self.rescue_rate))
        for step, loss in descend(run, model, optimizer, digits.train.pairs(self.batch, self.rescue_steps)):
            run.log(step, **{f"loss/{name}": loss})
            if (step + 1) % max(1, self.rescue_steps // 50) == 0 or step == 0:
                tested = evaluate(model, digits.test.x, require_labels(digits.test.y, 10)).accuracy
                below = float(below_zero(network, digits.train.x))
                run.record(step + 1, **{f"accuracy/{name}": tested, f"still_dead/{name}": below})

    def network(self, sigma: Activation, bias: float) -> nn.Sequential:
        def start(weight: Tensor, offset: Tensor) -> None:
            he_normal()(weight, offset)
            if weight.shape[1] == self.width:
                nn.init.constant_(offset, bias)

        return mlp((64, self.width, self.width, 10), activation=sigma, initialise=start)


@torch.no_grad()
def below_zero(network: nn.Sequential, x: Tensor) -> Tensor:
    """The share of units of the first layer whose pre-activation is negative on all of x."""
    values = x @ network.get_parameter("0.weight") + network.get_parameter("0.bias")
    return (values < 0).all(0).double().mean()


def standardised_digits() -> Dataset:
    """The digits as rows of 64 numbers, with mean 0 and variance 1 over all training images and pixels."""
    digits = load_digits()
    mean, std = digits.train.x.mean(), digits.train.x.std()
    train, test = (replace(part, x=(part.x.flatten(1) - mean) / std) for part in (digits.train, digits.test))
    return replace(digits, train=train, test=test)
