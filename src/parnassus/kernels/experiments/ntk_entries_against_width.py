"""Empirical NTK entries of random networks converge to the limit with growing width (book sec. 15.4)."""

from dataclasses import dataclass
from math import pi
from typing import TYPE_CHECKING, Annotated

import torch
from torch import Tensor

from parnassus.kernels import ReLU, layer_kernels, layerwise_ntk, propagate_signals, random_weights, width_exponent
from parnassus.report import INK, PALETTE, curves, subplots
from parnassus.train import Between, Positive, Run, at_most, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.4-1", "B15.4-10", "B15.4-11")
expected = {
    "deviation_exponent": between(-0.65, -0.48, "exponent of the entries' standard deviation in the width; theory: −½"),
    "bias_narrowest": between(0.0, 0.5, "mean of K(x, x') minus its limit at the smallest width"),
    "bias_widest": between(-0.1, 0.1, "mean of K(x, x') minus its limit at the largest width"),
    "diagonal_error": at_most(0.3, "maximum distance of the mean of K(x, x) from L + 1"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"widths": (8, 32), "num_networks": 200},
    "gpu": {"widths": (8, 32, 128, 512, 2_048)},
}


@dataclass(frozen=True)
class Experiment:
    widths: tuple[Positive[int], ...] = (8, 32, 128, 256)  # widths of the hidden layers
    num_layers: Positive[int] = 3  # hidden layers L
    num_networks: Positive[int] = 4_000  # networks at the smallest width; fewer at larger widths
    cosine: Annotated[float, Between(-1.0, 1.0)] = 0.6  # cosine of the angle between the two inputs

    def __call__(self, run: Run) -> dict[str, float]:
        pair = torch.tensor([[1.0, 0.0], [self.cosine, (1 - self.cosine**2) ** 0.5]], dtype=torch.float64)
        limit = float(layer_kernels(self.num_layers, ReLU(), pair).ntk()[0, 1])
        kernels = {width: self.sample_kernels(pair, width, run) for width in self.widths}
        run.figure(
            "entries",
            plot_entries({width: sample[:, 0, 1] for width, sample in kernels.items()}, limit),
            f"K(x, x') of random ReLU networks with {self.num_layers} hidden layers; dashed: the limit {limit:.4f}.",
        )
        deviations = [float(sample[:, 0, 1].std()) for sample in kernels.values()]
        biases = [float(sample[:, 0, 1].mean()) - limit for sample in kernels.values()]
        guide = [deviations[0] * (width / self.widths[0]) ** -0.5 for width in self.widths]
        run.figure(
            "standard deviation against width",
            curves(
                {
                    "standard deviation of K(x, x')": (self.widths, deviations),
                    "∝ 1/√width": (self.widths, guide),
                },
                x_label="width",
                y_label="standard deviation",
                log_x=True,
                log_y=True,
            ),
            "The standard deviation of the entries falls as 1/√width.",
        )
        run.figure(
            "limiting kernels",
            plot_limits((1, self.num_layers, 10)),
            "Covariances Σ^L and tangent kernels K*/(L + 1) between angles on the circle, on one scale. With depth "
            "Σ^L becomes constant, because all correlations tend to 1; K* keeps a ridge on its diagonal.",
        )
        diagonal = [float(sample[:, 0, 0].mean()) for sample in kernels.values()]
        rows = [
            {"width": width, "networks": len(sample), "E K(x, x)": a, "E K(x, x') − K*": b, "std": c}
            for (width, sample), a, b, c in zip(kernels.items(), diagonal, biases, deviations, strict=True)
        ]
        run.table(
            "means and standard deviations", rows, f"Limits: K(x, x) = {self.num_layers + 1}, K(x, x') = {limit:.4f}."
        )
        run.note(
            "results",
            "At small width the distribution of entries has a long right tail and a mean above the limit by "
            "O(1/width); the mean of the diagonal is exact at every width, because ReLU is homogeneous.",
        )
        return {
            "deviation_exponent": width_exponent(self.widths, deviations),
            "bias_narrowest": biases[0],
            "bias_widest": biases[-1],
            "diagonal_error": max(abs(mean - self.num_layers - 1) for mean in diagonal),
        }

    def sample_kernels(self, pair: Tensor, width: int, run: Run) -> Tensor:
        """Kernels of many networks, computed in chunks that fit in memory."""
        draws = max(min(self.num_networks, 600), round(self.num_networks * self.widths[0] / width))
        chunk = max(1, min(draws, 4_000_000 // (self.num_layers * width**2)))
        generator = torch.Generator().manual_seed(1_000 * run.seed + width)
        sizes = (2, *[width] * self.num_layers, 1)
        kernels: list[Tensor] = []
        for start in range(0, draws, chunk):
            weights = random_weights(sizes, draws=(min(chunk, draws - start),), generator=generator)
            kernels.append(layerwise_ntk(propagate_signals(weights, pair, ReLU())))
        return torch.cat(kernels)


def plot_entries(entries: dict[int, Tensor], limit: float) -> "Figure":
    figure, axes = subplots(1, len(entries), size=(2.7 * len(entries), 3.0))
    for ax, (width, values), colour in zip(axes[0], entries.items(), PALETTE, strict=False):
        shown = values[values <= values.quantile(0.98)]  # without outliers of narrow networks
        ax.hist(shown, bins=30, density=True, color=colour, alpha=0.6)
        ax.axvline(limit, color=INK, linestyle="--", linewidth=1.2)
        ax.set(title=f"width {width}", xlabel="K(x, x')", yticks=[])
    axes[0, 0].set_ylabel("density")
    return figure


def plot_limits(depths: tuple[int, ...]) -> "Figure":
    angle = torch.linspace(-pi, pi, 121, dtype=torch.float64)
    circle = torch.stack([angle.cos(), angle.sin()], 1)
    figure, axes = subplots(2, len(depths), size=(3.2 * len(depths) + 0.6, 6.0))
    for column, depth in enumerate(depths):
        kernels = layer_kernels(depth, ReLU(), circle)
        for row, (name, matrix) in enumerate(
            {f"Σ, L = {depth}": kernels.values[-1], f"K*/(L + 1), L = {depth}": kernels.ntk() / (depth + 1)}.items()
        ):
            ax = axes[row, column]
            image = ax.imshow(matrix.numpy(), cmap="viridis", vmin=0, vmax=1, extent=(-pi, pi, -pi, pi), origin="lower")
            ax.grid(visible=False)
            ax.set_title(name)
            ax.set_xticks([-pi, 0, pi], ["−π", "0", "π"])
            ax.set_yticks([-pi, 0, pi], ["−π", "0", "π"])
            ax.tick_params(labelbottom=row == 1, labelleft=column == 0)
    for edge in (*(ax.xaxis for ax in axes[1]), *(ax.yaxis for ax in axes[:, 0])):
        edge.set_label_text("angle (rad)")
    figure.colorbar(image, ax=axes, shrink=0.7).outline.set_visible(False)
    return figure
