"""Things to touch: an image rebuilt from its components, and a walk over an autoencoder's map (book ch. 4)."""

from typing import Annotated, cast

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.data import Dataset, Split, open_data
from parnassus.latent import maps
from parnassus.latent.autoencoder import Autoencoder
from parnassus.latent.experiments import autoencoder_on_fashion, pca_on_digits
from parnassus.latent.pca import PCA
from parnassus.touch import Answer, Bars, Curves, Images, Numbers, Plane, Point, Whole
from parnassus.train.trained import Trained

SHOWN = 2_000  # codes drawn in the plane
NEIGHBOURS = 30  # training images that say who lives at a place


def _opened(trained: Trained) -> Dataset:
    return open_data(cast("pca_on_digits.Experiment | autoencoder_on_fashion.Experiment", trained.experiment).data)


def _full(trained: Trained) -> PCA:
    """All components of the training examples; fewer are the first of these."""
    train = trained.once(_opened).train.x.flatten(1)
    return PCA.fit(train, train.shape[1])


def _features(trained: Trained) -> int:
    return trained.once(_opened).train.x[0].numel()


def _unseen(trained: Trained) -> int:
    return len(trained.once(_opened).test)


def _mean_errors(trained: Trained) -> Tensor:
    """The error on unseen examples for every number of components, their mean."""
    parts = trained.once(_opened).test.x.flatten(1).split(1_000)
    return torch.cat([trained.once(_full).errors(part) for part in parts]).mean(0)


@probe("pca_on_digits")
def rebuild_from_components(
    trained: Trained,
    components: Annotated[int, Whole("components kept, K", 1, _features)] = 16,
    example: Annotated[int, Whole("unseen example", 1, _unseen)] = 1,
) -> list[Answer]:
    """An unseen example rebuilt from its first K principal components (book sec. 4.3).

    Begin with K = 1 and add components until you can name the digit, then until you cannot tell the copy from the
    original. The error that is left is what the directions left out would have added.
    """
    data, full = trained.once(_opened), trained.once(_full)
    x = data.test.x[example - 1].flatten()[None]
    kept, errors = full.keep(components), full.errors(x)[0]
    mean_errors = trained.once(_mean_errors)
    numbers: dict[str, float | str] = {
        "variance explained": f"{100 * float(kept.explained.sum()):.1f} %",
        "squared error of this example": float(errors[components - 1]),
        "mean squared error of unseen examples": float(mean_errors[components - 1]),
        "eigenvalues left out, their sum": float(kept.residual),
    }
    lines = {"this example": errors, "mean of the unseen": mean_errors}
    return [
        *_pictures(data, kept, x, float(errors[components - 1])),
        Numbers(f"With {components} of {len(errors)} numbers", numbers),
        _by_size("What the error falls to", lines, components, "‖x − x̂‖²"),
        _by_size("Variance along each component", {"λ": full.eigenvalues}, components, "λ_i"),
    ]


def _pictures(data: Dataset, kept: PCA, x: Tensor, error: float) -> list[Images]:
    """The original, its copy and the component added last, where examples are images."""
    if len(data.shape) != 3 or data.shape[0] not in (1, 3):
        return []
    last = kept.components[:, -1]
    added = 0.5 + 0.5 * last / last.abs().max()
    images = torch.stack([x[0], kept.reconstruct(x)[0].clamp(0, 1), added]).view(-1, *data.shape)
    captions = ["original", f"rebuilt, squared error {error:.3g}", f"component {kept.components.shape[1]}"]
    return [Images("The example and its copy", images, captions, about="In the component, grey is zero.")]


def _by_size(title: str, values: dict[str, Tensor], marked: int, y_label: str) -> Curves:
    """Curves over the number of components; zeros that single precision did not quite meet are left out."""
    lines = {}
    for name, line in values.items():
        shown = line > pca_on_digits.ROUNDING
        lines[name] = ((shown.nonzero()[:, 0] + 1.0).tolist(), line[shown].tolist())
    return Curves(title, lines, x_label="component", y_label=y_label, log_y=True, marked=float(marked))


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
