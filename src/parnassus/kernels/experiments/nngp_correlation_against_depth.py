"""NNGP correlation of two inputs against depth: to 1 for ReLU, to 0 for odd activations (book sec. 15.3)."""

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.kernels import GELU, Cosine, Erf, LeakyReLU, Nonlinearity, Quadrature, ReLU, Sine, fully_connected
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.report.style import DIVERGING
from parnassus.train import Positive, Run, at_least, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.3-2", "B15.3-4")
expected = {
    "relu_gap_times_depth_squared": between(
        40.0, 46.0, "(1 − ρ) L² at the greatest depth, which tends to 9π²/2 = 44.4"
    ),
    "relu_at_8": at_least(0.8, "minimum correlation of any two inputs after 8 ReLU layers"),
    "erf_at_32": at_most(0.1, "correlation of inputs at cosine 0.6 after 32 layers of erf without bias"),
    "finite_gap": at_most(0.35, "maximum deviation of inner products in a wide random network from the limit"),
    "gelu_fixed_point": no_band("correlation of inputs at cosine 0.6 after 64 layers of GELU"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"width": 100, "max_depth": 500}, "gpu": {}}

SIGMAS: dict[str, Nonlinearity] = {
    "ReLU": ReLU(),
    "leaky ReLU": LeakyReLU(0.3),
    "GELU": GELU(),
    "erf": Erf(),
    "tanh": Quadrature(torch.tanh),
    "sin": Sine(),
    "cos": Cosine(),
    "sigmoid": Quadrature(torch.sigmoid),
}
DEPTHS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Experiment:
    width: Positive[int] = 1_000  # hidden units of the random network compared with the limit
    max_depth: Positive[int] = 2_000  # maximum number of hidden layers

    def __call__(self, run: Run) -> dict[str, float]:
        cosine = torch.linspace(-1, 1, 101, dtype=torch.float64)
        run.figure(
            "correlation against cosine",
            plot_correlation(cosine),
            "Σ^L of two unit inputs against their cosine. Every ReLU layer increases it, even for opposite inputs; "
            "odd activations without bias decrease it towards 0 and keep ±x opposite.",
        )
        run.figure(
            "kernels on a circle",
            plot_kernel(),
            "Σ^L between points of a circle: ReLU's kernel tends to a constant, erf's to the diagonal and the "
            "antipodal diagonal.",
        )
        depths = sorted({int(depth) for depth in torch.logspace(0, torch.tensor(float(self.max_depth)).log10(), 16)})
        pair = unit_vectors_at_cosine(torch.tensor([0.6], dtype=torch.float64))
        gaps = [1 - float(fully_connected(depth, ReLU()).nngp(*pair)) for depth in depths]
        lines = {"ReLU": (depths, gaps), "9π²/2L²": (depths, [9 * pi**2 / 2 / depth**2 for depth in depths])}
        figure = curves(lines, x_label="hidden layers L", y_label="1 − correlation", log_x=True, log_y=True)
        run.figure("convergence to one", figure, "The correlation of inputs at cosine 0.6 tends to 1 as 1 − 9π²/2L².")
        finite, limit = self.compare_network(cosine)
        run.figure(
            "inner products in one wide network",
            curves(
                {"limit": (cosine, limit), f"width {self.width:,}": (cosine, finite)},
                x_label="cosine of the inputs",
                y_label="⟨g(x), g(x′)⟩ after four layers",
            ),
            "Inner products in one random ReLU network and the limit; they differ by O(1/√width).",
        )
        rows: list[dict[str, str | float]] = []
        for name, sigma in SIGMAS.items():
            ends = {f"L = {depth}": float(fully_connected(depth, sigma).nngp(*pair)) for depth in (*DEPTHS, 32)}
            rows.append({"σ": name, **ends})
        run.table(
            "correlations at cosine 0.6",
            rows,
            "Correlation after L layers, each scaled by c_σ so that unit inputs keep norm 1.",
        )
        relu_8 = fully_connected(8, ReLU()).nngp(*unit_vectors_at_cosine(cosine))
        return {
            "relu_gap_times_depth_squared": gaps[-1] * depths[-1] ** 2,
            "relu_at_8": float(relu_8.min()),
            "erf_at_32": float(fully_connected(32, Erf()).nngp(*pair)),
            "finite_gap": float((finite - limit).abs().max()),
            "gelu_fixed_point": float(fully_connected(64, GELU()).nngp(*pair)),
        }

    @torch.no_grad()
    def compare_network(self, cosine: Tensor) -> tuple[Tensor, Tensor]:
        """⟨g⁴(x), g⁴(x')⟩ of one random network and its limit, by the cosine."""
        network = fully_connected(4, ReLU())
        left, right = unit_vectors_at_cosine(cosine)
        hidden = network.module((2,), self.width).double()[:-1]
        scale = (2 / self.width) ** 0.5
        return (scale * hidden(left)) @ (scale * hidden(right))[0], network.nngp(left, right)[:, 0]


def unit_vectors_at_cosine(cosine: Tensor) -> tuple[Tensor, Tensor]:
    """Unit vectors with these cosines to (1, 0), and (1, 0) itself."""
    points = torch.stack([cosine, (1 - cosine.square()).clamp(min=0).sqrt()], 1)
    return points, torch.tensor([[1.0, 0.0]], dtype=cosine.dtype)


def plot_correlation(cosine: Tensor) -> "Figure":
    left, right = unit_vectors_at_cosine(cosine)
    figure, axes = subplots(2, 4, size=(11.0, 5.6))
    for ax in axes[0]:
        ax.tick_params(labelbottom=False)
    for ax in axes[:, 1:].flat:
        ax.tick_params(labelleft=False)
    for ax, (name, sigma) in zip(axes.flat, SIGMAS.items(), strict=True):
        ax.plot(cosine, cosine, color=FAINT, linestyle="--", linewidth=1)
        for depth, colour in zip(DEPTHS, PALETTE, strict=False):
            ax.plot(cosine, fully_connected(depth, sigma).nngp(left, right)[:, 0], color=colour, label=f"L = {depth}")
        ax.set(title=name, ylim=(-1.05, 1.05))
    for ax in axes[1]:
        ax.set_xlabel("cosine")
    for ax in axes[:, 0]:
        ax.set_ylabel("Σ$^L$")
    axes[0, 0].legend(loc="lower right")
    return figure


def plot_kernel() -> "Figure":
    angle = torch.linspace(-pi, pi, 121, dtype=torch.float64)
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    figure, axes = subplots(2, 4, size=(11.0, 5.2))
    for row, name in zip(axes, ("ReLU", "erf"), strict=True):
        for ax, depth in zip(row, (1, 4, 16, 64), strict=True):
            image = ax.imshow(
                fully_connected(depth, SIGMAS[name]).nngp(circle).numpy(),
                cmap=DIVERGING,
                vmin=-1,
                vmax=1,
                extent=(-180, 180, -180, 180),
                origin="lower",
            )
            ax.grid(visible=False)
            ax.set(title=f"{name}, L = {depth}", xticks=[-180, 0, 180], yticks=[-180, 0, 180])
            ax.tick_params(labelbottom=name == "erf", labelleft=ax is row[0])
        row[0].set_ylabel("angle (degrees)")
    for ax in axes[1]:
        ax.set_xlabel("angle (degrees)")
    figure.colorbar(image, ax=axes.ravel().tolist(), shrink=0.8).outline.set_visible(False)
    return figure
