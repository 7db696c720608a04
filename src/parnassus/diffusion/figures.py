"""Figures and image samples of diffusion models: chains, score fields, samples and their nearest images."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from parnassus.diffusion.guidance import clip_x0
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.samplers.image_sampling import SAMPLER_PATHS, to_pixels
from parnassus.diffusion.samplers.time_steps import even_grid, last_state
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture
from parnassus.diffusion.scores.score_matching import Score
from parnassus.report import FAINT, INK, PALETTE, image_grid, show_image, subplots
from parnassus.report.formulas import to_mathtext
from parnassus.report.style import as_array, remove_frame
from parnassus.train import NonNegative, Positive

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
    return image_grid(pairs, columns=len(samples), row_labels=("sample", "nearest real"))


def plot_image_chain(images: object, *, names: Sequence[str], forward: str, backward: str) -> "Figure":
    """Images (n, channels, height, width) in a row, with arrows in both directions (book fig. 13.4)."""
    panels = as_array(images)
    if panels.ndim != 4 or len(panels) < 2 or len(names) != len(panels):
        raise ValueError(
            f"images must have shape (n ≥ 2, channels, height, width), with one name each; got {panels.shape} "
            f"and {len(names)} names"
        )
    height = panels.shape[2] / panels.shape[3]
    width = SPACING * (len(panels) - 1) + 1
    figure, axes = subplots(size=(9.0, 9.0 / (width + 0.2) * (height + 1.9)))
    ax = axes[0, 0]
    remove_frame(ax)
    for index, (panel, name) in enumerate(zip(panels, names, strict=True)):
        inset = ax.inset_axes((SPACING * index, 0, 1, height), transform=ax.transData)
        show_image(inset, panel)
        remove_frame(inset)
        ax.text(SPACING * index + 0.5, -0.08, to_mathtext(name), ha="center", va="top")
    for index in range(len(panels) - 1):
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
    ax: "Axes", truth: IsotropicMixture, field: Score, *, reach: float = 3.2, noise: float = 0.0
) -> None:
    """A score field as arrows over the true one, scaled by square roots, on level lines of the density."""
    axis = torch.linspace(-reach, reach, 17)
    grid = torch.cartesian_prod(axis, axis).flip(1)
    points = grid.to(truth.means)
    fine = torch.linspace(-reach, reach, 80)
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
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[], aspect="equal")
    ax.grid(visible=False)


@dataclass(frozen=True)
class ImageSample:
    """Settings of `parnassus sample` for a DDPM of images; calling it with the model gives the images."""

    label: NonNegative[int] | None = None  # index of the class; by default all classes in turn
    guidance_scale: NonNegative[float] = 2.0  # 0 ignores the class, 1 is the conditional model, larger amplifies it
    sampler: Literal["ddim", "ddpm", "heun", "dpm"] = "ddim"  # heun evaluates the network twice per step, others once
    steps: Positive[int] | None = None  # sampling steps; by default 50, or the whole chain if it is shorter
    num_samples: Positive[int] = 100  # number of images

    def __call__(self, model: DDPM) -> Tensor:
        return last_state(self.path(model))

    def path(self, model: DDPM) -> Iterator[Tensor]:
        """Every state from noise to the images, pixels in [0, 1]."""
        timesteps = len(model.schedule)
        steps = min(50, timesteps) if self.steps is None else self.steps
        self.validate(timesteps, model.classes)
        cycle = torch.arange(self.num_samples, device=next(model.parameters()).device) % max(1, model.classes)
        label = cycle if self.label is None else torch.full_like(cycle, self.label)
        denoiser = clip_x0(model.condition_on(label if model.classes else None, self.guidance_scale), model.schedule)
        start = torch.randn(self.num_samples, *model.shape, device=label.device)
        for state in SAMPLER_PATHS[self.sampler](denoiser, model.schedule, start, grid=even_grid(timesteps, steps)):
            yield to_pixels(state)

    def validate(self, timesteps: int, classes: int) -> None:
        """Raise a ValueError for settings that do not fit the model."""
        if self.label is not None and not classes:
            raise ValueError(f"label must be omitted for a model without classes; got label={self.label}")
        if self.label is not None and not 0 <= self.label < classes:
            raise ValueError(f"label must lie between 0 and {classes - 1}; got label={self.label}")
        if not 0 <= self.guidance_scale < inf:
            raise ValueError(f"guidance_scale must be finite and ≥ 0; got guidance_scale={self.guidance_scale}")
        if self.steps is not None and not 1 <= self.steps <= timesteps:
            raise ValueError(f"steps must lie between 1 and the {timesteps} steps of the chain; got steps={self.steps}")
        if self.num_samples < 1:
            raise ValueError(f"num_samples must be at least 1; got num_samples={self.num_samples}")
