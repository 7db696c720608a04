"""The activation functions and their derivatives, side by side (book sec. 1.2, Diehl sec. 1, Zhao sec. 5)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.layers import activations as act
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.train import Run, between

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
    "gelu_minimum": between(-0.17, -0.1699, "the lowest value of GELU"),
    "steepest_sigmoid": between(0.2499, 0.2501, "the largest slope of the sigmoid"),
    "relu_silent": between(0.49, 0.51, "share of normal inputs that ReLU sends to 0"),
    "tanh_mean": between(-0.01, 0.01, "mean of tanh over normal inputs"),
    "gelu_by_tanh_gap": between(4.6e-4, 4.8e-4, "largest distance of the tanh form of GELU from GELU"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"draws": 100_000}, "gpu": {}}

SHOWN = {
    "step": (act.step01, act.step01_slope),
    "sign ±1": (act.sign_pm1, act.sign_pm1_slope),
    "ReLU": (act.relu, act.relu_slope),
    "leaky ReLU": (act.leaky_relu, act.leaky_relu_slope),
    "tanh": (act.tanh, act.tanh_slope),
    "sigmoid": (act.sigmoid, act.sigmoid_slope),
    "GELU": (act.gelu, act.gelu_slope),
    "ELU": (act.elu, act.elu_slope),
    "identity": (act.identity, act.identity_slope),
}


@dataclass(frozen=True)
class Experiment:
    points: int = 2_001  # points of each curve
    span: float = 4.0  # curves are drawn from −span to span
    draws: int = 1_000_000  # standard normal inputs for the table

    def __call__(self, run: Run) -> dict[str, float]:
        x = torch.linspace(-self.span, self.span, self.points, dtype=torch.float64)
        s_shaped = {"tanh": (x, act.tanh(x)), "sigmoid": (x, act.sigmoid(x))}
        run.figure(
            "tanh and sigmoid",
            curves(s_shaped, x_label="x", y_label="activation"),
            "Two S-shaped activations: tanh is centred on 0, the sigmoid on ½ (book fig. 1.3).",
        )
        wide = torch.linspace(-5, 5, self.points, dtype=torch.float64)
        three = {"ReLU": (wide, act.relu(wide)), "tanh": (wide, act.tanh(wide)), "sigmoid": (wide, act.sigmoid(wide))}
        run.figure(
            "relu, tanh and sigmoid",
            curves(three, x_label="x", y_label="activation"),
            "The three activations of the notes on [−5, 5] (Diehl sec. 1): two that saturate, one that does not.",
        )
        run.figure(
            "all activations",
            function_and_slope(x),
            "Each activation (solid) with its derivative (dashed). A step has slope 0 wherever it has one.",
        )

        normal = torch.randn(self.draws, dtype=torch.float64)
        rows = [measures(name, x, normal) for name in SHOWN]
        run.table("in numbers", rows, "Outputs are measured on standard normal inputs.")
        run.note(
            "what to see",
            "Centred outputs are what speaks for tanh against the sigmoid: its mean output is 0, the sigmoid's is ½, "
            "so the next layer would see inputs that are all positive. ReLU is silent on half of all inputs; the leaky "
            "ReLU on none. The two step functions have no slope to learn by.",
        )
        return {
            "gelu_minimum": float(act.gelu(x).min()),
            "steepest_sigmoid": float(act.sigmoid_slope(x).max()),
            "relu_silent": float((act.relu(normal) == 0).double().mean()),
            "tanh_mean": float(act.tanh(normal).mean()),
            "gelu_by_tanh_gap": float((act.gelu_by_tanh(x) - act.gelu(x)).abs().max()),
        }


def measures(name: str, x: Tensor, normal: Tensor) -> dict[str, str | float]:
    function, slope = SHOWN[name]
    output = function(normal)
    return {
        "activation": name,
        "mean output": round(float(output.mean()), 3),
        "spread": round(float(output.std()), 3),
        "share of exact zeros": round(float((output == 0).double().mean()), 3),
        "largest slope": round(float(slope(x).max()), 3),
        "mean slope": round(float(slope(normal).mean()), 3),
    }


def function_and_slope(x: Tensor) -> "Figure":
    figure, axes = subplots(3, 3, size=(10.0, 7.2))
    for ax, (name, (function, slope)), colour in zip(axes.flat, SHOWN.items(), PALETTE, strict=False):
        ax.plot(x, with_gap(function(x)), color=colour, label="value")
        ax.plot(x, with_gap(slope(x)), color=INK, linestyle="--", linewidth=1.2, label="slope")
        ax.set(title=name, ylim=(-1.3, 2.3))
    axes[0, 0].legend(loc="upper left")
    return figure


def with_gap(values: Tensor) -> Tensor:
    """A jump is not a line: leave out the point before it."""
    jumps = values.diff().abs() > 0.5
    return torch.where(torch.cat([jumps, torch.zeros(1, dtype=torch.bool)]), torch.nan, values)
