"""Rate and distortion of one image at every weight of the rate (book sec. 6.4)."""

from collections.abc import Sequence
from typing import Annotated, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.data import open_data
from parnassus.latent.variational.elbo import mean_rate_and_distortion
from parnassus.latent.variational.vae import VAE
from parnassus.train import ModelCollection
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Answer, Bars, Curves, Images, IntSlider, Select

NUM_DRAWS = 50  # codes per estimate
ABOUT = "The reconstruction is decoded from the posterior mean, the samples from samples of the posterior."


@runtime_checkable
class _Settings(Protocol):
    data: str
    image_size: int | None
    betas: tuple[float, ...]


def _vaes(trained: TrainedRun) -> list[VAE]:
    return [vae for _, vae in cast("ModelCollection[VAE]", trained.model).named_models()]


def _settings(trained: TrainedRun) -> _Settings:
    return cast("_Settings", trained.experiment)


def _names(trained: TrainedRun) -> Sequence[str]:
    return [f"β = {beta:g}" for beta in _settings(trained).betas]


def _grey_images(trained: TrainedRun) -> Tensor:
    return open_data(_settings(trained).data, size=_settings(trained).image_size).test.x[:500]


def _binary_images(trained: TrainedRun) -> Tensor:
    """Test images with pixels sampled from their grey values, with a fixed seed."""
    return torch.bernoulli(trained.compute_once(_grey_images), generator=torch.Generator().manual_seed(0))


def _num_examples(trained: TrainedRun) -> int:
    return len(trained.compute_once(_binary_images))


@torch.no_grad()
def _mean_curve(trained: TrainedRun) -> tuple[list[float], list[float]]:
    """Mean rate and distortion of every network over the test images."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        rows = [
            mean_rate_and_distortion(vae, trained.compute_once(_binary_images)) for vae in trained.compute_once(_vaes)
        ]
    return [row[0] for row in rows], [row[1] for row in rows]


@probe("vae_rate_distortion")
@torch.no_grad()
def rate_and_distortion_of_an_image(
    trained: TrainedRun,
    beta: Annotated[int, Select("weight β of the rate", _names)] = 4,
    example: Annotated[int, IntSlider("test image", 1, _num_examples)] = 1,
) -> list[Answer]:
    """The rate of a test image's code and the distortion of its reconstruction, at a chosen β (book sec. 6.4).

    At the smallest β the rate is large and the reconstruction close; as β grows, the reconstruction becomes the same
    for every image. The sum of rate and distortion is smallest near β = 1.
    """
    vaes = trained.compute_once(_vaes)
    grey, image = (trained.compute_once(each)[example - 1 : example] for each in (_grey_images, _binary_images))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(example)
        repeated = image.expand(NUM_DRAWS, *image.shape[1:])
        terms = [each.terms(repeated) for each in vaes]
        vae = vaes[beta]
        samples = vae.decode(vae.posterior(image).sample((3,))[:, 0])
    rates = [float(each.rate.mean()) for each in terms]
    distortions = [float(each.distortion.mean()) for each in terms]
    name = trained.compute_once(_names)[beta]
    captions = ["image", "binary image", f"reconstruction, {name}", *(f"sample {number}" for number in (1, 2, 3))]
    values = torch.tensor([rates[beta], distortions[beta], rates[beta] + distortions[beta]])
    mean_rates, mean_distortions = trained.compute_once(_mean_curve)
    return [
        Images("Reconstruction", torch.cat([grey, image, vae.reconstruct(image), samples]), captions, about=ABOUT),
        Bars(f"Rate and distortion at {name}, nats", ["rate", "distortion", "sum"], values, marked=2),
        Curves(
            "Rate and distortion",
            {"mean of the test images": (mean_rates, mean_distortions), "this image": (rates, distortions)},
            x_label="rate (nats)",
            y_label="distortion (nats)",
            marked=rates[beta],
            about="One point per network; the smallest β is on the right.",
        ),
    ]
