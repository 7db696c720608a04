"""Which random starts let a signal through fifty layers, forwards and backwards (book sec. 3.4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from parnassus.layers import (
    GAINS,
    Activation,
    Initialiser,
    he_uniform,
    identity,
    layer_outputs,
    leaky_relu,
    mlp,
    normal_start,
    preserving_gain,
    relu,
    sigmoid,
    tanh,
    uniform_by_fan_in,
    xavier_normal,
)
from parnassus.report import FAINT, PALETTE, subplots
from parnassus.train import Run, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B3.4-1", "B3.4-2", "B3.4-3", "Z5.9", "Z5.10")
expected = {
    "xavier_values": between(0.2, 5.0, "second moment after the last ReLU layer over that after the first, gain √2"),
    "xavier_gradients": between(0.2, 5.0, "second moment of the gradient at the first layer over that at the last"),
    "printed_xavier_values": between(1e-9, 1e-6, "as the first, with the variance printed in the book"),
    "default_values": at_most(1e-2, "as the first, with torch's default"),
    "default_gradients": at_most(1e-25, "as the second, with torch's default"),
    "small_normal_gradients": at_most(1e-60, "as the second, with N(0, 0.01²)"),
    "unit_normal_gradients": between(1e80, 1e130, "as the second, with N(0, 1)"),
    "tanh_gain_of_the_list": reported("factor a layer of the second moment of tanh values with torch's gain"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"width": 32, "draws": 2}, "gpu": {"width": 2_048}}


class Signal(NamedTuple):
    values: Tensor  # second moment of what each layer gives, from first to last
    gradients: Tensor  # second moment of the loss's gradient with respect to it


@dataclass(frozen=True)
class Experiment:
    depth: int = 50  # layers
    width: int = 256  # units in each
    batch: int = 64  # normal inputs
    draws: int = 8  # networks of each kind

    def __call__(self, run: Run) -> dict[str, float]:
        starts: dict[str, Initialiser] = {
            "Xavier, gain √2": xavier_normal(sqrt(2)),
            "He uniform": he_uniform(),
            "Xavier as printed": xavier_normal(sqrt(GAINS[relu])),
            "torch's default": uniform_by_fan_in,
            "N(0, 0.01²)": normal_start(0.01),
            "N(0, 1)": normal_start(1.0),
        }
        found = {name: self.send(run, relu, start) for name, start in starts.items()}
        run.figure(
            "second moments by layer",
            by_layer(found),
            f"A ReLU network of {self.depth} layers, {self.width} wide: mean square of what each layer gives (left), "
            "and of the gradient that reaches it from the last (right). Lines are geometric means of "
            f"{self.draws} networks. Biases are 0 but in torch's default, where random ones keep the values alive.",
        )
        run.table(
            "through the whole network",
            [
                {"start": name, "values": f"{ratio(s.values):.1e}", "gradients": f"{1 / ratio(s.gradients):.1e}"}
                for name, s in found.items()
            ],
            "Second moment at the far end over that at the near one: last layer over first for the values, first layer "
            "over last for the gradients.",
        )
        gains = self.gain_table(run)
        run.table(
            "gains",
            gains,
            "What a layer multiplies the second moment of its values by with Xavier weights: with the gain of torch's "
            "list, with that gain as printed (not squared), and with the gain 1/√E σ(z)² that keeps them at 1.",
        )
        default, printed = found["torch's default"], found["Xavier as printed"]
        right = found["Xavier, gain √2"]
        run.note(
            "what to see",
            f"With the right scale both directions stay level: {ratio(right.values):.2f} and "
            f"{1 / ratio(right.gradients):.2f} from end to end. The variance printed in the book lacks a square, and "
            f"each layer keeps {ratio(printed.values) ** (1 / (self.depth - 2)):.3f} of what comes in. torch's default "
            "has a variance of 1/(3n), good for a few layers only: here gradients shrink to "
            f"{1 / ratio(default.gradients):.0e}.\n\nOne σ for every width is right only by chance.",
        )
        return {
            "xavier_values": ratio(right.values),
            "xavier_gradients": 1 / ratio(right.gradients),
            "printed_xavier_values": ratio(printed.values),
            "default_values": ratio(default.values),
            "default_gradients": 1 / ratio(default.gradients),
            "small_normal_gradients": 1 / ratio(found["N(0, 0.01²)"].gradients),
            "unit_normal_gradients": 1 / ratio(found["N(0, 1)"].gradients),
            "tanh_gain_of_the_list": float(next(row for row in gains if row["activation"] == "tanh")["with its gain"]),
        }

    def send(self, run: Run, activation: Activation, start: Initialiser) -> Signal:
        """Geometric means over `draws` networks of the mean squares at each hidden layer."""
        values, gradients = [], []
        for _ in range(self.draws):
            network = mlp([self.width] * (self.depth + 1), activation=activation, initialise=start).double()
            x = torch.randn(self.batch, self.width, dtype=torch.float64, device=run.device)
            outputs = layer_outputs(network.to(run.device), x)
            slopes = torch.autograd.grad(outputs[-1], outputs[:-1], grad_outputs=torch.randn_like(outputs[-1]))
            values.append(torch.stack([h.detach().square().mean().log() for h in outputs[:-1]]))
            gradients.append(torch.stack([slope.square().mean().log() for slope in slopes]))
        return Signal(*(torch.stack(each).mean(0).exp().cpu() for each in (values, gradients)))

    def gain_table(self, run: Run) -> list[dict[str, str | float]]:
        names: Mapping[str, Activation] = {
            "identity": identity,
            "ReLU": relu,
            "leaky ReLU": leaky_relu,
            "tanh": tanh,
            "sigmoid": sigmoid,
            "SELU": torch.selu,
        }
        rows: list[dict[str, str | float]] = []
        for name, activation in names.items():
            listed, preserving = GAINS[activation], preserving_gain(activation)
            factors = [
                ratio(self.send(run, activation, xavier_normal(gain)).values) ** (1 / (self.depth - 2))
                for gain in (listed, sqrt(listed), preserving)
            ]
            rows.append(
                {
                    "activation": name,
                    "gain of the list": round(listed, 4),
                    "with its gain": round(factors[0], 3),
                    "as printed": round(factors[1], 3),
                    "preserving gain": round(preserving, 4),
                    "with that": round(factors[2], 3),
                }
            )
        return rows


def ratio(moments: Tensor) -> float:
    return float(moments[-1] / moments[0])


def by_layer(found: Mapping[str, Signal]) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 4.4))
    for (name, signal), colour in zip(found.items(), PALETTE, strict=False):
        layers = range(1, len(signal.values) + 1)
        axes[0, 0].semilogy(layers, signal.values, color=colour, label=name)
        axes[0, 1].semilogy(layers, signal.gradients, color=colour)
    for ax, title in zip(axes[0], ("values", "gradients"), strict=True):
        ax.axhline(1, color=FAINT, linewidth=1, zorder=0)
        ax.set(title=title, xlabel="layer", ylabel="second moment", ylim=(1e-40, 1e40))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
