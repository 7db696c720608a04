"""Initialisation: second moments of activations and gradients through fifty layers (book sec. 3.4)."""

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
    fan_in_uniform,
    he_uniform,
    identity,
    layer_outputs,
    leaky_relu,
    mlp,
    normal_initialiser,
    relu,
    sigmoid,
    tanh,
    variance_preserving_gain,
    xavier_normal,
)
from parnassus.report import FAINT, PALETTE, subplots
from parnassus.train import Positive, Run, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B3.4-1", "B3.4-2", "B3.4-3", "Z5.9", "Z5.10")
expected = {
    "xavier_output_ratio": between(
        0.2, 5.0, "ratio of the outputs' second moments, last ReLU layer to first, Xavier with gain √2"
    ),
    "xavier_gradient_ratio": between(
        0.2, 5.0, "ratio of the gradients' second moments, first layer to last, Xavier with gain √2"
    ),
    "printed_xavier_output_ratio": between(
        1e-9, 1e-6, "ratio of the outputs' second moments with the variance printed in the book"
    ),
    "default_output_ratio": at_most(1e-2, "ratio of the outputs' second moments with torch's default"),
    "default_gradient_ratio": at_most(1e-25, "ratio of the gradients' second moments with torch's default"),
    "small_normal_gradient_ratio": at_most(
        1e-60, "ratio of the gradients' second moments with weights from N(0, 0.01²)"
    ),
    "unit_normal_gradient_ratio": between(
        1e80, 1e130, "ratio of the gradients' second moments with weights from N(0, 1)"
    ),
    "tanh_factor_with_torch_gain": no_band("factor per layer of the second moment of tanh outputs with torch's gain"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"width": 32, "num_networks": 2}, "gpu": {"width": 2_048}}


class Signal(NamedTuple):
    values: Tensor  # second moment of the output of each layer, first to last
    gradients: Tensor  # second moment of the gradient with respect to it


@dataclass(frozen=True)
class Experiment:
    num_layers: Positive[int] = 50  # layers
    width: Positive[int] = 256  # units per layer
    batch_size: Positive[int] = 64  # standard normal inputs per network
    num_networks: Positive[int] = 8  # networks per initialisation

    def __call__(self, run: Run) -> dict[str, float]:
        initialisers: dict[str, Initialiser] = {
            "Xavier, gain √2": xavier_normal(sqrt(2)),
            "He uniform": he_uniform(),
            "Xavier, as printed": xavier_normal(sqrt(GAINS[relu])),
            "torch's default": fan_in_uniform,
            "N(0, 0.01²)": normal_initialiser(0.01),
            "N(0, 1)": normal_initialiser(1.0),
        }
        signals = {name: self.propagate(run, relu, initialiser) for name, initialiser in initialisers.items()}
        run.figure(
            "second moments by layer",
            plot_by_layer(signals),
            f"ReLU networks of {self.num_layers} layers and width {self.width}: second moment of the output of each "
            f"layer (left) and of the gradient with respect to it (right), geometric means over {self.num_networks} "
            "networks. Biases are 0 except in torch's default, where random biases prevent the outputs from "
            "vanishing.",
        )
        run.table(
            "ratio over the whole network",
            [
                {
                    "initialisation": name,
                    "outputs": f"{ratio(s.values):.1e}",
                    "gradients": f"{1 / ratio(s.gradients):.1e}",
                }
                for name, s in signals.items()
            ],
            "Ratio of second moments: last layer to first for outputs, first layer to last for gradients.",
        )
        gains = self.gain_table(run)
        run.table(
            "gains",
            gains,
            "Factor per layer of the second moment of the outputs with Xavier weights: with torch's gain, with that "
            "gain as printed (not squared), and with the variance-preserving gain 1/√E σ(z)².",
        )
        default, printed = signals["torch's default"], signals["Xavier, as printed"]
        xavier = signals["Xavier, gain √2"]
        run.note(
            "summary",
            "With Xavier initialisation and gain √2 the second moment of the outputs changes by a factor of "
            f"{ratio(xavier.values):.2f} over the network, that of the gradients by "
            f"{1 / ratio(xavier.gradients):.2f}. The variance printed in the book lacks a square: each layer "
            f"multiplies the second moment by {ratio(printed.values) ** (1 / (self.num_layers - 2)):.3f}. torch's "
            "default has variance 1/(3n), suitable for a few layers only: here the second moment of the gradients is "
            f"multiplied by {1 / ratio(default.gradients):.0e}.\n\nA standard deviation that does not depend on the "
            "width is suitable for one width only.",
        )
        return {
            "xavier_output_ratio": ratio(xavier.values),
            "xavier_gradient_ratio": 1 / ratio(xavier.gradients),
            "printed_xavier_output_ratio": ratio(printed.values),
            "default_output_ratio": ratio(default.values),
            "default_gradient_ratio": 1 / ratio(default.gradients),
            "small_normal_gradient_ratio": 1 / ratio(signals["N(0, 0.01²)"].gradients),
            "unit_normal_gradient_ratio": 1 / ratio(signals["N(0, 1)"].gradients),
            "tanh_factor_with_torch_gain": float(
                next(row for row in gains if row["activation"] == "tanh")["factor, torch gain"]
            ),
        }

    def propagate(self, run: Run, activation: Activation, initialiser: Initialiser) -> Signal:
        """Second moments at each hidden layer, geometric means over `num_networks` networks."""
        values, gradients = [], []
        for _ in range(self.num_networks):
            network = mlp([self.width] * (self.num_layers + 1), activation=activation, initialise=initialiser).double()
            x = torch.randn(self.batch_size, self.width, dtype=torch.float64, device=run.device)
            outputs = layer_outputs(network.to(run.device), x)
            layer_gradients = torch.autograd.grad(outputs[-1], outputs[:-1], grad_outputs=torch.randn_like(outputs[-1]))
            values.append(torch.stack([h.detach().square().mean().log() for h in outputs[:-1]]))
            gradients.append(torch.stack([g.square().mean().log() for g in layer_gradients]))
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
            torch_gain, preserving_gain = GAINS[activation], variance_preserving_gain(activation)
            factors = [
                ratio(self.propagate(run, activation, xavier_normal(gain)).values) ** (1 / (self.num_layers - 2))
                for gain in (torch_gain, sqrt(torch_gain), preserving_gain)
            ]
            rows.append(
                {
                    "activation": name,
                    "torch gain": round(torch_gain, 4),
                    "factor, torch gain": round(factors[0], 3),
                    "factor, as printed": round(factors[1], 3),
                    "preserving gain": round(preserving_gain, 4),
                    "factor, preserving gain": round(factors[2], 3),
                }
            )
        return rows


def ratio(moments: Tensor) -> float:
    return float(moments[-1] / moments[0])


def plot_by_layer(signals: Mapping[str, Signal]) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 4.4))
    for (name, signal), colour in zip(signals.items(), PALETTE, strict=False):
        layers = range(1, len(signal.values) + 1)
        axes[0, 0].semilogy(layers, signal.values, color=colour, label=name)
        axes[0, 1].semilogy(layers, signal.gradients, color=colour)
    for ax, title in zip(axes[0], ("outputs", "gradients"), strict=True):
        ax.axhline(1, color=FAINT, linewidth=1, zorder=0)
        ax.set(title=title, xlabel="layer", ylabel="second moment", ylim=(1e-40, 1e40))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
