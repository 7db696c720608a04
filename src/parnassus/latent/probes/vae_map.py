"""A walk over the map of a variational autoencoder, beside that of an autoencoder (book sec. 5.2)."""

from typing import Annotated, cast

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.data import Dataset, Split, open_data
from parnassus.latent.aggregate import log_aggregate
from parnassus.latent.experiments import vae_latent_map
from parnassus.touch import Answer, Bars, Images, Numbers, Plane, Point
from parnassus.train.trained import Trained

SHOWN = 2_000  # codes drawn in the plane
NEIGHBOURS = 30  # images that say who lives at a place
REACH = 3.5  # of the plane, in deviations of the prior


def _experiment(trained: Trained) -> vae_latent_map.Experiment:
    return cast("vae_latent_map.Experiment", trained.experiment)


def _opened(trained: Trained) -> Dataset:
    size = _experiment(trained).size
    return open_data(_experiment(trained).data, size=None if size is None else (size, size))


def _seen(trained: Trained) -> Split:
    """The images the model was trained on."""
    return trained.once(_opened).train.take(_experiment(trained).examples)


def _both(trained: Trained) -> vae_latent_map.Both:
    return cast("vae_latent_map.Both", trained.model)


@torch.no_grad()
def _moments(trained: Trained) -> tuple[Float[Tensor, "count 2"], Float[Tensor, "count 2"]]:
    """Where the posterior of each of those images lies, and how wide it is."""
    parts = [trained.once(_both).vae.moments(part) for part in trained.once(_seen).x.split(1_000)]
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])


def _plane(trained: Trained) -> Plane:
    mean, seen = trained.once(_moments)[0], trained.once(_seen)
    inside = (mean.abs() <= REACH).all(1).nonzero()[:SHOWN, 0]
    labels = None if seen.y is None else seen.y[inside]
    sides = (-REACH, REACH), (-REACH, REACH)
    return Plane(*sides, mean[inside], labels, trained.once(_opened).classes, across_name="z₁", up_name="z₂")


@probe("vae_latent_map")
@torch.no_grad()
def latent_plane(
    trained: Trained, place: Annotated[tuple[float, float], Point("a place in the plane", _plane)]
) -> list[Answer]:
    """What the VAE paints at a place of its map, and how often the prior and the codes come there (book sec. 5.2).

    Walk in rings around the middle: the prior visits all places of a ring equally often, and nearly everywhere some
    image is at home. Then go beyond 3: the prior hardly ever goes there, and nobody taught the decoder what to paint.
    """
    model, here = trained.once(_both).vae, torch.tensor([place])
    mean, log_variance = trained.once(_moments)
    distance = (mean - here).square().sum(1)
    near = distance.topk(min(NEIGHBOURS, len(mean)), largest=False).indices
    prior, codes = float(model.prior().log_prob(here)), float(log_aggregate(here, mean, log_variance))
    numbers: dict[str, float | str] = {
        "log p(z), the prior": prior,
        "log q(z), the codes of all images": codes,
        "log q(z) − log p(z)": codes - prior,
    }
    about = (
        "Where the last is far below 0 is a hole: the prior goes there and no image does. Its mean is KL(q(z) ‖ p(z))."
    )
    return [
        _painted(trained, here, int(near[0])),
        *_who_lives_here(trained, near),
        Numbers("Prior and codes at this place", numbers, about=about),
    ]


def _painted(trained: Trained, here: Tensor, nearest: int) -> Images:
    """The decoded place beside the training image whose code is nearest, original and rebuilt."""
    seen, model = trained.once(_seen), trained.once(_both).vae
    original = seen.x[nearest : nearest + 1]
    kind = "" if seen.y is None else f": {trained.once(_opened).classes[int(seen.y[nearest])]}"
    images = torch.cat([model.decode(here), original, model.reconstruct(original)])
    return Images("The image at this place", images, ["painted here", f"nearest training image{kind}", "its copy"])


def _who_lives_here(trained: Trained, rows: Tensor) -> list[Bars]:
    labels, classes = trained.once(_seen).y, trained.once(_opened).classes
    if labels is None:
        return []
    shares = torch.bincount(labels[rows], minlength=len(classes)) / len(rows)
    about = f"Shares of the classes among the {len(rows)} nearest training images."
    return [Bars("Who lives here", classes, shares, marked=int(shares.argmax()), about=about)]
