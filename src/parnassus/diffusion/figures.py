"""Figures of diffusion models: chains, score fields, samples, their nearest images and their quality."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.diffusion.samplers.image_sampling import to_pixels
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture
from parnassus.diffusion.scores.score_matching import ScoreFunction
from parnassus.report import FAINT, INK, PALETTE, image_grid, show_image, subplots
from parnassus.report.formulas import to_mathtext
from parnassus.report.line_panels import panels
from parnassus.report.style import as_array, remove_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPACING = 1.45  # from one image of a chain to the next, in widths of an image


def plot_samples(samples: Tensor, classes: Sequence[str]) -> "Figure":
    """Up to eight rows of images in [−1, 1]; with 2 to 12 classes, a column for each."""
    by_class = 2 <= len(classes) <= 12
    columns = len(classes) if by_class else 10
    return image_grid(to_pixels(samples[: 8 * columns]), columns=columns, titles=classes if by_class else None)


def plot_nearest(samples: Tensor, training: Tensor) -> "Figure":
    """Samples in [−1, 1] above the training images nearest to them."""
    nearest = training[torch.cdist(samples.flatten(1), training.flatten(1)).argmin(1)]
    pairs = to_pixels(torch.cat([samples, nearest]))
    return image_grid(pairs, columns=len(samples), row_labels=("sample", "training image"))


def plot_image_chain(images: object, *, names: Sequence[str], forward: str, backward: str) -> "Figure":
    """Images (n, channels, height, width) in a row, with arrows in both directions (book fig. 13.4)."""
    pictures = as_array(images)
    if pictures.ndim != 4 or len(pictures) < 2 or len(names) != len(pictures):
        raise ValueError(
            f"images must have shape (n ≥ 2, channels, height, width), with one name each; got {pictures.shape} "
            f"and {len(names)} names"
        )
    height = pictures.shape[2] / pictures.shape[3]
    width = SPACING * (len(pictures) - 1) + 1
    figure, axes = subplots(size=(9.0, 9.0 / (width + 0.2) * (height + 1.9)))
    ax = axes[0, 0]
    remove_frame(ax)
    for index, (picture, name) in enumerate(zip(pictures, names, strict=True)):
        inset = ax.inset_axes((SPACING * index, 0, 1, height), transform=ax.transData)
        show_image(inset, picture)
        remove_frame(inset)
        ax.text(SPACING * index + 0.5, -0.08, to_mathtext(name), ha="center", va="top")
    for index in range(len(pictures) - 1):
        left, right = SPACING * index + 0.5, SPACING * (index + 1) + 0.5
        _draw_arrow(ax, (left, height + 0.06), (right, height + 0.06), PALETTE[0])
        _draw_arrow(ax, (right, -0.42), (left, -0.42), PALETTE[1])
    ax.text(width / 2, height + 0.56, to_mathtext(forward), ha="center", va="bottom", color=INK)
    ax.text(width / 2, -0.92, to_mathtext(backward), ha="center", va="top", color=INK)
    ax.set_xlim(-0.1, width + 0.1)
    ax.set_ylim(-1.15, height + 0.75)
    ax.set_aspect("equal")
    return figure


def _draw_arrow(ax: "Axes", start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    """An arc to the left of its direction of travel."""
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "connectionstyle": "arc3,rad=-0.35"}
    ax.annotate("", xy=end, xytext=start, arrowprops=style)


def plot_score_field(
    ax: "Axes", truth: IsotropicMixture, field: ScoreFunction, *, limit: float = 3.2, noise: float = 0.0
) -> None:
    """A score field as arrows over the true one, scaled by square roots, on level lines of the density."""
    axis = torch.linspace(-limit, limit, 17)
    grid = torch.cartesian_prod(axis, axis).flip(1)
    points = grid.to(truth.means)
    fine = torch.linspace(-limit, limit, 80)
    density = truth.log_prob(torch.cartesian_prod(fine, fine).flip(1).to(points), 1.0, noise).view(80, 80).cpu()
    top = float(density.max())
    ax.contour(
        fine,
        fine,
        density,
        levels=[top - d for d in (8.0, 4.5, 2.0, 0.5)],
        colors=FAINT,
        linewidths=0.7,
        linestyles="solid",
    )
    with torch.no_grad():
        true, learned = truth.score(points, 1.0, noise).cpu(), field(points).cpu()
    longest = true.norm(dim=1).max().sqrt()
    for arrows, colour, width in ((true, FAINT, 0.006), (learned, PALETTE[0], 0.004)):
        length = arrows.norm(dim=1, keepdim=True).clamp(min=1e-6)
        scaled = arrows / length.sqrt() / longest  # square roots keep far arrows from covering the rest
        ax.quiver(
            grid[:, 0], grid[:, 1], scaled[:, 0], scaled[:, 1], color=colour, angles="xy", width=width, scale=11.0
        )
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit), xticks=[], yticks=[], aspect="equal")
    ax.grid(visible=False)


def plot_columns(
    rows: Sequence[Mapping[str, float | int]], groups: Mapping[str, Sequence[str]], *, over: str
) -> "Figure":
    """Columns of a table, grouped into charts, over its column `over`; the vertical axes include 0."""
    sizes = [row[over] for row in rows]
    charts = {title: {name: [row[name] for row in rows] for name in names} for title, names in groups.items()}
    figure, axes = panels(charts, sizes, x_label=over)
    for ax, lines in zip(axes[0], charts.values(), strict=True):
        ax.set_xticks(sizes, [f"{size:g}" for size in sizes], minor=False)
        heights = [value for line in lines.values() for value in line]
        ax.set_ylim(min(0.0, *heights), 1.08 * max(1e-6, *heights))
    return figure
