"""Sampling of images from a trained DDPM, with clipped predictions (book secs. 13.2, 13.3)."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.chain.forward_process import Denoiser
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.guidance import clip_x0
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.samplers.ddim import ddim, ddim_path
from parnassus.diffusion.samplers.dpm_solver import dpm_solver_path
from parnassus.diffusion.samplers.heun import heun_path
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps

CHUNK = 1_000
"""Images sampled at a time."""

SAMPLER_PATHS: dict[str, Callable[..., Iterator[Tensor]]] = {
    "ddim": ddim_path,
    "ddpm": partial(ddim_path, eta=1.0),
    "heun": heun_path,
    "dpm": dpm_solver_path,
}
"""Samplers by name. On a subset of the steps DDPM is DDIM with full noise (η = 1)."""


def to_pixels(images: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Values in [−1, 1] mapped to pixels in [0, 1]."""
    return ((images + 1) / 2).clamp(0, 1)


def ddim_images(
    model: DDPM, label: Int[Tensor, " count"], *, guidance_scale: float, steps: int
) -> Float[Tensor, "count *event"]:
    """Images of these classes in [−1, 1] by DDIM, with every prediction x̂_0 clipped to that range.

    A model without classes gives as many images as there are labels.
    """
    grid = evenly_spaced_steps(len(model.schedule), min(steps, len(model.schedule)))

    def sampler(denoiser: Denoiser, schedule: Schedule, start: Tensor) -> Tensor:
        return ddim(clip_x0(denoiser, schedule), schedule, start, grid=grid)

    parts = [
        model.sample(len(part), part if model.classes else None, guidance_scale=guidance_scale, sampler=sampler)
        for part in label.split(CHUNK)
    ]
    return torch.cat(parts)
