"""NTK predictions of training: outputs, kernel change and modes against width (book sec. 15.4)."""

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from parnassus.kernels import (
    GradientFlow,
    Quadrature,
    TrainingRecord,
    fully_connected,
    train_and_measure,
    width_exponent,
)
from parnassus.report import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("B15.4-4", "B15.4-6", "B15.4-7")
expected = {
    "kernel_exponent": between(-1.2, -0.8, "exponent of the kernel change in the width; theory: −1"),
    "parameter_exponent": between(-0.65, -0.35, "exponent of the parameter change in the width; theory: −½"),
    "deviation_exponent": between(
        -0.8, -0.25, "exponent of the deviation from the prediction in the width; theory: −½"
    ),
    "kernel_change_widest": at_most(0.004, "relative change of the kernel at the largest width"),
    "deviation_widest": at_most(0.02, "root mean square deviation from the prediction at the largest width"),
    "rate_error": at_most(0.05, "relative error of λ for the three fastest modes at the largest width"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"widths": (16, 64), "steps": 60, "num_networks": 1},
    "gpu": {"widths": (64, 256, 1_024, 4_096, 16_384), "num_networks": 8},
}

ANGLES = torch.tensor([0.3, 1.5, 2.4, 3.9, 5.3], dtype=torch.float64)
LABELS = torch.tensor([1.0, -1.0, 0.5, -0.5, 1.0], dtype=torch.float64)
TANH = Quadrature(torch.tanh)
NETWORK = fully_connected(1, TANH)


class TrainedNetwork(NamedTuple):
    """Training record of one network, and its outputs on the circle before and after."""

    training: TrainingRecord
    before: Tensor
    after: Tensor


