"""Two-dimensional latent space of a VAE compared with that of an autoencoder (book sec. 5.2, fig. 5.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import Dataset, open_grey_images
from parnassus.latent.autoencoders.autoencoder import Autoencoder
from parnassus.latent.autoencoders.dense_networks import mlp_decoder, mlp_encoder
from parnassus.latent.latent_space import quality_metrics
from parnassus.latent.variational.aggregated_posterior import second_moments
from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.reparametrisation import reparametrise
from parnassus.latent.variational.vae import VAE
from parnassus.report import PALETTE, image_grid, subplots
from parnassus.setting_types import GreyImageData
from parnassus.train import ModelCollection, Positive, Run, at_most, between, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B5.2-5", "B5.2-4", "B6.3-10")
expected = {
    "second_moment_1": between(0.9, 1.15, "mean of μ₁² + σ₁² over the training images; 1 at a stationary point"),
    "second_moment_2": between(0.9, 1.15, "mean of μ₂² + σ₂² over the training images; 1 at a stationary point"),
    "centre_offset": at_most(0.1, "distance of the mean code from the origin, in standard deviations"),
    "centre_offset_autoencoder": no_band(
        "distance of the autoencoder's mean code from the origin, in standard deviations"
    ),
    "anisotropy": at_most(1.15, "ratio of the largest to the smallest standard deviation of sampled codes"),
    "anisotropy_autoencoder": no_band(
        "ratio of the largest to the smallest standard deviation of the autoencoder's codes"
    ),
    "covariance_error": at_most(0.2, "largest entry of |Cov z − I| for sampled codes"),
    "neighbour_accuracy": no_band("accuracy of predicting the class of μ from its nearest neighbours"),
}
profiles = {
    "smoke": {"steps": 10, "width": 16},
    "gpu": {"data": "fashion_mnist", "steps": 20_000, "batch_size": 256, "width": 1_024, "learning_rate": 5e-4},
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # height and width to which images of a folder are resized
    steps: Positive[int] = 2_500  # gradient steps
    batch_size: Positive[int] = 128  # images per gradient step
    width: Positive[int] = 128  # hidden units of the two layers of encoder and decoder
    learning_rate: Positive[float] = 2e-3  # Adam's learning rate
    num_examples: Positive[int] = 20_000  # maximum number of training images

    def model(self, shape: Sequence[int]) -> ModelCollection[VAE | Autoencoder]:
        """A VAE and an autoencoder with the same networks."""
        encoder = mlp_encoder(shape, 4, width=self.width, num_layers=2)
        vae = VAE(encoder, BernoulliDecoder(mlp_decoder(2, shape, width=self.width, num_layers=2)), 2)
        autoencoder_decoder = nn.Sequential(mlp_decoder(2, shape, width=self.width, num_layers=2), nn.Sigmoid())
        autoencoder = Autoencoder(mlp_encoder(shape, 2, width=self.width, num_layers=2), autoencoder_decoder)
        return ModelCollection({"vae": vae, "autoencoder": autoencoder})

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_grey_images(self.data, self.image_size).to(run.device)
        train = data.train.take(self.num_examples)
        model, optimizer = run.prepare(run.build(self.model, shape=data.shape), partial(Adam, lr=self.learning_rate))
        for step, loss in descend(run, model, optimizer, train.batches(self.batch_size, self.steps)):
            run.log(step, loss=loss)

        vae = cast("VAE", model.model("vae"))
        with torch.no_grad():
            mean, log_variance = vae.posterior_parameters(train.x)
            samples, codes = reparametrise(mean, log_variance), model.model("autoencoder").encode(train.x)
            run.figure("codes", plot_codes(mean, codes, train.y, data), CODES)
            run.figure("mosaic", plot_mosaic(vae), MOSAIC)
        moments = second_moments(mean, log_variance).tolist()
        run.note("second moments", describe_second_moments(moments))
        metrics = {
            "second_moment_1": moments[0],
            "second_moment_2": moments[1],
            "centre_offset": float(quality_metrics.centre_offset(samples)),
            "centre_offset_autoencoder": float(quality_metrics.centre_offset(codes)),
            "anisotropy": float(quality_metrics.anisotropy(samples)),
            "anisotropy_autoencoder": float(quality_metrics.anisotropy(codes)),
            "covariance_error": float((torch.cov(samples.mT) - torch.eye(2, device=run.device)).abs().max()),
        }
        if train.y is None:
            return metrics
        return {
            **metrics,
            "neighbour_accuracy": float(quality_metrics.neighbour_accuracy(mean[:3_000], train.y[:3_000])),
        }


@dataclass(frozen=True)
class Sample:
    num_samples: Positive[int] = 64  # number of samples

    def __call__(self, model: ModelCollection[VAE | Autoencoder]) -> Tensor:
        vae = cast("VAE", model.model("vae"))
        return vae.decode(vae.prior().sample((self.num_samples,)))


CODES = (
    "Codes of the training images: posterior means μ(x) of the VAE with circles of the prior (left), and codes of an "
    "autoencoder with the same networks (right), whose distribution is not constrained (book fig. 5.2)."
)
MOSAIC = "Images decoded by the VAE at quantiles of its prior; all cells have equal prior probability."


def describe_second_moments(moments: Sequence[float]) -> str:
    return (
        f"The mean of μ² + σ² over the training images is {moments[0]:.3f} and {moments[1]:.3f} for the two "
        "coordinates. At a stationary point of training it is 1: scaling z by c and the first layer of the decoder by "
        "1/c does not change the distortion, and the rate, ½(c²(μ² + σ²) − 1 − log c²σ²), is minimal where the mean of "
        "c²(μ² + σ²) is 1. The loss of an autoencoder does not depend on the scale and centre of its codes."
    )


def plot_codes(vae: Tensor, autoencoder: Tensor, labels: Tensor | None, data: Dataset) -> "Figure":
    """The codes of both models with equal axes, coloured by class."""
    figure, axes = subplots(1, 2, size=(11.2, 5.0))
    circle = torch.linspace(0, 2 * torch.pi, 100)
    for index, (name, z) in enumerate({"VAE, μ(x)": vae, "autoencoder": autoencoder}.items()):
        ax = axes[0, index]
        shown = z[:3_000].cpu()
        kinds = torch.zeros(len(shown)).long() if labels is None else labels[: len(shown)].cpu()
        for kind in kinds.unique().tolist():
            chosen = shown[kinds == kind]
            label = data.classes[kind] if labels is not None and kind < len(data.classes) else None
            ax.scatter(chosen[:, 0], chosen[:, 1], s=7, color=PALETTE[kind % len(PALETTE)], label=label, linewidths=0)
        if index == 0:
            for radius in (1, 2):
                ax.plot(radius * circle.cos(), radius * circle.sin(), color="#808890", linestyle="--", linewidth=1.2)
        ax.set(xlabel="z₁", ylabel="z₂")
        ax.set_title(name)
        ax.set_aspect("equal", adjustable="datalim")
    if labels is not None:
        axes[0, 1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=2.5)
    return figure


def plot_mosaic(vae: VAE, *, cells: int = 14) -> "Figure":
    """Images decoded at a grid of prior quantiles."""
    device = next(vae.parameters()).device
    levels = torch.distributions.Normal(0.0, 1.0).icdf((torch.arange(cells) + 0.5) / cells)
    up, across = torch.meshgrid(levels.flip(0), levels, indexing="ij")
    return image_grid(vae.decode(torch.stack([across, up], -1).view(-1, 2).to(device)), columns=cells)
