"""How tangent kernels of random networks gather around their limit, and what the limit looks like (book sec. 15.4)."""

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.kernels import ReLU, layer_kernels, layerwise_ntk, random_weights, signals, width_exponent
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.train import Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.4-1", "B15.4-10", "B15.4-11")
expected = {
    "deviation_exponent": between(-0.65, -0.48, "power of the width with which entries scatter; −½"),
    "bias_narrowest": between(0.0, 0.5, "mean of K(x, x') less its limit at the smallest width"),
    "bias_widest": between(-0.1, 0.1, "the same at the largest width"),
    "diagonal_error": at_most(0.3, "largest distance of the mean of K(x, x) from L + 1"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"widths": (8, 32), "draws": 200},
    "gpu": {"widths": (8, 32, 128, 512, 2_048)},
}


@dataclass(frozen=True)
class Experiment:
    widths: tuple[int, ...] = (8, 32, 128, 256)  # units of every hidden layer
    depth: int = 3  # hidden layers L
    draws: int = 4_000  # networks at the smallest width; fewer where they are wide
    cosine: float = 0.6  # between the two inputs

    def __call__(self, run: Run) -> dict[str, float]:
        pair = torch.tensor([[1.0, 0.0], [self.cosine, (1 - self.cosine**2) ** 0.5]], dtype=torch.float64)
        limit = float(layer_kernels(self.depth, ReLU(), pair).ntk()[0, 1])
        kernels = {width: self.kernels(pair, width, run) for width in self.widths}
        run.figure(
            "entries",
            entries_figure({width: found[:, 0, 1] for width, found in kernels.items()}, limit),
            f"K(x, x') of random ReLU networks with {self.depth} hidden layers; the line is the limit {limit:.4f}.",
        )
        deviations = [float(found[:, 0, 1].std()) for found in kernels.values()]
        biases = [float(found[:, 0, 1].mean()) - limit for found in kernels.values()]
        guide = [deviations[0] * (width / self.widths[0]) ** -0.5 for width in self.widths]
        run.figure(
            "scatter against width",
            curves(
                {
                    "deviation of K(x, x')": (self.widths, deviations),
                    "one over the root of the width": (self.widths, guide),
                },
                x_label="units of each layer",
                y_label="deviation",
                log_x=True,
                log_y=True,
            ),
            "Entries scatter as one over the root of the width.",
        )
        run.figure(
            "the limit",
            limits_figure((1, self.depth, 10)),
            "Covariances Σ^L and tangent kernels K*/(L + 1) between all angles of the circle, in one scale. Depth "
            "makes Σ^L flat, for all inputs become alike; K* keeps a ridge on its diagonal.",
        )
        own = [float(found[:, 0, 0].mean()) for found in kernels.values()]
        rows = [
            {"width": width, "networks": len(found), "E K(x, x)": a, "E K(x, x') − K*": b, "deviation": c}
            for (width, found), a, b, c in zip(kernels.items(), own, biases, deviations, strict=True)
        ]
        run.table("means and deviations", rows, f"Limits: K(x, x) = {self.depth + 1}, K(x, x') = {limit:.4f}.")
        run.note(
            "what to see",
            "Narrow networks have kernels with a long tail to the right and a mean above the limit, by an amount that "
            "falls as one over the width; the diagonal's mean is exact at every width, as rectifiers are homogeneous.",
        )
        return {
            "deviation_exponent": width_exponent(self.widths, deviations),
            "bias_narrowest": biases[0],
            "bias_widest": biases[-1],
            "diagonal_error": max(abs(mean - self.depth - 1) for mean in own),
        }

    def kernels(self, pair: Tensor, width: int, run: Run) -> Tensor:
        """Kernels of many networks, in parts that memory holds."""
        draws = max(min(self.draws, 600), round(self.draws * self.widths[0] / width))
        part = max(1, min(draws, 4_000_000 // (self.depth * width**2)))
        source = torch.Generator().manual_seed(1_000 * run.seed + width)
        sizes = (2, *[width] * self.depth, 1)
        found: list[Tensor] = []
        for start in range(0, draws, part):
            weights = random_weights(sizes, draws=(min(part, draws - start),), generator=source)
            found.append(layerwise_ntk(signals(weights, pair, ReLU())))
        return torch.cat(found)


def entries_figure(entries: dict[int, Tensor], limit: float) -> "Figure":
    figure, axes = subplots(1, len(entries), size=(2.7 * len(entries), 3.0))
    for ax, (width, values), colour in zip(axes[0], entries.items(), PALETTE, strict=False):
        shown = values[values <= values.quantile(0.98)]  # a few narrow networks are far out
        ax.hist(shown, bins=30, density=True, color=colour, alpha=0.6)
        ax.axvline(limit, color=INK, linestyle="--", linewidth=1.2)
        ax.set(title=f"width {width}", xlabel="K(x, x')", yticks=[])
    axes[0, 0].set_ylabel("density")
    return figure


def limits_figure(depths: tuple[int, ...]) -> "Figure":
    angle = torch.linspace(-pi, pi, 121, dtype=torch.float64)
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    figure, axes = subplots(2, len(depths), size=(3.2 * len(depths) + 0.6, 6.0))
    for column, depth in enumerate(depths):
        kernels = layer_kernels(depth, ReLU(), circle)
        for row, (name, matrix) in enumerate(
            {f"Σ, L = {depth}": kernels.values[-1], f"K*/(L + 1), L = {depth}": kernels.ntk() / (depth + 1)}.items()
        ):
            ax = axes[row, column]
            picture = ax.imshow(
                matrix.numpy(), cmap="viridis", vmin=0, vmax=1, extent=(-pi, pi, -pi, pi), origin="lower"
            )
            ax.grid(visible=False)
            ax.set_title(name)
            ax.set_xticks([-pi, 0, pi], ["−π", "0", "π"])
            ax.set_yticks([-pi, 0, pi], ["−π", "0", "π"])
            ax.tick_params(labelbottom=row == 1, labelleft=column == 0)
    for edge in (*(ax.xaxis for ax in axes[1]), *(ax.yaxis for ax in axes[:, 0])):
        edge.set_label_text("angle")
    figure.colorbar(picture, ax=axes, shrink=0.7).outline.set_visible(False)
    return figure
