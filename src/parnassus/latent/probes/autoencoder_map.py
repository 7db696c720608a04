"""A walk over the map that an autoencoder draws of its images (book sec. 4.5)."""

from typing import Annotated, cast

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.data import Dataset, Split, open_data
from parnassus.latent import maps
from parnassus.latent.autoencoder import Autoencoder
from parnassus.latent.experiments import autoencoder_on_fashion
from parnassus.touch import Answer, Bars, Images, Numbers, Plane, Point
from parnassus.train.trained import Trained

SHOWN = 2_000  # codes drawn in the plane
NEIGHBOURS = 30  # training images that say who lives at a place


def _opened(trained: Trained) -> Dataset:
    return open_data(cast("autoencoder_on_fashion.Experiment", trained.experiment).data)


def _classes(trained: Trained) -> tuple[str, ...]:
    return trained.once(_opened).classes


def _seen(trained: Trained) -> Split:
    """The images the autoencoder was trained on."""
    return trained.once(_opened).train.take(cast("autoencoder_on_fashion.Experiment", trained.experiment).examples)


def _autoencoder(trained: Trained) -> Autoencoder:
    return cast("Autoencoder", trained.model)


@torch.no_grad()
def _codes(trained: Trained) -> Float[Tensor, "count 2"]:
    """Where those images lie in the plane."""
    return torch.cat([trained.once(_autoencoder).encode(part) for part in trained.once(_seen).x.split(1_000)])


def _plane(trained: Trained) -> Plane:
    seen, z = trained.once(_seen), trained.once(_codes)
    across, up = maps.latent_range(z, tail=0.002)
    low, high = torch.tensor([across, up]).mT
    inside = ((z >= low) & (z <= high)).all(1).nonzero()[:SHOWN, 0]
    labels = None if seen.y is None else seen.y[inside]
    return Plane(across, up, z[inside], labels, trained.once(_classes), across_name="z₁", up_name="z₂")


@probe("autoencoder_on_fashion")
@torch.no_grad()
def walk_the_latent_plane(
    trained: Trained, place: Annotated[tuple[float, float], Point("a place in the plane", _plane)]
) -> list[Answer]:
    """What the autoencoder paints at a place of its map, and whose place it is (book sec. 4.5).

    Walk from the middle of one class to the middle of another and watch one image turn into the other. Then look for
    holes: far from every training image the decoder paints something all the same, and nobody taught it what.
    """
    here = torch.tensor([place])
    near = _distances(here, trained.once(_codes))[0].topk(min(NEIGHBOURS, len(trained.once(_codes))), largest=False)
    numbers: dict[str, float | str] = {
        "z₁": place[0],
        "z₂": place[1],
        "distance to the nearest code": float(near.values[0]),
        "that of a typical code": trained.once(_typical_distance),
    }
    about = "Where the first distance is much larger than the second, the decoder was never trained."
    return [
        _painted(trained, here, int(near.indices[0])),
        *_who_lives_here(trained, near.indices),
        Numbers("How far from home", numbers, about=about),
    ]


def _painted(trained: Trained, here: Tensor, nearest: int) -> Images:
    """The decoded place beside the training image nearest to it, original and rebuilt."""
    seen, model = trained.once(_seen), trained.once(_autoencoder)
    original = seen.x[nearest : nearest + 1]
    kind = "" if seen.y is None else f": {trained.once(_classes)[int(seen.y[nearest])]}"
    error = float(model.reconstruction_error(original))
    captions = ["painted here", f"nearest training image{kind}", f"that image rebuilt, error {error:.3f} a pixel"]
    images = torch.cat([model.decode(here), original, model(original)])
    return Images("The image at this place", images.clamp(0, 1), captions)


def _who_lives_here(trained: Trained, rows: Tensor) -> list[Bars]:
    labels, classes = trained.once(_seen).y, trained.once(_classes)
    if labels is None:
        return []
    shares = torch.bincount(labels[rows], minlength=len(classes)) / len(rows)
    about = f"Shares of the classes among the {len(rows)} nearest training images."
    return [Bars("Who lives here", classes, shares, marked=int(shares.argmax()), about=about)]


def _typical_distance(trained: Trained) -> float:
    """The median distance of a code to the nearest other one, over the first thousand."""
    codes = trained.once(_codes)
    return float(_distances(codes[:1_000], codes).topk(2, largest=False).values[:, 1].median())


def _distances(here: Tensor, codes: Tensor) -> Tensor:
    return torch.cdist(here, codes, compute_mode="donot_use_mm_for_euclid_dist")  # products lose the small ones
