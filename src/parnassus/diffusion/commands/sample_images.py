"""The `Sample` that experiments with images share: images from a trained diffusion model."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal

import torch
from torch import Tensor

from parnassus.diffusion.guidance import clip_x0
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.samplers.image_sampling import SAMPLER_PATHS, to_pixels
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps, last_state
from parnassus.errors import check_at_least_one
from parnassus.train import NonNegative, Positive


@dataclass(frozen=True)
class ImageSample:
    """Settings of `parnassus sample` for a DDPM of images; calling it with the model gives the images."""

    label: NonNegative[int] | None = None  # index of the class; by default all classes in turn
    guidance_scale: NonNegative[float] = 2.0  # 0 ignores the class, 1 is the conditional model, larger amplifies it
    sampler: Literal["ddim", "ddpm", "heun", "dpm"] = "ddim"  # heun evaluates the network twice per step, others once
    num_inference_steps: Positive[int] | None = None  # sampling steps; by default 50, or all if the chain is shorter
    num_samples: Positive[int] = 100  # number of images

    def __call__(self, model: DDPM) -> Tensor:
        return last_state(self.path(model))

    def path(self, model: DDPM) -> Iterator[Tensor]:
        """Every state from noise to the images, pixels in [0, 1]."""
        timesteps = len(model.schedule)
        steps = min(50, timesteps) if self.num_inference_steps is None else self.num_inference_steps
        self.check_settings(timesteps, model.classes)
        cycle = torch.arange(self.num_samples, device=next(model.parameters()).device) % max(1, model.classes)
        label = cycle if self.label is None else torch.full_like(cycle, self.label)
        denoiser = clip_x0(model.condition_on(label if model.classes else None, self.guidance_scale), model.schedule)
        start = torch.randn(self.num_samples, *model.shape, device=label.device)
        for state in SAMPLER_PATHS[self.sampler](
            denoiser, model.schedule, start, grid=evenly_spaced_steps(timesteps, steps)
        ):
            yield to_pixels(state)

    def check_settings(self, timesteps: int, classes: int) -> None:
        """Raise a ValueError for settings that do not fit the model."""
        if self.label is not None and not classes:
            raise ValueError(f"label must be omitted for a model without classes; got label={self.label}")
        if self.label is not None and not 0 <= self.label < classes:
            raise ValueError(f"label must lie between 0 and {classes - 1}; got label={self.label}")
        if not 0 <= self.guidance_scale < inf:
            raise ValueError(f"guidance_scale must be finite and ≥ 0; got guidance_scale={self.guidance_scale}")
        if self.num_inference_steps is not None and not 1 <= self.num_inference_steps <= timesteps:
            raise ValueError(
                f"num_inference_steps must be between 1 and {timesteps}, the length of the chain; "
                f"got {self.num_inference_steps}"
            )
        check_at_least_one(num_samples=self.num_samples)
