"""The map of a VAE's codes: one round cloud, beside the autoencoder's (book sec. 5.2, fig. 5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import Dataset, open_images
from parnassus.latent import maps
from parnassus.latent.aggregate import second_moments
from parnassus.latent.autoencoder import Autoencoder
from parnassus.latent.decoders import BernoulliDecoder
from parnassus.latent.dense import flat_decoder, flat_encoder
from parnassus.latent.vae import VAE, reparametrise
from parnassus.report import PALETTE, image_grid, subplots
from parnassus.train import Run, at_most, between, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B5.2-5", "B5.2-4", "B6.3-10")
expected = {
    "second_moment_1": between(0.9, 1.15, "mean of μ₁² + σ₁² over the training images; 1 where training rests"),
    "second_moment_2": between(0.9, 1.15, "the same in the other direction"),
    "centre_offset": at_most(0.1, "distance of the mean code from the origin, in deviations"),
    "centre_offset_autoencoder": reported("the same for the autoencoder's codes"),
    "anisotropy": at_most(1.15, "longest over shortest deviation of the drawn codes; 1 is round"),
    "anisotropy_autoencoder": reported("the same for the autoencoder's codes"),
    "covariance_error": at_most(0.2, "largest entry of |Cov z − I| for drawn codes"),
    "neighbour_accuracy": reported("share of μ whose nearest codes are of their own class"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16},
    "gpu": {"data": "fashion_mnist", "steps": 20_000, "batch": 256, "width": 1_024, "lr": 5e-4},
}


class Both(nn.Module):
    """A VAE and an autoencoder with the same networks, trained side by side."""

    def __init__(self, vae: VAE, autoencoder: Autoencoder) -> None:
        super().__init__()
        self.vae = vae
        self.autoencoder = autoencoder

    def loss(self, x: Tensor) -> Tensor:
        return self.vae.loss(x) + self.autoencoder.loss(x)


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # images: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    size: int | None = None  # resize the pictures of a folder to this height and width
    steps: int = 2_500  # gradient steps
    batch: int = 128  # images a step
    width: int = 128  # hidden units of two layers each way
    lr: float = 2e-3  # Adam's learning rate
    examples: int = 20_000  # images used at most

    def model(self, shape: Sequence[int]) -> Both:
        encoder = flat_encoder(shape, 4, width=self.width, layers=2)
        vae = VAE(encoder, BernoulliDecoder(flat_decoder(2, shape, width=self.width, layers=2)), 2)
        rebuild = nn.Sequential(flat_decoder(2, shape, width=self.width, layers=2), nn.Sigmoid())
        return Both(vae, Autoencoder(flat_encoder(shape, 2, width=self.width, layers=2), rebuild))

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_images(self.data, self.size).to(run.device)
        train = data.train.take(self.examples)
        model, optimizer = run.prepare(run.build(self.model, shape=data.shape), partial(Adam, lr=self.lr))
        for step, loss in descend(run, model, optimizer, train.batches(self.batch, self.steps)):
            run.log(step, loss=loss)

        with torch.no_grad():
            mean, log_variance = model.vae.moments(train.x)
            drawn, plain = reparametrise(mean, log_variance), model.autoencoder.encode(train.x)
            run.figure("maps", draw_maps(mean, plain, train.y, data), MAPS)
            run.figure("mosaic", draw_mosaic(model.vae), MOSAIC)
        moments = second_moments(mean, log_variance).tolist()
        run.note("why one", explain(moments))
        numbers = {
            "second_moment_1": moments[0],
            "second_moment_2": moments[1],
            "centre_offset": float(maps.centre_offset(drawn)),
            "centre_offset_autoencoder": float(maps.centre_offset(plain)),
            "anisotropy": float(maps.anisotropy(drawn)),
            "anisotropy_autoencoder": float(maps.anisotropy(plain)),
            "covariance_error": float((torch.cov(drawn.mT) - torch.eye(2, device=run.device)).abs().max()),
        }
        if train.y is None:
            return numbers
        return {**numbers, "neighbour_accuracy": float(maps.neighbour_accuracy(mean[:3_000], train.y[:3_000]))}


@dataclass(frozen=True)
class Sample:
    count: int = 64  # how many

    def __call__(self, model: Both) -> Tensor:
        return model.vae.decode(model.vae.prior().sample((self.count,)))


MAPS = (
    "Where the training images lie: the means μ(x) of the VAE with rings of the prior (left), and the codes of an "
    "autoencoder of the same networks (right). Only the first was asked to be round and centred (book fig. 5.2)."
)
MOSAIC = "What the VAE decodes at the quantiles of its prior: each cell is as likely as every other."


def explain(moments: Sequence[float]) -> str:
    return (
        f"The mean of μ² + σ² over the training images is {moments[0]:.3f} and {moments[1]:.3f} in the two directions. "
        "Where training has come to rest it is 1: multiply z by c and divide the decoder's first layer by c, and no "
        "image changes, so the distortion does not care; the rate, ½(c²(μ² + σ²) − 1 − log c²σ²), is least where the "
        "mean of c²(μ² + σ²) is 1. No such pull acts on an autoencoder: its codes may have any size and centre."
    )


def draw_maps(vae: Tensor, plain: Tensor, labels: Tensor | None, data: Dataset) -> "Figure":
    """Both clouds with equal axes, coloured by class."""
    figure, axes = subplots(1, 2, size=(11.2, 5.0))
    circle = torch.linspace(0, 2 * torch.pi, 100)
    for place, (name, z) in enumerate({"VAE, μ(x)": vae, "autoencoder": plain}.items()):
        ax = axes[0, place]
        shown = z[:3_000].cpu()
        kinds = torch.zeros(len(shown)).long() if labels is None else labels[: len(shown)].cpu()
        for kind in kinds.unique().tolist():
            chosen = shown[kinds == kind]
            label = data.classes[kind] if labels is not None and kind < len(data.classes) else None
            ax.scatter(chosen[:, 0], chosen[:, 1], s=7, color=PALETTE[kind % len(PALETTE)], label=label, linewidths=0)
        if place == 0:
            for radius in (1, 2):
                ax.plot(radius * circle.cos(), radius * circle.sin(), color="#808890", linestyle="--", linewidth=1.2)
        ax.set(xlabel="z₁", ylabel="z₂")
        ax.set_title(name)
        ax.set_aspect("equal", adjustable="datalim")
    if labels is not None:
        axes[0, 1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=2.5)
    return figure


def draw_mosaic(vae: VAE, *, cells: int = 14) -> "Figure":
    """Images decoded at a raster of prior quantiles."""
    device = next(vae.parameters()).device
    levels = torch.distributions.Normal(0.0, 1.0).icdf((torch.arange(cells) + 0.5) / cells)
    up, across = torch.meshgrid(levels.flip(0), levels, indexing="ij")
    return image_grid(vae.decode(torch.stack([across, up], -1).view(-1, 2).to(device)), columns=cells)
