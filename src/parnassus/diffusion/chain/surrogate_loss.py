"""The surrogate loss of score matching, DDPM and DDIM: weighted noise errors (book sec. 13.2.8)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.chain.forward_process import Denoiser, diffuse
from parnassus.diffusion.chain.objectives import simple_objective
from parnassus.diffusion.chain.predictions import score_from_noise
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.scores.score_matching import NoiseConditionalScore
from parnassus.diffusion.scores.vector_fields import squared_norm


def surrogate_loss(
    denoiser: Denoiser,
    schedule: Schedule,
    gamma: Float[Tensor, " steps"],
    x0: Float[Tensor, "batch *event"],
    noise: Float[Tensor, "steps batch *event"],
) -> Float[Tensor, " batch"]:
    """L_γ = Σ_t γ_t ‖ε_θ(√ᾱ_t x_0 + √(1 − ᾱ_t) ε_t; t) − ε_t‖², over all steps (book sec. 13.2.8).

    γ_t = 1/T gives the mean of the simple loss, `bound_weight` the error terms of the bound; α in the text is ᾱ.
    The text has a function for each t; in practice one network takes t as input. `weighted_objective` draws one step.
    """
    _check_weight(gamma, schedule)
    steps = [_repeat_step(step, x0) for step in range(len(schedule))]
    errors = [simple_objective(denoiser, schedule, x0, t, eps) for t, eps in zip(steps, noise, strict=True)]
    return gamma.to(x0) @ torch.stack(errors)


def score_surrogate_loss(
    score: NoiseConditionalScore,
    schedule: Schedule,
    weight: Float[Tensor, " steps"],
    x0: Float[Tensor, "batch *event"],
    noise: Float[Tensor, "steps batch *event"],
) -> Float[Tensor, " batch"]:
    """Σ_t λ(t) ‖s(x_t, t) − ∇ log q(x_t | x_0)‖², denoising score matching on the chain (book eq. 13.89).

    It equals L_γ of ε_θ = −√(1 − ᾱ_t) s when λ(t) = `matching_weight(schedule, γ)`.
    """
    _check_weight(weight, schedule)
    errors = []
    for step, eps in enumerate(noise):
        t = _repeat_step(step, x0)
        x = diffuse(schedule, x0, t, eps)
        errors.append(squared_norm(score(x, t) - score_from_noise(schedule, t, eps)))
    return weight.to(x0) @ torch.stack(errors)


def matching_weight(schedule: Schedule, gamma: Float[Tensor, " steps"]) -> Float[Tensor, " steps"]:
    """λ(t) = γ_t (1 − ᾱ_t): score errors so weighted equal noise errors weighted by γ (book sec. 13.2.8)."""
    _check_weight(gamma, schedule)
    return gamma * (1 - schedule.alpha_bar)


def _repeat_step(step: int, x: Tensor) -> Tensor:
    return torch.full((len(x),), step, device=x.device)


def _check_weight(weight: Tensor, schedule: Schedule) -> None:
    if len(weight) != len(schedule):
        raise ValueError(f"weight must have one value for each of the {len(schedule)} steps; got {len(weight)}")
