"""Do wide networks train as their tangent kernel says? Outputs, drift and modes against width (book sec. 15.4)."""

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from parnassus.kernels import GradientFlow, Quadrature, Training, fully_connected, train_and_measure, width_exponent
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("B15.4-4", "B15.4-6", "B15.4-7")
expected = {
    "kernel_exponent": between(-1.2, -0.8, "power of the width with which the kernel's change falls; −1"),
    "parameter_exponent": between(-0.65, -0.35, "the same for the parameters' change; −½"),
    "deviation_exponent": between(-0.8, -0.25, "the same for the distance from the prediction; −½"),
    "kernel_change_widest": at_most(0.004, "relative change of the kernel at the largest width"),
    "deviation_widest": at_most(0.02, "root mean square distance from the prediction at the largest width"),
    "rate_error": at_most(0.05, "relative error of λ for the three fastest modes of the widest network"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"widths": (16, 64), "steps": 60, "networks": 1},
    "gpu": {"widths": (64, 256, 1_024, 4_096, 16_384), "networks": 8},
}

ANGLES = torch.tensor([0.3, 1.5, 2.4, 3.9, 5.3], dtype=torch.float64)
LABELS = torch.tensor([1.0, -1.0, 0.5, -0.5, 1.0], dtype=torch.float64)
TANH = Quadrature(torch.tanh)
NETWORK = fully_connected(1, TANH)


class Trained(NamedTuple):
    """One network's run, and what it says around the circle before and after."""

    training: Training
    before: Tensor
    after: Tensor


