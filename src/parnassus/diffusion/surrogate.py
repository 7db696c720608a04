"""The objective behind score matching, DDPM and DDIM: errors of the noise, a weight a step (book sec. 13.2.8)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.fields import squared_length
from parnassus.diffusion.objectives import simple
from parnassus.diffusion.process import Denoiser, diffuse, score_from_noise
from parnassus.diffusion.schedules import Schedule
from parnassus.diffusion.score_matching import LevelledScore


def surrogate(
    denoiser: Denoiser,
    schedule: Schedule,
    gamma: Float[Tensor, " steps"],
    x0: Float[Tensor, "batch *event"],
    noise: Float[Tensor, "steps batch *event"],
) -> Float[Tensor, " batch"]:
    """L_γ = Σ_t γ_t ‖ε_θ(√ᾱ_t x_0 + √(1 − ᾱ_t) ε_t; t) − ε_t‖², all steps of every example (book sec. 13.2.8).

    γ_t = 1/T gives the mean of the simple loss, `bound_weight` the bound's error terms; what the text calls α is ᾱ.
    The text has a function for each t: in practice one network is told t. `objectives.weighted` draws one step instead.
    """
    _require(gamma, schedule)
    steps = [_everywhere(step, x0) for step in range(len(schedule))]
    errors = [simple(denoiser, schedule, x0, t, part) for t, part in zip(steps, noise, strict=True)]
    return gamma.to(x0) @ torch.stack(errors)


def score_surrogate(
    score: LevelledScore,
    schedule: Schedule,
    weight: Float[Tensor, " steps"],
    x0: Float[Tensor, "batch *event"],
    noise: Float[Tensor, "steps batch *event"],
) -> Float[Tensor, " batch"]:
    """Σ_t λ(t) ‖s(x_t, t) − ∇ log q(x_t | x_0)‖²: denoising score matching along the chain (book eq. 13.89).

    It is L_γ of ε_θ = −√(1 − ᾱ_t) s when λ(t) = `matching_weight(schedule, γ)`.
    """
    _require(weight, schedule)
    errors = []
    for step, part in enumerate(noise):
        t = _everywhere(step, x0)
        x = diffuse(schedule, x0, t, part)
        errors.append(squared_length(score(x, t) - score_from_noise(schedule, t, part)))
    return weight.to(x0) @ torch.stack(errors)


def matching_weight(schedule: Schedule, gamma: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """λ(t) = γ_t (1 − ᾱ_t): what a weight on noise is when the error is one of scores (book sec. 13.2.8)."""
    _require(gamma, schedule)
    return gamma * (1 - schedule.alpha_bar)


def _everywhere(step: int, x: Tensor) -> Tensor:
    return torch.full((len(x),), step, device=x.device)


def _require(weight: Tensor, schedule: Schedule) -> None:
    if len(weight) != len(schedule):
        raise ValueError(f"need a weight for each of the {len(schedule)} steps; got {len(weight)}")
