"""The price of a code under the hand: one image at every weight of the rate (book sec. 6.4)."""

from collections.abc import Sequence
from typing import Annotated, cast

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.data import open_data
from parnassus.latent.experiments import rate_distortion_curve
from parnassus.latent.vae import VAE
from parnassus.touch import Answer, Bars, Curves, Images, Pick, Whole
from parnassus.train import SideBySide
from parnassus.train.trained import Trained

DRAWS = 50  # codes a number is the mean of
ABOUT = "The copy is decoded from the middle of the code; draws show how much the code leaves open."


def _vaes(trained: Trained) -> list[VAE]:
    return [vae for _, vae in cast("SideBySide[VAE]", trained.model).every()]


def _experiment(trained: Trained) -> rate_distortion_curve.Experiment:
    return cast("rate_distortion_curve.Experiment", trained.experiment)


def _names(trained: Trained) -> Sequence[str]:
    return [f"β = {beta:g}" for beta in _experiment(trained).betas]


def _grey(trained: Trained) -> Tensor:
    return open_data(_experiment(trained).data).test.x[:500]


def _unseen(trained: Trained) -> Tensor:
    """Unseen images with every pixel tossed once, always alike."""
    return torch.bernoulli(trained.once(_grey), generator=torch.Generator().manual_seed(0))


def _examples(trained: Trained) -> int:
    return len(trained.once(_unseen))


@torch.no_grad()
def _curve(trained: Trained) -> tuple[list[float], list[float]]:
    """Rate and distortion of every network, the mean of all unseen images."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        rows = [rate_distortion_curve.measure(vae, trained.once(_unseen)) for vae in trained.once(_vaes)]
    return [row[0] for row in rows], [row[1] for row in rows]


@probe("rate_distortion_curve")
@torch.no_grad()
def rate_against_reconstruction(
    trained: Trained,
    beta: Annotated[int, Pick("weight β of the rate", _names)] = 4,
    example: Annotated[int, Whole("unseen image", 1, _examples)] = 1,
) -> list[Answer]:
    """An unseen image, what its code costs and what it buys, at the β you choose (book sec. 6.4).

    Begin at the smallest β, where the code is long and the copy faithful, and make the rate dearer until the copy is
    the same for every image. The bill, rate and distortion together, is least near β = 1.
    """
    vaes = trained.once(_vaes)
    grey, image = (trained.once(each)[example - 1 : example] for each in (_grey, _unseen))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(example)
        many = image.expand(DRAWS, *image.shape[1:])
        terms = [each.terms(many) for each in vaes]
        vae = vaes[beta]
        drawn = vae.decode(vae.posterior(image).sample((3,))[:, 0])
    rates = [float(each.rate.mean()) for each in terms]
    distortions = [float(each.distortion.mean()) for each in terms]
    name = trained.once(_names)[beta]
    captions = ["image", "as tossed", f"copy at {name}", *(f"draw {number}" for number in (1, 2, 3))]
    numbers = torch.tensor([rates[beta], distortions[beta], rates[beta] + distortions[beta]])
    mean_rates, mean_distortions = trained.once(_curve)
    return [
        Images("What comes back", torch.cat([grey, image, vae.reconstruct(image), drawn]), captions, about=ABOUT),
        Bars(f"The bill at {name}, nats", ["rate", "distortion", "together"], numbers, marked=2),
        Curves(
            "Rate and distortion",
            {"mean of the unseen": (mean_rates, mean_distortions), "this image": (rates, distortions)},
            x_label="rate (nats)",
            y_label="distortion (nats)",
            marked=rates[beta],
            about="One point a network; the smallest β is on the right.",
        ),
    ]