@dataclass(frozen=True)
class Experiment:
    widths: tuple[int, ...] = (64, 256, 1_024, 4_096)  # hidden units
    rate: float = 0.04  # learning rate η
    steps: int = 500  # steps of gradient descent
    networks: int = 5  # networks of each width

    def __call__(self, run: Run) -> dict[str, float]:
        x, around = circle(ANGLES).to(run.device), circle(torch.linspace(0, 2 * pi, 200, dtype=torch.float64))
        flow = GradientFlow.of(NETWORK.kernels(x.cpu()).ntk)
        runs = {
            width: [self.train(width, x, around.to(run.device)) for _ in range(self.networks)] for width in self.widths
        }
        deviation = [root_mean_square([self.deviation(flow, one) for one in runs[width]]) for width in self.widths]
        kernel = [root_mean_square([one.training.kernel_change[-1] for one in runs[width]]) for width in self.widths]
        moved = [root_mean_square([one.training.parameter_change[-1] for one in runs[width]]) for width in self.widths]
        widest = runs[self.widths[-1]][0]
        run.figure(
            "training curves",
            self.curves_figure(flow, runs[self.widths[0]][0], widest),
            "Outputs at the five training points. Dashed: y + (I − ηK*)^τ (u(0) − y) from the network's own start.",
        )
        run.figure(
            "drift against width",
            power_figure(self.widths, {"kernel": kernel, "parameters": moved, "distance from prediction": deviation}),
            "Relative change of kernel and parameters in training, and the distance of outputs from the prediction. "
            "Dotted: slopes −1 and −½.",
        )
        run.figure(
            "modes learned in order",
            self.modes_figure(flow, widest),
            "The residual along each eigenvector of K*, in the widest network (dots) and as e^{−λt} says (lines). Far "
            "down, slower modes leak into fast ones: the network's own kernel is not quite K*.",
        )
        run.figure(
            "off the training set",
            self.circle_figure(flow, around, widest),
            "What the widest network says around the circle before and after training, and what K* predicts from "
            "its start; dots are the labels.",
        )
        rates = self.measured_rates(flow, runs[self.widths[-1]])
        result = {
            "kernel_exponent": width_exponent(self.widths, kernel),
            "parameter_exponent": width_exponent(self.widths, moved),
            "deviation_exponent": width_exponent(self.widths, deviation),
            "kernel_change_widest": kernel[-1],
            "deviation_widest": deviation[-1],
            "rate_error": float((rates / flow.rates[:3] - 1).abs().max()),
        }
        run.note(
            "what to see",
            f"Sixteen times the width divides the kernel's change by about {16 ** -result['kernel_exponent']:.0f} and "
            f"the parameters' by about {16 ** -result['parameter_exponent']:.1f}: each weight moves too little to "
            "matter, and together they fit the labels. The fastest mode is gone before the slowest has begun: their "
            f"rates differ by a factor of {float(flow.rates[0] / flow.rates[-1]):.0f}.",
        )
        return result

    def train(self, width: int, x: Tensor, around: Tensor) -> Trained:
        module = NETWORK.module((3,), width).double().to(x.device)
        with torch.no_grad():
            before = module(around)[:, 0].cpu()
        labels = LABELS[:, None].to(x.device)
        training = train_and_measure(module, x, labels, rate=self.rate, steps=self.steps, records=26)
        with torch.no_grad():
            after = module(around)[:, 0].cpu()
        return Trained(Training(*[part.cpu() for part in training]), before, after)

    def predicted(self, flow: GradientFlow, one: Trained) -> Tensor:
        """Outputs at the recorded steps, by the frozen kernel."""
        start = one.training.outputs[0, :, 0]
        steps = one.training.steps.tolist()
        return torch.stack([flow.outputs(start, LABELS, flow.after(step, rate=self.rate)) for step in steps])

    def deviation(self, flow: GradientFlow, one: Trained) -> Tensor:
        return (one.training.outputs[..., 0] - self.predicted(flow, one)).square().mean().sqrt()

    def measured_rates(self, flow: GradientFlow, many: list[Trained]) -> Tensor:
        """λ of the three fastest modes from how much of them is left at the third record, over all networks."""
        first = torch.stack([flow.along_modes(one.training.outputs[0, :, 0] - LABELS) for one in many])[:, :3]
        later = torch.stack([flow.along_modes(one.training.outputs[3, :, 0] - LABELS) for one in many])[:, :3]
        left = ((later * first).sum(0) / first.square().sum(0)).clamp(min=1e-9)
        steps = float(many[0].training.steps[3])
        return (1 - left ** (1 / steps)) / self.rate

    def curves_figure(self, flow: GradientFlow, narrow: Trained, wide: Trained) -> "Figure":
        figure, axes = subplots(1, 2, size=(10.0, 3.8))
        for ax, one, width in zip(axes[0], (narrow, wide), (self.widths[0], self.widths[-1]), strict=True):
            time = self.rate * one.training.steps
            for point, colour in zip(range(len(LABELS)), PALETTE, strict=False):
                ax.plot(time, one.training.outputs[:, point, 0], color=colour)
                ax.plot(time, self.predicted(flow, one)[:, point], color=INK, linestyle="--", linewidth=1)
            ax.set(title=f"{width:,} units", xlabel="time ητ", ylabel="output")
        return figure

    def modes_figure(self, flow: GradientFlow, one: Trained) -> "Figure":
        figure, axes = subplots()
        ax: Axes = axes[0, 0]
        time = self.rate * one.training.steps
        residual = torch.stack([flow.along_modes(u[:, 0] - LABELS) for u in one.training.outputs])
        for mode, colour in zip(range(len(LABELS)), PALETTE, strict=False):
            left = (residual[:, mode] / residual[0, mode]).abs()
            ax.plot(time, torch.exp(-flow.rates[mode] * time), color=colour, label=f"λ = {float(flow.rates[mode]):.2g}")
            ax.plot(time, left, color=colour, linestyle="", marker="o", markersize=3.5)
        ax.set(xlabel="time ητ", ylabel="share of the residual left", yscale="log", ylim=(1e-4, 2))
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        return figure

    def circle_figure(self, flow: GradientFlow, around: Tensor, one: Trained) -> "Figure":
        cross = NETWORK.kernels(around, circle(ANGLES)).ntk
        progress = flow.after(self.steps, rate=self.rate)
        after = one.before + flow.predict(cross, one.training.outputs[0, :, 0], LABELS, progress)
        figure, axes = subplots()
        ax: Axes = axes[0, 0]
        angle = torch.linspace(0, 2 * pi, len(around))
        ax.plot(angle, one.before, color=FAINT, label="before")
        ax.plot(angle, one.after, color=PALETTE[0], label="after")
        ax.plot(angle, after, color=INK, linestyle="--", linewidth=1.2, label="predicted")
        ax.plot(ANGLES, LABELS, color=PALETTE[1], linestyle="", marker="o", label="labels")
        ax.set(xlabel="angle", ylabel="output")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        return figure


def circle(angles: Tensor) -> Tensor:
    """Unit vectors (cos, sin, 1) / √2: the constant stands for the bias that the network lacks."""
    return torch.stack([angles.cos(), angles.sin(), torch.ones_like(angles)], 1) / 2**0.5


def root_mean_square(values: list[Tensor]) -> float:
    return float(torch.stack(values).square().mean().sqrt())


def power_figure(widths: tuple[int, ...], lines: dict[str, list[float]]) -> "Figure":
    figure, axes = subplots()
    ax: Axes = axes[0, 0]
    for (name, values), colour, slope in zip(lines.items(), PALETTE, (-1.0, -0.5, -0.5), strict=False):
        ax.loglog(widths, values, color=colour, marker="o", markersize=4, label=name)
        guide = [values[0] * (width / widths[0]) ** slope for width in widths]
        ax.loglog(widths, guide, color=FAINT, linestyle=":", linewidth=1.2)
    ax.set(xlabel="hidden units", ylabel="change")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
