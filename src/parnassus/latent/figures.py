"""Figures of rate and distortion, and images from trained variational autoencoders (book secs. 6.3, 6.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from parnassus.data import DataError, open_images
from parnassus.latent.latent_space.interpolation import latent_traversal, spherical_interpolation
from parnassus.latent.variational.vae import VAE
from parnassus.report.style import FAINT, INK, PALETTE, subplots
from parnassus.train import Positive

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_rate_and_distortion(costs: Mapping[str, tuple[float, float]], nll: float) -> "Figure":
    """Stacked bars of the rate and distortion of each code, with the lower bound −log p(x) of their sum."""
    figure, axes = subplots(size=(7.2, 2.2))
    ax = axes[0, 0]
    for name, (rate, distortion) in costs.items():
        ax.barh(name, rate, color=PALETTE[1], height=0.6, label="rate: the code" if rate else None)
        ax.barh(
            name, distortion, left=rate, color=PALETTE[0], height=0.6,
            label="distortion: the pixels given the code" if rate else None,
        )  # fmt: skip
        for value, middle in ((rate, rate / 2), (distortion, rate + distortion / 2)):
            if value:
                ax.text(middle, name, f"{value:.1f}", ha="center", va="center", color="white", fontweight="bold")
    ax.axvline(nll, color=INK, linestyle="--", linewidth=1.4, label=f"−log p(x) ≈ {nll:.1f}")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("nats per image")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.32), ncols=3)
    return figure


def plot_rate_distortion_trajectory(rates: Sequence[float], distortions: Sequence[float], nll: float) -> "Figure":
    """Training as a trajectory in the rate-distortion plane, with lines of equal sum."""
    figure, axes = subplots(size=(6.4, 4.4))
    ax = axes[0, 0]
    shown = slice(len(rates) // 10, None)  # the first steps are far away
    x, y = np.array(rates[shown]), np.array(distortions[shown])
    left, right = x.min() - 3, x.max() + 3
    bottom, top = min(y.min(), nll - x[-1]) - 3, y.max() + 3
    totals = np.linspace(nll, left + top, 6)
    for total in totals[1:-1]:
        ax.plot([left, right], [total - left, total - right], color=FAINT, linestyle="--", linewidth=0.8, zorder=1)
        ax.annotate(
            f"{total:.0f}", (left, min(total - left, top)), xytext=(3, -12), textcoords="offset points", color=FAINT
        )
    bound = f"rate + distortion = −log p(x) ≈ {nll:.1f}"
    ax.plot([left, right], [nll - left, nll - right], color=INK, linewidth=1.4, label=bound)
    ax.plot(x, y, color=PALETTE[0], marker="o", markersize=3, linewidth=1, label="training")
    ax.plot(x[-1:], y[-1:], color=PALETTE[1], marker="o", markersize=9, linestyle="none", label="end of training")
    ax.set(xlabel="rate (nats)", ylabel="distortion (nats)", xlim=(left, right), ylim=(bottom, top))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


@dataclass(frozen=True)
class VAESample:
    """Images from a trained VAE: samples, interpolations, traversals or reconstructions."""

    show: Literal["means", "draws", "interpolations", "traversals", "reconstructions"] = "means"  # kind of images
    num_samples: Positive[int] = 64  # images, or rows of interpolations and traversals
    images: str = "mnist_mini"  # images to reconstruct or interpolate: a data set, or a folder of your own
    image_size: Positive[int] | None = None  # height and width to which images of a folder are resized

    def __call__(self, model: VAE) -> Tensor:
        device = next(model.parameters()).device
        if self.show == "draws":
            return model.sample(self.num_samples)
        if self.show == "means":
            return model.decode(model.prior().sample((self.num_samples,)))
        if self.show == "traversals":
            code = torch.zeros(model.latent_dim, device=device)
            units = range(min(self.num_samples, model.latent_dim))
            return model.decode(torch.cat([latent_traversal(code, unit) for unit in units]))
        x = self.load_images(model).to(device)
        if self.show == "reconstructions":
            return torch.stack([x, model.reconstruct(x)], 1).flatten(0, 1)
        codes = model.encode(x)
        pairs = zip(codes, codes.roll(-1, 0), strict=True)
        return model.decode(torch.cat([spherical_interpolation(start, end) for start, end in pairs]))

    @property
    def columns(self) -> int | None:
        """Images per row: an interpolation, a traversal, five pairs of image and reconstruction."""
        return {"interpolations": 8, "traversals": 9, "reconstructions": 10}.get(self.show)

    def load_images(self, model: VAE) -> Tensor:
        """The requested images, which must have the shape of the model's."""
        x = open_images(self.images, self.image_size).test.x[: self.num_samples]
        expected = tuple(model.decode(model.prior().sample((1,))).shape[1:])
        if x.shape[1:] != expected:
            raise DataError(f"images must have the model's shape {expected}; {self.images} has {(*x.shape[1:],)}")
        return x
