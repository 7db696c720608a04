"""Images from a trained model, and images on their way into noise (book secs. 13.2, 13.3)."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.guidance import clipped
from parnassus.diffusion.process import Denoiser, diffuse
from parnassus.diffusion.samplers import ddim, ddim_path, even_grid
from parnassus.diffusion.schedules import Schedule
from parnassus.diffusion.solvers import dpm_path, heun_path

PART = 1_000
"""Images drawn at a time."""

PATHS: dict[str, Callable[..., Iterator[Tensor]]] = {
    "ddim": ddim_path,
    "ddpm": partial(ddim_path, eta=1.0),
    "heun": heun_path,
    "dpm": dpm_path,
}
"""Samplers by name. Over a part of the steps DDPM is DDIM with all the noise (η = 1)."""


def draw_images(
    model: DDPM, label: Int[Tensor, " count"], *, guidance: float, steps: int
) -> Float[Tensor, "count *event"]:
    """New images of these classes, pixels in [−1, 1], by DDIM with every guess x̂_0 kept in that range.

    Of a model without classes as many as there are labels.
    """
    grid = even_grid(len(model.schedule), min(steps, len(model.schedule)))

    def sampler(denoiser: Denoiser, schedule: Schedule, start: Tensor) -> Tensor:
        return ddim(clipped(denoiser, schedule), schedule, start, grid=grid)

    parts = [
        model.sample(len(part), part if model.classes else None, scale=guidance, sampler=sampler)
        for part in label.split(PART)
    ]
    return torch.cat(parts)


def drowned(
    schedule: Schedule, clean: Float[Tensor, "images *event"], noise: Float[Tensor, "images *event"], *, count: int
) -> tuple[list[int], Float[Tensor, "images {count} *event"]]:
    """Images on their way into noise: steps t, and `count` states of each image, the clean one before those steps."""
    moments = torch.linspace(0, 1, count - 1).square()  # cosine noise: most happens early
    steps = moments.mul(len(schedule) - 1).round().long().tolist()
    times = [torch.full((len(clean),), step, device=clean.device) for step in steps]
    return steps, torch.stack([clean, *(diffuse(schedule, clean, t, noise) for t in times)], 1)
