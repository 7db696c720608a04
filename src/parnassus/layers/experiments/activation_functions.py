"""Activation functions, their derivatives and output statistics (book sec. 1.2, Diehl sec. 1, Zhao sec. 5)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.layers import activations as act
from parnassus.layers.activations import ACTIVATIONS
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.train import Positive, Run, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = (
    "B1.2-8",
    "B1.2-9",
    "B1.2-10",
    "B1.2-11",
    "B1.2-12",
    "B1.2-13",
    "D1.0.4",
    "D1.0.5",
    "D1.0.6",
    "D1.0.7",
    "D1.0.8",
    "D1.0.9",
    "Z5.4",
    "Z5.5",
    "Z5.6",
)
expected = {
    "gelu_minimum": between(-0.17, -0.1699, "minimum of GELU"),
    "max_sigmoid_derivative": between(0.2499, 0.2501, "maximum derivative of the sigmoid"),
    "relu_zero_fraction": between(0.49, 0.51, "fraction of standard normal inputs with ReLU output 0"),
    "tanh_mean": between(-0.01, 0.01, "mean of tanh for standard normal inputs"),
    "gelu_tanh_error": between(4.6e-4, 4.8e-4, "maximum absolute error of the tanh approximation of GELU"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"num_samples": 100_000}, "gpu": {}}


@dataclass(frozen=True)
class Experiment:
    num_points: Positive[int] = 2_001  # points per curve
    x_max: Positive[float] = 4.0  # curves are plotted on [−x_max, x_max]
    num_samples: Positive[int] = 1_000_000  # standard normal inputs for the output statistics

    def __call__(self, run: Run) -> dict[str, float]:
        x = torch.linspace(-self.x_max, self.x_max, self.num_points, dtype=torch.float64)
        s_shaped = {"tanh": (x, act.tanh(x)), "sigmoid": (x, act.sigmoid(x))}
        run.figure(
            "tanh and sigmoid",
            curves(s_shaped, x_label="x", y_label="activation"),
            "Two sigmoidal activations: tanh is centred at 0, the logistic sigmoid at ½ (book fig. 1.3).",
        )
        grid = torch.linspace(-5, 5, self.num_points, dtype=torch.float64)
        three = {"ReLU": (grid, act.relu(grid)), "tanh": (grid, act.tanh(grid)), "sigmoid": (grid, act.sigmoid(grid))}
        run.figure(
            "ReLU, tanh and sigmoid",
            curves(three, x_label="x", y_label="activation"),
            "Three activations on [−5, 5] (Diehl sec. 1): tanh and the sigmoid saturate on both sides, ReLU on one.",
        )
        run.figure(
            "all activations",
            plot_activations(x),
            "Each activation (solid) with its derivative (dashed). The derivative of a step is 0 except at the jump.",
        )

        normal = torch.randn(self.num_samples, dtype=torch.float64)
        rows = [output_statistics(name, x, normal) for name in ACTIVATIONS]
        run.table(
            "output statistics", rows, "For standard normal inputs; the maximum derivative is over the plotted range."
        )
        run.note(
            "results",
            "The outputs of tanh have mean 0, those of the sigmoid ½: the next layer then receives positive inputs "
            "only. ReLU is 0 on half of all inputs, leaky ReLU on none. The two step functions have derivative 0 "
            "almost everywhere and give no gradient.",
        )
        return {
            "gelu_minimum": float(act.gelu(x).min()),
            "max_sigmoid_derivative": float(act.sigmoid_derivative(x).max()),
            "relu_zero_fraction": float((act.relu(normal) == 0).double().mean()),
            "tanh_mean": float(act.tanh(normal).mean()),
            "gelu_tanh_error": float((act.gelu_tanh(x) - act.gelu(x)).abs().max()),
        }


def output_statistics(name: str, x: Tensor, normal: Tensor) -> dict[str, str | float]:
    function, derivative = ACTIVATIONS[name]
    output = function(normal)
    return {
        "activation": name,
        "mean output": round(float(output.mean()), 3),
        "standard deviation": round(float(output.std()), 3),
        "fraction of exact zeros": round(float((output == 0).double().mean()), 3),
        "maximum derivative": round(float(derivative(x).max()), 3),
        "mean derivative": round(float(derivative(normal).mean()), 3),
    }


def plot_activations(x: Tensor) -> "Figure":
    figure, axes = subplots(3, 3, size=(10.0, 7.2))
    for ax, (name, (function, derivative)), colour in zip(axes.flat, ACTIVATIONS.items(), PALETTE, strict=False):
        ax.plot(x, break_at_jumps(function(x)), color=colour, label="activation")
        ax.plot(x, break_at_jumps(derivative(x)), color=INK, linestyle="--", linewidth=1.2, label="derivative")
        ax.set(title=name, ylim=(-1.3, 2.3))
    axes[0, 0].legend(loc="upper left")
    return figure


def break_at_jumps(values: Tensor) -> Tensor:
    """NaN at the point before each jump, so that no line is plotted across it."""
    jumps = values.diff().abs() > 0.5
    return torch.where(torch.cat([jumps, torch.zeros(1, dtype=torch.bool)]), torch.nan, values)
