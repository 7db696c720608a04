"""Guidance under the hand: samples of an exact mixture pulled towards a class (book sec. 13.3)."""

from typing import Annotated

import torch

from parnassus.atlas.marks import probe
from parnassus.diffusion.guidance import guidance_scale, guided
from parnassus.diffusion.oracles import MixtureOracle
from parnassus.diffusion.samplers import ddim_path, even_grid
from parnassus.diffusion.schedules import cosine_schedule
from parnassus.touch import Answer, Bars, Numbers, Path, Pick, Real, Whole

CHAIN, STEPS, COUNT, SHOWN = 200, 25, 200, 8
REACH, FINE = 3.5, 61
MEANS = torch.tensor([[-1.2, -0.8], [1.2, -0.8], [0.0, 1.3]], dtype=torch.float64)
STD = 0.6
ORACLE = MixtureOracle(cosine_schedule(CHAIN), MEANS, torch.full((3,), STD, dtype=torch.float64))
CLASSES = ("left", "right", "top")
COUNTS = ("scale s: s ε(x|y) + (1 − s) ε(x)", "weight w: (1 + w) ε(x|y) − w ε(x)")


@probe()
@torch.no_grad()
def pull_towards_a_class(
    kind: Annotated[int, Pick("class", CLASSES)] = 2,
    counted: Annotated[int, Pick("how the book counts", COUNTS)] = 0,
    guidance: Annotated[float, Real("guidance", 0.0, 6.0)] = 1.0,
    seed: Annotated[int, Whole("noise to start from", 0, 99)] = 0,
) -> list[Answer]:
    """Guided samples of three classes that overlap, with exact predictions (book sec. 13.3).

    As a scale, 0 ignores the class, 1 draws the class as it is, more leaves its border to the others and packs the
    samples where no other class could be meant. Now let the book count in weights, and the same number does other
    things: w = 0 is already the class as it is. The text uses one letter for both.
    """
    scale = guidance if counted == 0 else guidance_scale(guidance)
    start = torch.randn(COUNT, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    label = torch.full((COUNT,), kind)
    states = list(ddim_path(guided(ORACLE, label, scale), ORACLE.schedule, start, grid=even_grid(CHAIN, STEPS)))
    end = states[-1]
    clean = torch.zeros(COUNT, dtype=torch.long)
    named = ORACLE.log_posterior(end, clean).argmax(1)
    shares = torch.stack([(named == other).float().mean() for other in range(len(CLASSES))])
    ways = torch.stack(states, 1)[:SHOWN].float()
    line = torch.linspace(-REACH, REACH, FINE, dtype=torch.float64)
    up, across = torch.meshgrid(line, line, indexing="ij")
    places = torch.stack([across, up], -1).reshape(-1, 2)
    density = ORACLE.log_prob(places, torch.zeros(len(places), dtype=torch.long)).exp().view(FINE, FINE)
    inside = end[named == kind] if bool((named == kind).any()) else end
    numbers: dict[str, float | str] = {
        "scale s": scale,
        "weight w = s − 1": scale - 1,
        "share of samples of the class": float(shares[kind]),
        "spread of the samples, over that of the class": float((end - end.mean(0)).square().mean().sqrt()) / STD,
        "distance of their mean from the centre of the class": float((inside.mean(0) - MEANS[kind]).norm()),
    }
    return [
        Path(
            "From noise to the class",
            {f"sample {number}": way for number, way in enumerate(ways, 1)},
            line.float(),
            line.float(),
            density.float(),
            about="Eight samples on their way; dots: where all two hundred end; levels: the density of all classes.",
            dots=end.float(),
        ),
        Bars("What the samples are", CLASSES, shares, marked=kind, about="By the exact classifier."),
        Numbers("In numbers", numbers),
    ]
