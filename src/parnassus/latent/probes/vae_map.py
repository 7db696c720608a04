"""The latent plane of a VAE: decoded images, prior and aggregated posterior (book sec. 5.2)."""

from typing import Annotated, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from parnassus.atlas.decorators import probe
from parnassus.data import Dataset, Split, open_images
from parnassus.latent.probes.neighbour_classes import plot_neighbour_classes
from parnassus.latent.variational.aggregated_posterior import log_aggregated_posterior
from parnassus.latent.variational.reparametrisation import GaussianParameters
from parnassus.latent.variational.vae import VAE
from parnassus.train import ModelCollection
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Answer, Images, Numbers, Plane, PointPicker

MAX_PLOTTED = 2_000  # codes shown in the plane
NUM_NEIGHBOURS = 30  # nearest training images whose classes are counted
LIMIT = 3.5  # of both coordinates of the plane, in standard deviations of the prior


@runtime_checkable
class _Settings(Protocol):
    data: str
    image_size: int | None
    num_examples: int


def _settings(trained: TrainedRun) -> _Settings:
    return cast("_Settings", trained.experiment)


def _load_data(trained: TrainedRun) -> Dataset:
    return open_images(_settings(trained).data, _settings(trained).image_size)


def _training_images(trained: TrainedRun) -> Split:
    """The images the model was trained on."""
    return trained.compute_once(_load_data).train.take(_settings(trained).num_examples)


def _vae(trained: TrainedRun) -> VAE:
    return cast("VAE", cast("ModelCollection[nn.Module]", trained.model).model("vae"))


@torch.no_grad()
def _posteriors(trained: TrainedRun) -> GaussianParameters:
    """Mean and log-variance of the posterior of each training image."""
    parts = [
        trained.compute_once(_vae).posterior_parameters(part)
        for part in trained.compute_once(_training_images).x.split(1_000)
    ]
    return GaussianParameters(*(torch.cat(part) for part in zip(*parts, strict=True)))


def _plane(trained: TrainedRun) -> Plane:
    mean, training = trained.compute_once(_posteriors).mean, trained.compute_once(_training_images)
    inside = (mean.abs() <= LIMIT).all(1).nonzero()[:MAX_PLOTTED, 0]
    labels = None if training.y is None else training.y[inside]
    sides = (-LIMIT, LIMIT), (-LIMIT, LIMIT)
    return Plane(*sides, mean[inside], labels, trained.compute_once(_load_data).classes, x_label="z₁", y_label="z₂")


@probe("vae_latent_map")
@torch.no_grad()
def explore_vae_plane(
    trained: TrainedRun, place: Annotated[tuple[float, float], PointPicker("a point in the plane", _plane)]
) -> list[Answer]:
    """The image decoded from a point of the latent plane, with the densities p(z) and q(z) there (book sec. 5.2).

    On a circle around the origin the prior density is constant, and nearly every point is close to the code of some
    image. Beyond a radius of 3 the prior density is small, and the decoder was hardly trained there.
    """
    model, point = trained.compute_once(_vae), torch.tensor([place])
    mean, log_variance = trained.compute_once(_posteriors)
    distance = (mean - point).square().sum(1)
    nearest = distance.topk(min(NUM_NEIGHBOURS, len(mean)), largest=False).indices
    prior, aggregated = float(model.prior().log_prob(point)), float(log_aggregated_posterior(point, mean, log_variance))
    values: dict[str, float | str] = {
        "log p(z), prior": prior,
        "log q(z), aggregated posterior": aggregated,
        "log q(z) − log p(z)": aggregated - prior,
    }
    about = (
        "A difference far below 0 indicates a hole: the prior has mass there, the codes do not. Its mean under q(z) is "
        "KL(q(z) ‖ p(z))."
    )
    return [
        _decoded_images(trained, point, int(nearest[0])),
        *plot_neighbour_classes(
            trained.compute_once(_training_images).y, nearest, trained.compute_once(_load_data).classes
        ),
        Numbers("Prior and aggregated posterior", values, about=about),
    ]


def _decoded_images(trained: TrainedRun, point: Tensor, nearest: int) -> Images:
    """The decoded point next to the training image with the nearest code and its reconstruction."""
    training, model = trained.compute_once(_training_images), trained.compute_once(_vae)
    original = training.x[nearest : nearest + 1]
    label = "" if training.y is None else f": {trained.compute_once(_load_data).classes[int(training.y[nearest])]}"
    images = torch.cat([model.decode(point), original, model.reconstruct(original)])
    captions = ["decoded from this point", f"nearest training image{label}", "its reconstruction"]
    return Images("Decoded image", images, captions)
