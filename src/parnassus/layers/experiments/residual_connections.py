"""What skip connections do for deep networks: gradients, near-identities, narrow passages (Diehl sec. 1.6)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data.toy import moons
from parnassus.layers import Activation, Residual, mlp, relu, residual_mlp, sigmoid, tanh, xavier_normal
from parnassus.losses import mean_squared_error
from parnassus.report import INK, PALETTE, subplots
from parnassus.train import Run, at_least, at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("D1.6.3", "D1.6.4")
expected = {
    "plain_sigmoid_gradient": at_most(1e-30, "first layer's gradient in the deepest plain network over the shallowest"),
    "plain_relu_gradient": at_most(1e-6, "the same with ReLU"),
    "plain_tanh_gradient": at_most(0.5, "the same with tanh, for which this start is about the best"),
    "residual_sigmoid_gradient": at_least(0.1, "the same with the sigmoid and skips"),
    "residual_relu_gradient": at_least(0.1, "the same with ReLU and skips"),
    "residual_tanh_gradient": at_least(0.1, "the same with tanh and skips"),
    "plain_error": at_least(1e-2, "squared error of a deep plain network on x + 0.1 sin x"),
    "residual_error": at_most(1e-3, "the same with skips"),
    "narrow_error": at_least(0.05, "share of the plane's variance lost in a passage of one unit"),
    "narrow_error_with_skip": at_most(0.01, "the same with a skip round it"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 15, "draws": 2, "depths": (4, 16)}, "gpu": {}}

ACTIVATIONS: dict[str, Activation] = {"sigmoid": sigmoid, "tanh": tanh, "ReLU": relu}


@dataclass(frozen=True)
class Experiment:
    depths: tuple[int, ...] = (2, 4, 8, 16, 32, 64)  # hidden layers; two make a block
    width: int = 32  # units in each
    draws: int = 10  # networks of each kind whose gradients are averaged
    steps: int = 400  # gradient steps of each network that is trained
    blocks: int = 12  # blocks of the networks that learn x + 0.1 sin x
    rate: float = 3e-3  # learning rate of Adam

    def __call__(self, run: Run) -> dict[str, float]:
        lengths = {
            kind: {name: self.first_gradients(build, activation) for name, activation in ACTIVATIONS.items()}
            for kind, build in (("plain", self.plain), ("residual", self.residual))
        }
        run.figure(
            "gradient of the first layer",
            self.by_depth(lengths),
            f"Length of the loss's gradient in the weights of the first layer; Xavier start of gain 1, {self.width} "
            f"units wide, geometric mean of {self.draws} networks. Plain networks (dashed) lose it with depth; with "
            "skips (solid) it stays, and with ReLU it grows, since every block adds to what it is given.",
        )
        x = torch.linspace(-3, 3, 100, device=run.device)[:, None]
        y = x + 0.1 * torch.sin(x)
        fits = {kind: self.near_identity(run, kind, x, y) for kind in ("plain", "residual")}
        errors = {kind: float(mean_squared_error(fit, y)) for kind, fit in fits.items()}
        run.figure(
            "a map near the identity",
            near_identity_figure(x, y, fits),
            f"x + 0.1 sin x after {self.steps} steps of Adam, with {self.blocks} blocks: right, what is left when x is "
            "taken away.",
        )
        points = moons(400, noise=0.1, seed=run.seed).x.to(run.device)
        points = (points - points.mean(0)) / points.std(0)
        copies = {kind: self.through_one_unit(run, kind, points) for kind in ("plain", "residual")}
        lost = {kind: float(mean_squared_error(copy, points)) / 2 for kind, copy in copies.items()}
        run.figure(
            "a passage of one unit",
            passage_figure(points, copies),
            "Points of the plane copied by a network whose middle layer is one unit: what comes out is a curve, unless "
            "a skip leads round it.",
        )
        ratio = {kind: {name: float(g[-1] / g[0]) for name, g in found.items()} for kind, found in lengths.items()}
        plain, skips = ratio["plain"], ratio["residual"]
        run.note(
            "what to see",
            f"From {self.depths[0]} to {self.depths[-1]} layers the first gradient changes by a factor of "
            f"{plain['sigmoid']:.0e} with the sigmoid, {plain['ReLU']:.0e} with ReLU, {plain['tanh']:.2f} with tanh; "
            f"with skips by {skips['sigmoid']:.2g}, {skips['ReLU']:.1e} and {skips['tanh']:.2g}. A block that begins "
            f"near zero begins near the identity, which is why x + 0.1 sin x is learned to {errors['residual']:.0e} "
            f"with skips and to {errors['plain']:.2f} without.\n\n"
            "No skip is a guarantee: blocks that learn to cancel their input let gradients vanish all the same, and "
            "blocks that only add let them grow.",
        )
        return {
            "plain_sigmoid_gradient": plain["sigmoid"],
            "plain_relu_gradient": plain["ReLU"],
            "plain_tanh_gradient": plain["tanh"],
            "residual_sigmoid_gradient": skips["sigmoid"],
            "residual_relu_gradient": skips["ReLU"],
            "residual_tanh_gradient": skips["tanh"],
            "plain_error": errors["plain"],
            "residual_error": errors["residual"],
            "narrow_error": lost["plain"],
            "narrow_error_with_skip": lost["residual"],
        }

    def plain(self, depth: int, activation: Activation) -> nn.Sequential:
        sizes = (8, *[self.width] * (depth + 1), 1)
        return mlp(sizes, activation=activation, initialise=xavier_normal())

    def residual(self, depth: int, activation: Activation) -> nn.Sequential:
        blocks = depth // 2
        return residual_mlp(8, 1, width=self.width, blocks=blocks, activation=activation, initialise=xavier_normal())

    def first_gradients(self, build: Callable[[int, Activation], nn.Module], activation: Activation) -> Tensor:
        lengths = []
        for depth in self.depths:
            logs = []
            for _ in range(self.draws):
                network = build(depth, activation).double()
                loss = (network(torch.randn(64, 8, dtype=torch.float64)) - 1).square().mean()
                (slope,) = torch.autograd.grad(loss, network.get_parameter("0.weight"))
                logs.append(slope.square().sum().log() / 2)
            lengths.append(torch.stack(logs).mean().exp())
        return torch.stack(lengths)

    def by_depth(self, lengths: dict[str, dict[str, Tensor]]) -> "Figure":
        figure, axes = subplots(size=(7.2, 4.2))
        ax = axes[0, 0]
        for kind, style in (("residual", "-"), ("plain", "--")):
            for (name, values), colour in zip(lengths[kind].items(), PALETTE, strict=False):
                ax.plot(self.depths, values, style, marker="o", markersize=4, color=colour, label=f"{kind}, {name}")
        ax.set(xscale="log", yscale="log", xlabel="hidden layers", ylabel="length of the first layer's gradient")
        ax.set_xticks(self.depths, [str(depth) for depth in self.depths])
        ax.minorticks_off()
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        return figure

    def near_identity(self, run: Run, kind: str, x: Tensor, y: Tensor) -> Tensor:
        def block() -> nn.Module:
            body = mlp((1, 16, 1), activation=tanh)
            return Residual(body) if kind == "residual" else body

        network = nn.Sequential(*(block() for _ in range(self.blocks)))
        return self.train(run, f"near_identity/{kind}", network, x, y)

    def through_one_unit(self, run: Run, kind: str, points: Tensor) -> Tensor:
        body = mlp((2, self.width, 1, self.width, 2), activation=tanh)
        return self.train(run, f"one_unit/{kind}", Residual(body) if kind == "residual" else body, points, points)

    def train(self, run: Run, name: str, network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        network, optimizer = run.prepare(network, partial(Adam, lr=self.rate))
        for step, _ in run.steps(self.steps):
            loss = mean_squared_error(network(x), y)
            run.update(optimizer, loss)
            run.log(step, **{name: loss.detach()})
        with torch.no_grad():
            fitted: Tensor = network(x)
        return fitted


def near_identity_figure(x: Tensor, y: Tensor, fits: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, 2, size=(10.0, 3.8))
    x, y = x.cpu()[:, 0], y.cpu()[:, 0]
    for (kind, fit), colour in zip(fits.items(), PALETTE, strict=False):
        axes[0, 0].plot(x, fit.cpu()[:, 0], color=colour, label=kind)
        axes[0, 1].plot(x, fit.cpu()[:, 0] - x, color=colour)
    axes[0, 0].plot(x, y, color=INK, linestyle=":", linewidth=1.4, label="wanted")
    axes[0, 1].plot(x, y - x, color=INK, linestyle=":", linewidth=1.4)
    axes[0, 0].set(xlabel="x", ylabel="output")
    axes[0, 1].set(xlabel="x", ylabel="output less x", ylim=(-0.5, 0.5))
    axes[0, 0].legend()
    return figure


def passage_figure(points: Tensor, copies: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, 3, size=(10.0, 3.6))
    shown = {"the points": points, "through one unit": copies["plain"], "with a skip round it": copies["residual"]}
    for ax, (title, cloud), colour in zip(axes[0], shown.items(), (INK, *PALETTE), strict=False):
        ax.scatter(cloud[:, 0].cpu(), cloud[:, 1].cpu(), s=8, color=colour, linewidths=0)
        ax.set(title=title, xlim=(-2.5, 2.5), ylim=(-2.5, 2.5))
        ax.set_aspect("equal")
    return figure
