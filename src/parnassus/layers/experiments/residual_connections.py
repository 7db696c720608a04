"""Residual connections: gradients by depth, near-identity maps and bottlenecks (Diehl sec. 1.6)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data.built_in.toy import moons
from parnassus.layers import Activation, Residual, mlp, relu, residual_mlp, sigmoid, tanh, xavier_normal
from parnassus.losses import mean_squared_error
from parnassus.report import INK, PALETTE, subplots
from parnassus.train import Positive, Run, at_least, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.6.3", "D1.6.4")
expected = {
    "plain_sigmoid_gradient_ratio": at_most(
        1e-30, "ratio of first-layer gradient norms, deepest to shallowest plain sigmoid network"
    ),
    "plain_relu_gradient_ratio": at_most(
        1e-6, "ratio of first-layer gradient norms, deepest to shallowest plain ReLU network"
    ),
    "plain_tanh_gradient_ratio": at_most(
        0.5, "ratio for plain tanh networks, for which this initialisation is nearly optimal"
    ),
    "residual_sigmoid_gradient_ratio": at_least(
        0.1, "ratio of first-layer gradient norms, deepest to shallowest sigmoid network with skip connections"
    ),
    "residual_relu_gradient_ratio": at_least(
        0.1, "ratio of first-layer gradient norms, deepest to shallowest ReLU network with skip connections"
    ),
    "residual_tanh_gradient_ratio": at_least(
        0.1, "ratio of first-layer gradient norms, deepest to shallowest tanh network with skip connections"
    ),
    "plain_error": at_least(1e-2, "mean squared error of a deep plain network on x + 0.1 sin x"),
    "residual_error": at_most(1e-3, "mean squared error of a deep network with skip connections on x + 0.1 sin x"),
    "bottleneck_error": at_least(0.05, "fraction of the variance lost in a bottleneck of one unit"),
    "bottleneck_error_with_skip": at_most(
        0.01, "fraction of the variance lost with a skip connection around the bottleneck"
    ),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 15, "num_networks": 2, "depths": (4, 16)}, "gpu": {}}

ACTIVATIONS: dict[str, Activation] = {"sigmoid": sigmoid, "tanh": tanh, "ReLU": relu}


@dataclass(frozen=True)
class Experiment:
    depths: tuple[Positive[int], ...] = (2, 4, 8, 16, 32, 64)  # numbers of hidden layers; a block has two
    width: Positive[int] = 32  # units per hidden layer
    num_networks: Positive[int] = 10  # networks over which gradients are averaged
    steps: Positive[int] = 400  # gradient steps per trained network
    num_blocks: Positive[int] = 12  # blocks of the networks fitted to x + 0.1 sin x
    learning_rate: Positive[float] = 3e-3  # learning rate of Adam

    def __call__(self, run: Run) -> dict[str, float]:
        gradient_norms = {
            kind: {name: self.first_layer_gradient_norms(build, activation) for name, activation in ACTIVATIONS.items()}
            for kind, build in (("plain", self.plain), ("residual", self.residual))
        }
        run.figure(
            "gradient of the first layer",
            self.plot_by_depth(gradient_norms),
            "Norm of the gradient of the loss with respect to the weights of the first layer; Xavier initialisation "
            f"with gain 1, width {self.width}, geometric mean over {self.num_networks} networks. It decreases with "
            "depth in plain networks (dashed), but not with skip connections (solid); with ReLU it grows, since every "
            "block adds to its input.",
        )
        x = torch.linspace(-3, 3, 100, device=run.device)[:, None]
        y = x + 0.1 * torch.sin(x)
        fits = {kind: self.fit_near_identity(run, kind, x, y) for kind in ("plain", "residual")}
        errors = {kind: float(mean_squared_error(fit, y)) for kind, fit in fits.items()}
        run.figure(
            "near-identity map",
            plot_near_identity(x, y, fits),
            f"Fits of x + 0.1 sin x with {self.num_blocks} blocks after {self.steps} steps of Adam; right: "
            "output minus x.",
        )
        points = moons(400, noise=0.1, seed=run.seed).x.to(run.device)
        points = (points - points.mean(0)) / points.std(0)
        reconstructions = {kind: self.fit_bottleneck(run, kind, points) for kind in ("plain", "residual")}
        lost = {kind: float(mean_squared_error(fit, points)) / 2 for kind, fit in reconstructions.items()}
        run.figure(
            "bottleneck of one unit",
            plot_bottleneck(points, reconstructions),
            "Points in the plane, reconstructed by a network whose middle layer has one unit: the outputs lie on a "
            "curve unless a skip connection bypasses the bottleneck.",
        )
        ratio = {
            kind: {name: float(g[-1] / g[0]) for name, g in norms.items()} for kind, norms in gradient_norms.items()
        }
        plain, skips = ratio["plain"], ratio["residual"]
        run.note(
            "summary",
            f"From {self.depths[0]} to {self.depths[-1]} layers the gradient of the first layer changes by a factor of "
            f"{plain['sigmoid']:.0e} with the sigmoid, {plain['ReLU']:.0e} with ReLU, {plain['tanh']:.2f} with tanh; "
            f"with skip connections by {skips['sigmoid']:.2g}, {skips['ReLU']:.1e} and {skips['tanh']:.2g}. A residual "
            "block with small weights is close to the identity: x + 0.1 sin x is fitted with a mean squared error of "
            f"{errors['residual']:.0e} with skip connections and {errors['plain']:.2f} without.\n\n"
            "Skip connections are no guarantee: gradients still vanish if blocks learn to cancel their input, and grow "
            "if blocks only add to it.",
        )
        return {
            "plain_sigmoid_gradient_ratio": plain["sigmoid"],
            "plain_relu_gradient_ratio": plain["ReLU"],
            "plain_tanh_gradient_ratio": plain["tanh"],
            "residual_sigmoid_gradient_ratio": skips["sigmoid"],
            "residual_relu_gradient_ratio": skips["ReLU"],
            "residual_tanh_gradient_ratio": skips["tanh"],
            "plain_error": errors["plain"],
            "residual_error": errors["residual"],
            "bottleneck_error": lost["plain"],
            "bottleneck_error_with_skip": lost["residual"],
        }

    def plain(self, depth: int, activation: Activation) -> nn.Sequential:
        sizes = (8, *[self.width] * (depth + 1), 1)
        return mlp(sizes, activation=activation, initialise=xavier_normal())

    def residual(self, depth: int, activation: Activation) -> nn.Sequential:
        blocks = depth // 2
        return residual_mlp(8, 1, width=self.width, blocks=blocks, activation=activation, initialise=xavier_normal())

    def first_layer_gradient_norms(
        self, build: Callable[[int, Activation], nn.Module], activation: Activation
    ) -> Tensor:
        norms = []
        for depth in self.depths:
            logs = []
            for _ in range(self.num_networks):
                network = build(depth, activation).double()
                loss = (network(torch.randn(64, 8, dtype=torch.float64)) - 1).square().mean()
                (gradient,) = torch.autograd.grad(loss, network.get_parameter("0.weight"))
                logs.append(gradient.square().sum().log() / 2)
            norms.append(torch.stack(logs).mean().exp())
        return torch.stack(norms)

    def plot_by_depth(self, gradient_norms: dict[str, dict[str, Tensor]]) -> "Figure":
        figure, axes = subplots(size=(7.2, 4.2))
        ax = axes[0, 0]
        for kind, style in (("residual", "-"), ("plain", "--")):
            for (name, values), colour in zip(gradient_norms[kind].items(), PALETTE, strict=False):
                ax.plot(self.depths, values, style, marker="o", markersize=4, color=colour, label=f"{kind}, {name}")
        ax.set(xscale="log", yscale="log", xlabel="hidden layers", ylabel="gradient norm of the first layer")
        ax.set_xticks(self.depths, [str(depth) for depth in self.depths])
        ax.minorticks_off()
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        return figure

    def fit_near_identity(self, run: Run, kind: str, x: Tensor, y: Tensor) -> Tensor:
        def build_block() -> nn.Module:
            body = mlp((1, 16, 1), activation=tanh)
            return Residual(body) if kind == "residual" else body

        network = nn.Sequential(*(build_block() for _ in range(self.num_blocks)))
        return self.train(run, f"near_identity/{kind}", network, x, y)

    def fit_bottleneck(self, run: Run, kind: str, points: Tensor) -> Tensor:
        body = mlp((2, self.width, 1, self.width, 2), activation=tanh)
        return self.train(run, f"bottleneck/{kind}", Residual(body) if kind == "residual" else body, points, points)

    def train(self, run: Run, name: str, network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        network, optimizer = run.prepare(network, partial(Adam, lr=self.learning_rate))
        for step, _ in run.steps(self.steps):
            loss = mean_squared_error(network(x), y)
            run.update(optimizer, loss)
            run.log(step, **{name: loss.detach()})
        with torch.no_grad():
            fitted: Tensor = network(x)
        return fitted


def plot_near_identity(x: Tensor, y: Tensor, fits: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    x, y = x.cpu()[:, 0], y.cpu()[:, 0]
    for (kind, fit), colour in zip(fits.items(), PALETTE, strict=False):
        axes[0, 0].plot(x, fit.cpu()[:, 0], color=colour, label=kind)
        axes[0, 1].plot(x, fit.cpu()[:, 0] - x, color=colour)
    axes[0, 0].plot(x, y, color=INK, linestyle=":", linewidth=1.4, label="target")
    axes[0, 1].plot(x, y - x, color=INK, linestyle=":", linewidth=1.4)
    axes[0, 0].set(xlabel="x", ylabel="output")
    axes[0, 1].set(xlabel="x", ylabel="output − x", ylim=(-0.5, 0.5))
    axes[0, 0].legend()
    return figure


def plot_bottleneck(points: Tensor, reconstructions: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, 3, size=(10.0, 3.6))
    clouds = {
        "data": points,
        "without skip": reconstructions["plain"],
        "with skip connection": reconstructions["residual"],
    }
    for ax, (title, cloud), colour in zip(axes[0], clouds.items(), (INK, *PALETTE), strict=False):
        ax.scatter(cloud[:, 0].cpu(), cloud[:, 1].cpu(), s=8, color=colour, linewidths=0)
        ax.set(title=title, xlim=(-2.5, 2.5), ylim=(-2.5, 2.5))
        ax.set_aspect("equal")
    return figure
