"""The latent plane of an autoencoder of images (book sec. 4.5)."""

from typing import Annotated, Protocol, cast

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.data import Dataset, Split, open_data
from parnassus.latent.autoencoders.autoencoder import Autoencoder
from parnassus.latent.latent_space.latent_grid import latent_range
from parnassus.latent.probes.neighbour_classes import plot_neighbour_classes
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Answer, Images, Numbers, Plane, PointPicker

MAX_PLOTTED = 2_000  # codes shown in the plane
NUM_NEIGHBOURS = 30  # nearest training images whose classes are counted


class _Settings(Protocol):
    data: str
    image_size: int | None
    num_examples: int


def _load_data(trained: TrainedRun) -> Dataset:
    settings = cast("_Settings", trained.experiment)
    return open_data(settings.data, size=settings.image_size)


def _classes(trained: TrainedRun) -> tuple[str, ...]:
    return trained.compute_once(_load_data).classes


def _training_images(trained: TrainedRun) -> Split:
    """The images the autoencoder was trained on."""
    return trained.compute_once(_load_data).train.take(cast("_Settings", trained.experiment).num_examples)


def _autoencoder(trained: TrainedRun) -> Autoencoder:
    return cast("Autoencoder", trained.model)


@torch.no_grad()
def _codes(trained: TrainedRun) -> Float[Tensor, "count 2"]:
    """The codes of the training images."""
    parts = trained.compute_once(_training_images).x.split(1_000)
    return torch.cat([trained.compute_once(_autoencoder).encode(part) for part in parts])


def _plane(trained: TrainedRun) -> Plane:
    training, z = trained.compute_once(_training_images), trained.compute_once(_codes)
    across, up = latent_range(z, tail=0.002)
    low, high = torch.tensor([across, up]).mT
    inside = ((z >= low) & (z <= high)).all(1).nonzero()[:MAX_PLOTTED, 0]
    labels = None if training.y is None else training.y[inside]
    return Plane(across, up, z[inside], labels, trained.compute_once(_classes), x_label="z₁", y_label="z₂")


@probe("autoencoder_latent_map")
@torch.no_grad()
def explore_latent_plane(
    trained: TrainedRun, place: Annotated[tuple[float, float], PointPicker("a point in the plane", _plane)]
) -> list[Answer]:
    """The image decoded from a point of the latent plane, and the classes of the codes around it (book sec. 4.5).

    Move from the centre of one class to the centre of another to see one image turn into the other. Then look for
    holes: far from the codes of all training images the decoder was never trained, but still produces an image.
    """
    point = torch.tensor([place])
    nearest = _distances(point, trained.compute_once(_codes))[0].topk(
        min(NUM_NEIGHBOURS, len(trained.compute_once(_codes))), largest=False
    )
    values: dict[str, float | str] = {
        "z₁": place[0],
        "z₂": place[1],
        "distance to the nearest code": float(nearest.values[0]),
        "median of this distance over all codes": trained.compute_once(_typical_distance),
    }
    about = "Where the first distance is much larger than the second, the decoder was never trained."
    labels = trained.compute_once(_training_images).y
    return [
        _decoded_images(trained, point, int(nearest.indices[0])),
        *plot_neighbour_classes(labels, nearest.indices, trained.compute_once(_classes)),
        Numbers("Distance to the training codes", values, about=about),
    ]


def _decoded_images(trained: TrainedRun, point: Tensor, nearest: int) -> Images:
    """The decoded point next to the training image with the nearest code and its reconstruction."""
    training, model = trained.compute_once(_training_images), trained.compute_once(_autoencoder)
    original = training.x[nearest : nearest + 1]
    label = "" if training.y is None else f": {trained.compute_once(_classes)[int(training.y[nearest])]}"
    error = float(model.reconstruction_error(original))
    captions = [
        "decoded from this point",
        f"nearest training image{label}",
        f"its reconstruction, squared error {error:.3f} per pixel",
    ]
    images = torch.cat([model.decode(point), original, model(original)])
    return Images("Decoded image", images.clamp(0, 1), captions)


def _typical_distance(trained: TrainedRun) -> float:
    """The median distance of a code to the nearest other one, over the first thousand."""
    codes = trained.compute_once(_codes)
    return float(_distances(codes[:1_000], codes).topk(2, largest=False).values[:, 1].median())


def _distances(points: Tensor, codes: Tensor) -> Tensor:
    return torch.cdist(points, codes, compute_mode="donot_use_mm_for_euclid_dist")  # exact for small distances
