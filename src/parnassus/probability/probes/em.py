"""Expectation-maximisation, step by step (Diehl ex. 6.3)."""

from collections.abc import Callable
from itertools import islice
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.data.toy import checkerboard, eight_gaussians, moons, rings
from parnassus.probability.divergences import entropy
from parnassus.probability.experiments.em_for_a_mixture import five_bells
from parnassus.probability.mixtures import GaussianMixture, em_path, spread_start
from parnassus.report import PALETTE
from parnassus.touch import Answer, Bars, Curves, Images, Numbers, Path, Pick, Whole

POINTS, STEPS = 200, 30
SIDE = 200  # pixels along a side of the picture
DOT = (1.7, 2.6)  # radius of a dot and of its rim, in pixels
INK = torch.tensor([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in PALETTE], dtype=torch.float64)


def _bells(seed: int) -> Tensor:
    torch.manual_seed(seed)
    return five_bells().sample(POINTS)


CLOUDS: dict[str, Callable[[int], Tensor]] = {
    "five bells": _bells,
    "eight clumps": lambda seed: eight_gaussians(POINTS, noise=0.25, seed=seed).x.double(),
    "two moons": lambda seed: moons(POINTS, noise=0.08, seed=seed).x.double(),
    "rings": lambda seed: rings(POINTS, noise=0.05, seed=seed).x.double(),
    "checkerboard": lambda seed: checkerboard(POINTS, seed=seed).x.double(),
}


@probe()
@torch.no_grad()
def watch_em_find_the_bells(
    data: Annotated[int, Pick("data", tuple(CLOUDS))] = 0,
    components: Annotated[int, Whole("components", 1, 10)] = 5,
    step: Annotated[int, Whole("steps taken", 0, STEPS)] = 0,
    seed: Annotated[int, Whole("seed of data and start", 0, 99)] = 0,
) -> list[Answer]:
    """Bells that move to where the points are: responsibilities, then moments, again and again (Diehl ex. 6.3).

    Move the steps from 0 upwards. Points that two bells claim have a mixed colour; as the bells part, the colours
    clear. The likelihood only rises, yet try other seeds: some starts end with one bell over two clumps. Then give the
    moons or the rings more and more bells, and see a density that is no mixture become one piece by piece.
    """
    x = list(CLOUDS.values())[data](seed)
    x = (x - x.mean(0)) / x.std()
    path = list(islice(em_path(x, spread_start(x, components, seed=seed)), STEPS + 1))
    heights = [float(mixture.log_prob(x).mean()) for mixture in path]
    mixture = path[step]
    reach = 1.15 * float(x.abs().max())
    shares = mixture.responsibilities(x)
    numbers: dict[str, float | str] = {
        "mean log-likelihood": heights[step],
        "gained by the last step": heights[step] - heights[step - 1] if step else "no step yet",
        "still to gain": heights[-1] - heights[step],
        "components a point is divided between": float(entropy(shares).exp().mean()),
    }
    return [
        Images("Who answers for which point", _picture(mixture, x, reach)[None], [f"step {step}"], about=PICTURE),
        Curves(
            "Likelihood",
            {"mean of log p(x)": ([float(each) for each in range(STEPS + 1)], heights)},
            x_label="step",
            y_label="nats a point",
            marked=float(step),
        ),
        _ways(path[: step + 1], reach),
        Bars("Weights", [f"bell {i + 1}" for i in range(components)], mixture.weights.float()),
        Numbers("How far it is", numbers, about="No step of EM lowers the likelihood."),
    ]


PICTURE = (
    "Each bell is drawn at two standard deviations. A point has the colours of the bells that answer for it, mixed."
)


def _picture(mixture: GaussianMixture, x: Tensor, reach: float) -> Tensor:
    """Dots and ellipses on white, (3, side, side), row 0 on top."""
    line = reach * ((2 * torch.arange(SIDE, dtype=torch.float64) + 1) / SIDE - 1)
    up, across = torch.meshgrid(line.flip(0), line, indexing="ij")
    places = torch.stack([across, up], -1).reshape(-1, 2)
    pixel = 2 * reach / SIDE
    ink = INK[: len(mixture.weights)]
    image = torch.ones(SIDE * SIDE, 3, dtype=torch.float64)
    for mean, precision, colour in zip(mixture.means, torch.linalg.inv(mixture.covariances), ink, strict=True):
        slope = (places - mean) @ precision
        radius = (slope * (places - mean)).sum(1).clamp(min=1e-12).sqrt()
        away = (radius - 2).abs() / (slope.norm(dim=1) / radius * pixel)  # from the ellipse, in pixels
        image = torch.lerp(image, colour.expand_as(image), (1.6 - away).clamp(0, 1)[:, None])
    distance, nearest = torch.cdist(places.float(), x.float()).min(1)  # half the time of float64
    core, rim = ((radius + 0.5 - distance / pixel).clamp(0, 1)[:, None] for radius in DOT)
    colour = (mixture.responsibilities(x) @ ink)[nearest]
    image = core * colour + (1 - core) * (rim + (1 - rim) * image)
    return image.T.reshape(3, SIDE, SIDE).clamp(0, 1).float()


def _ways(path: list[GaussianMixture], reach: float) -> Path:
    """The ways of the means so far, over level lines of the density of now."""
    side = torch.linspace(-reach, reach, 61, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(side, side, indexing="xy"), -1).reshape(-1, 2)
    levels = -path[-1].log_prob(grid).view(61, 61)
    ways = torch.stack([mixture.means for mixture in path], 1)
    return Path(
        "The density, and the ways of the means",
        {f"bell {i + 1}": way.float() for i, way in enumerate(ways)},
        side.float(),
        side.float(),
        levels.clamp(max=float(levels.min()) + 8).float(),
        about="Level lines of −log p(x).",
    )
