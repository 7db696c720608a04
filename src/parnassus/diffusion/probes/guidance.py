"""Probe of classifier-free guidance with exact predictions for a mixture (book sec. 13.3)."""

from typing import Annotated

import torch

from parnassus.atlas.decorators import probe
from parnassus.diffusion.chain.exact_denoisers import MixtureDenoiser
from parnassus.diffusion.chain.schedules import cosine_schedule
from parnassus.diffusion.guidance import classifier_free_guidance, scale_from_weight
from parnassus.diffusion.samplers.ddim import ddim_path
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps
from parnassus.probability import standard_normal
from parnassus.widgets import Answer, Bars, FloatSlider, IntSlider, Numbers, Select, Trajectories

CHAIN, STEPS, COUNT, SHOWN = 200, 25, 200, 8
LIMIT, GRID_SIZE = 3.5, 61
MEANS = torch.tensor([[-1.2, -0.8], [1.2, -0.8], [0.0, 1.3]], dtype=torch.float64)
STD = 0.6
DENOISER = MixtureDenoiser(cosine_schedule(CHAIN), MEANS, torch.full((3,), STD, dtype=torch.float64))
CLASSES = ("left", "right", "top")
CONVENTIONS = ("scale s: s ε(x|y) + (1 − s) ε(x)", "weight w: (1 + w) ε(x|y) − w ε(x)")


@probe()
@torch.no_grad()
def guided_sampling(
    label: Annotated[int, Select("class", CLASSES)] = 2,
    convention: Annotated[int, Select("convention", CONVENTIONS)] = 0,
    guidance: Annotated[float, FloatSlider("guidance", 0.0, 6.0)] = 1.0,
    seed: Annotated[int, IntSlider("seed of the initial noise", 0, 99)] = 0,
) -> list[Answer]:
    """Classifier-free guidance of three overlapping classes, with exact predictions (book sec. 13.3).

    Scale 0 ignores the class, 1 samples the class distribution, larger values concentrate the samples away from the
    other classes. The book uses one letter for the scale s and the weight w = s − 1; w = 0 is the class distribution.
    """
    scale = guidance if convention == 0 else scale_from_weight(guidance)
    start = standard_normal(COUNT, 2, seed=seed)
    labels = torch.full((COUNT,), label)
    states = list(
        ddim_path(
            classifier_free_guidance(DENOISER, labels, scale),
            DENOISER.schedule,
            start,
            grid=evenly_spaced_steps(CHAIN, STEPS),
        )
    )
    end = states[-1]
    clean = torch.zeros(COUNT, dtype=torch.long)
    predicted = DENOISER.log_posterior(end, clean).argmax(1)
    fractions = torch.stack([(predicted == other).float().mean() for other in range(len(CLASSES))])
    trajectories = torch.stack(states, 1)[:SHOWN].float()
    line = torch.linspace(-LIMIT, LIMIT, GRID_SIZE, dtype=torch.float64)
    x2, x1 = torch.meshgrid(line, line, indexing="ij")
    points = torch.stack([x1, x2], -1).reshape(-1, 2)
    density = DENOISER.log_prob(points, torch.zeros(len(points), dtype=torch.long)).exp().view(GRID_SIZE, GRID_SIZE)
    of_class = end[predicted == label] if bool((predicted == label).any()) else end
    numbers: dict[str, float | str] = {
        "scale s": scale,
        "weight w = s − 1": scale - 1,
        "fraction of samples in the class": float(fractions[label]),
        "standard deviation of the samples, relative to the class": float((end - end.mean(0)).square().mean().sqrt())
        / STD,
        "distance of their mean from the class mean": float((of_class.mean(0) - MEANS[label]).norm()),
    }
    return [
        Trajectories(
            "Sampling trajectories",
            {f"sample {number}": path for number, path in enumerate(trajectories, 1)},
            line.float(),
            line.float(),
            density.float(),
            about="Trajectories of eight samples; dots: all 200 samples; level lines: density of all classes.",
            points=end.float(),
        ),
        Bars("Classes of the samples", CLASSES, fractions, marked=label, about="By the exact classifier."),
        Numbers("Metrics", numbers),
    ]