@dataclass(frozen=True)
class Experiment:
    widths: tuple[Positive[int], ...] = (64, 256, 1_024, 4_096)  # numbers of hidden units
    learning_rate: Positive[float] = 0.04  # learning rate η of gradient descent
    steps: Positive[int] = 500  # gradient steps
    num_networks: Positive[int] = 5  # networks of each width

    def __call__(self, run: Run) -> dict[str, float]:
        x, grid = circle(ANGLES).to(run.device), circle(torch.linspace(0, 2 * pi, 200, dtype=torch.float64))
        flow = GradientFlow.from_kernel(NETWORK.kernels(x.cpu()).ntk)
        runs = {
            width: [self.train(width, x, grid.to(run.device)) for _ in range(self.num_networks)]
            for width in self.widths
        }
        deviation = [root_mean_square([self.deviation(flow, one) for one in runs[width]]) for width in self.widths]
        kernel = [root_mean_square([one.training.kernel_change[-1] for one in runs[width]]) for width in self.widths]
        parameters = [
            root_mean_square([one.training.parameter_change[-1] for one in runs[width]]) for width in self.widths
        ]
        widest = runs[self.widths[-1]][0]
        run.figure(
            "training curves",
            self.plot_curves(flow, runs[self.widths[0]][0], widest),
            "Outputs at the five training points. Dashed: predictions y + (I − ηK*)^τ (u(0) − y).",
        )
        run.figure(
            "changes against width",
            plot_power(
                self.widths, {"kernel": kernel, "parameters": parameters, "deviation from prediction": deviation}
            ),
            "Relative change of kernel and parameters in training, and deviation of outputs from the prediction. "
            "Dotted: slopes −1 and −½.",
        )
        run.figure(
            "decay of modes",
            self.plot_modes(flow, widest),
            "Residual along each eigenvector of K*: widest network (dots) and prediction e^{−λt} (lines). At small "
            "values slow modes leak into fast ones, because the empirical kernel differs slightly from K*.",
        )
        run.figure(
            "generalisation",
            self.plot_circle(flow, grid, widest),
            "Outputs of the widest network on the circle before and after training, and the prediction of K* from its "
            "initial outputs; dots are the labels.",
        )
        rates = self.estimate_rates(flow, runs[self.widths[-1]])
        result = {
            "kernel_exponent": width_exponent(self.widths, kernel),
            "parameter_exponent": width_exponent(self.widths, parameters),
            "deviation_exponent": width_exponent(self.widths, deviation),
            "kernel_change_widest": kernel[-1],
            "deviation_widest": deviation[-1],
            "rate_error": float((rates / flow.rates[:3] - 1).abs().max()),
        }
        run.note(
            "results",
            f"At 16 times the width the change of the kernel is smaller by a factor of about "
            f"{16 ** -result['kernel_exponent']:.0f} and that of the parameters by about "
            f"{16 ** -result['parameter_exponent']:.1f}, while the labels are still fitted. The rates of the fastest "
            f"and slowest modes differ by a factor of {float(flow.rates[0] / flow.rates[-1]):.0f}.",
        )
        return result

    def train(self, width: int, x: Tensor, grid: Tensor) -> TrainedNetwork:
        module = NETWORK.module((3,), width).double().to(x.device)
        with torch.no_grad():
            before = module(grid)[:, 0].cpu()
        labels = LABELS[:, None].to(x.device)
        training = train_and_measure(module, x, labels, learning_rate=self.learning_rate, steps=self.steps, records=26)
        with torch.no_grad():
            after = module(grid)[:, 0].cpu()
        return TrainedNetwork(TrainingRecord(*[part.cpu() for part in training]), before, after)

    def predict_outputs(self, flow: GradientFlow, one: TrainedNetwork) -> Tensor:
        """Outputs at the recorded steps predicted by the constant kernel."""
        start = one.training.outputs[0, :, 0]
        steps = one.training.steps.tolist()
        return torch.stack(
            [flow.outputs(start, LABELS, flow.progress_after(step, learning_rate=self.learning_rate)) for step in steps]
        )

    def deviation(self, flow: GradientFlow, one: TrainedNetwork) -> Tensor:
        return (one.training.outputs[..., 0] - self.predict_outputs(flow, one)).square().mean().sqrt()

    def estimate_rates(self, flow: GradientFlow, networks: list[TrainedNetwork]) -> Tensor:
        """λ of the three fastest modes, from their remaining fraction at the third record over all networks."""
        first = torch.stack([flow.mode_coefficients(one.training.outputs[0, :, 0] - LABELS) for one in networks])[:, :3]
        later = torch.stack([flow.mode_coefficients(one.training.outputs[3, :, 0] - LABELS) for one in networks])[:, :3]
        remaining = ((later * first).sum(0) / first.square().sum(0)).clamp(min=1e-9)
        steps = float(networks[0].training.steps[3])
        return (1 - remaining ** (1 / steps)) / self.learning_rate

    def plot_curves(self, flow: GradientFlow, narrow: TrainedNetwork, wide: TrainedNetwork) -> "Figure":
        figure, axes = subplots(1, 2, size=(10.0, 3.8))
        for ax, one, width in zip(axes[0], (narrow, wide), (self.widths[0], self.widths[-1]), strict=True):
            time = self.learning_rate * one.training.steps
            for point, colour in zip(range(len(LABELS)), PALETTE, strict=False):
                ax.plot(time, one.training.outputs[:, point, 0], color=colour)
                ax.plot(time, self.predict_outputs(flow, one)[:, point], color=INK, linestyle="--", linewidth=1)
            ax.set(title=f"{width:,} units", xlabel="time ητ", ylabel="output")
        return figure

    def plot_modes(self, flow: GradientFlow, one: TrainedNetwork) -> "Figure":
        figure, axes = subplots()
        ax: Axes = axes[0, 0]
        time = self.learning_rate * one.training.steps
        residual = torch.stack([flow.mode_coefficients(u[:, 0] - LABELS) for u in one.training.outputs])
        for mode, colour in zip(range(len(LABELS)), PALETTE, strict=False):
            fraction = (residual[:, mode] / residual[0, mode]).abs()
            ax.plot(time, torch.exp(-flow.rates[mode] * time), color=colour, label=f"λ = {float(flow.rates[mode]):.2g}")
            ax.plot(time, fraction, color=colour, linestyle="", marker="o", markersize=3.5)
        ax.set(xlabel="time ητ", ylabel="remaining fraction of the residual", yscale="log", ylim=(1e-4, 2))
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        return figure

    def plot_circle(self, flow: GradientFlow, grid: Tensor, one: TrainedNetwork) -> "Figure":
        cross = NETWORK.kernels(grid, circle(ANGLES)).ntk
        progress = flow.progress_after(self.steps, learning_rate=self.learning_rate)
        after = one.before + flow.predict(cross, one.training.outputs[0, :, 0], LABELS, progress)
        figure, axes = subplots()
        ax: Axes = axes[0, 0]
        angle = torch.linspace(0, 2 * pi, len(grid))
        ax.plot(angle, one.before, color=FAINT, label="before")
        ax.plot(angle, one.after, color=PALETTE[0], label="after")
        ax.plot(angle, after, color=INK, linestyle="--", linewidth=1.2, label="predicted")
        ax.plot(ANGLES, LABELS, color=PALETTE[1], linestyle="", marker="o", label="labels")
        ax.set(xlabel="angle (rad)", ylabel="output")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        return figure


def circle(angles: Tensor) -> Tensor:
    """Unit vectors (cos, sin, 1) / √2; the constant replaces a bias in the network."""
    return torch.stack([angles.cos(), angles.sin(), torch.ones_like(angles)], 1) / 2**0.5


def root_mean_square(values: list[Tensor]) -> float:
    return float(torch.stack(values).square().mean().sqrt())


def plot_power(widths: tuple[int, ...], lines: dict[str, list[float]]) -> "Figure":
    figure, axes = subplots()
    ax: Axes = axes[0, 0]
    for (name, values), colour, slope in zip(lines.items(), PALETTE, (-1.0, -0.5, -0.5), strict=False):
        ax.loglog(widths, values, color=colour, marker="o", markersize=4, label=name)
        guide = [values[0] * (width / widths[0]) ** slope for width in widths]
        ax.loglog(widths, guide, color=FAINT, linestyle=":", linewidth=1.2)
    ax.set(xlabel="hidden units", ylabel="relative change or deviation")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
