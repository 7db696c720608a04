"""Steps of expectation-maximisation for a Gaussian mixture (Diehl ex. 6.3)."""

from collections.abc import Callable
from itertools import islice
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.data.built_in.toy import checkerboard, eight_gaussians, moons, rings
from parnassus.probability.divergences.entropy import entropy
from parnassus.probability.inference.gaussian_mixture import (
    GaussianMixture,
    em_iterates,
    five_gaussians,
    kmeans_plus_plus_start,
)
from parnassus.report.style import PALETTE, rgb
from parnassus.widgets import Answer, Bars, Curves, Images, IntSlider, Numbers, Select, Trajectories

POINTS, STEPS = 200, 30
SIDE = 200  # pixels per side of the image
DOT_RADII = (1.7, 2.6)  # radius of a dot and of its white rim, in pixels
COLOURS = torch.tensor([rgb(colour) for colour in PALETTE]).double() / 255


def _five_gaussians(seed: int) -> Tensor:
    torch.manual_seed(seed)
    return five_gaussians().sample(POINTS)


DATASETS: dict[str, Callable[[int], Tensor]] = {
    "five Gaussians": _five_gaussians,
    "eight Gaussians": lambda seed: eight_gaussians(POINTS, noise=0.25, seed=seed).x.double(),
    "two moons": lambda seed: moons(POINTS, noise=0.08, seed=seed).x.double(),
    "rings": lambda seed: rings(POINTS, noise=0.05, seed=seed).x.double(),
    "checkerboard": lambda seed: checkerboard(POINTS, seed=seed).x.double(),
}


@probe()
@torch.no_grad()
def run_expectation_maximisation(
    data: Annotated[int, Select("data", tuple(DATASETS))] = 0,
    components: Annotated[int, IntSlider("components", 1, 10)] = 5,
    step: Annotated[int, IntSlider("EM steps", 0, STEPS)] = 0,
    seed: Annotated[int, IntSlider("seed of data and initialisation", 0, 99)] = 0,
) -> list[Answer]:
    """Gaussian mixture fitted by EM: responsibilities, then weighted moments, repeated (Diehl ex. 6.3).

    Points have the mixed colour of the components responsible for them. The likelihood never decreases, but for some
    seeds EM ends in a local maximum with one component over two clusters. On the moons and rings more components
    approximate a density that is not a Gaussian mixture.
    """
    x = list(DATASETS.values())[data](seed)
    x = (x - x.mean(0)) / x.std()
    path = list(islice(em_iterates(x, kmeans_plus_plus_start(x, components, seed=seed)), STEPS + 1))
    log_likelihoods = [float(mixture.log_prob(x).mean()) for mixture in path]
    mixture = path[step]
    extent = 1.15 * float(x.abs().max())
    responsibilities = mixture.responsibilities(x)
    numbers: dict[str, float | str] = {
        "mean log-likelihood": log_likelihoods[step],
        "increase in the last step": log_likelihoods[step] - log_likelihoods[step - 1] if step else "–",
        "remaining increase": log_likelihoods[-1] - log_likelihoods[step],
        "components per point (exp. entropy)": float(entropy(responsibilities).exp().mean()),
    }
    return [
        Images("Responsibilities", _render_mixture(mixture, x, extent)[None], [f"step {step}"], about=CAPTION),
        Curves(
            "Likelihood",
            {"mean of log p(x)": ([float(each) for each in range(STEPS + 1)], log_likelihoods)},
            x_label="step",
            y_label="nats per point",
            marked=float(step),
        ),
        _mean_trajectories(path[: step + 1], extent),
        Bars("Weights", [f"component {i + 1}" for i in range(components)], mixture.weights.float()),
        Numbers("Convergence", numbers, about="No EM step decreases the likelihood."),
    ]


CAPTION = "Ellipses show two standard deviations. Points mix the colours of the components by their responsibilities."


def _render_mixture(mixture: GaussianMixture, x: Tensor, extent: float) -> Tensor:
    """Points and ellipses on white, (3, side, side), row 0 on top."""
    line = extent * ((2 * torch.arange(SIDE, dtype=torch.float64) + 1) / SIDE - 1)
    y, x_axis = torch.meshgrid(line.flip(0), line, indexing="ij")
    grid = torch.stack([x_axis, y], -1).reshape(-1, 2)
    pixel = 2 * extent / SIDE
    colours = COLOURS[: len(mixture.weights)]
    image = torch.ones(SIDE * SIDE, 3, dtype=torch.float64)
    for mean, precision, colour in zip(mixture.means, torch.linalg.inv(mixture.covariances), colours, strict=True):
        gradient = (grid - mean) @ precision
        radius = (gradient * (grid - mean)).sum(1).clamp(min=1e-12).sqrt()
        distance = (radius - 2).abs() / (gradient.norm(dim=1) / radius * pixel)  # to the ellipse, in pixels
        image = torch.lerp(image, colour.expand_as(image), (1.6 - distance).clamp(0, 1)[:, None])
    distance, nearest = torch.cdist(grid.float(), x.float()).min(1)  # float32 takes half the time
    core, rim = ((radius + 0.5 - distance / pixel).clamp(0, 1)[:, None] for radius in DOT_RADII)
    colour = (mixture.responsibilities(x) @ colours)[nearest]
    image = core * colour + (1 - core) * (rim + (1 - rim) * image)
    return image.T.reshape(3, SIDE, SIDE).clamp(0, 1).float()


def _mean_trajectories(path: list[GaussianMixture], extent: float) -> Trajectories:
    """Trajectories of the means over contours of the current density."""
    side = torch.linspace(-extent, extent, 61, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(side, side, indexing="xy"), -1).reshape(-1, 2)
    levels = -path[-1].log_prob(grid).view(61, 61)
    trajectories = torch.stack([mixture.means for mixture in path], 1)
    return Trajectories(
        "Density and trajectories of the means",
        {f"component {i + 1}": trajectory.float() for i, trajectory in enumerate(trajectories)},
        side.float(),
        side.float(),
        levels.clamp(max=float(levels.min()) + 8).float(),
        about="Contours of −log p(x).",
    )
