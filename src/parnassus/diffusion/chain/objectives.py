"""Training objectives: weighted errors of noise or data (book eqs. 13.70, 13.76, 13.77).

An `Objective` takes (denoiser, schedule, x0, t, noise) and returns one value per example, summed over coordinates.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.chain.forward_process import Denoiser, diffuse, extract
from parnassus.diffusion.chain.schedules import Schedule

Objective: TypeAlias = Callable[[Denoiser, Schedule, Tensor, Tensor, Tensor], Tensor]
Weight: TypeAlias = Callable[[Schedule], Tensor]


def simple_objective(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
) -> Float[Tensor, " batch"]:
    """The unweighted error ‖ε_θ(x_t; t) − ε‖² of DDPM (book eq. 13.77, alg. 13.1)."""
    return (denoiser(diffuse(schedule, x0, t, noise), t) - noise).square().flatten(1).sum(1)


def error_by_step(
    denoiser: Denoiser,
    schedule: Schedule,
    x0: Float[Tensor, "batch *event"],
    steps: Int[Tensor, " steps"] | None = None,
) -> Float[Tensor, " steps"]:
    """E‖ε_θ(x_t; t) − ε‖² per coordinate at each of the steps (all by default), with new noise."""
    errors = []
    for step in range(len(schedule)) if steps is None else steps.tolist():
        t = torch.full((len(x0),), step, device=x0.device)
        errors.append(simple_objective(denoiser, schedule, x0, t, torch.randn_like(x0)).mean() / x0[0].numel())
    return torch.stack(errors)


def weighted_objective(weight: Weight) -> Objective:
    """weight(t) ‖ε_θ(x_t; t) − ε‖²; with `noise_weight` the KL of step t (book eq. 13.76)."""

    def objective(denoiser: Denoiser, schedule: Schedule, x0: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        error = simple_objective(denoiser, schedule, x0, t, noise)
        return extract(weight(schedule), t, error) * error

    return objective


def weighted_x0_objective(weight: Weight) -> Objective:
    """weight(t) ‖x_θ(x_t; t) − x_0‖² for x_0-prediction; a KL with `x0_weight` (book eq. 13.70)."""

    def objective(predictor: Denoiser, schedule: Schedule, x0: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        error = (predictor(diffuse(schedule, x0, t, noise), t) - x0).square().flatten(1).sum(1)
        return extract(weight(schedule), t, error) * error

    return objective


def x0_weight(schedule: Schedule) -> Float[Tensor, " steps"]:
    """½ (ᾱ_{t−1} − ᾱ_t) / ((1 − ᾱ_{t−1}) (1 − ᾱ_t)) = ½ (SNR_{t−1} − SNR_t) (book eq. 13.70).

    Infinite at the first step, which belongs to the reconstruction term: the sum of KLs starts at the second.
    """
    return (schedule.snr_before - schedule.snr) / 2


def noise_weight(schedule: Schedule) -> Float[Tensor, " steps"]:
    """½ (1 − α_t) / ((1 − ᾱ_{t−1}) α_t), infinite at the first step (book eq. 13.76)."""
    return (1 - schedule.alpha) / ((1 - schedule.alpha_bar_before) * schedule.alpha) / 2


def bound_weight(schedule: Schedule) -> Float[Tensor, " steps"]:
    """`noise_weight`, with ½ / α_1 at the first step: the weighted errors sum to −ELBO up to a constant.

    ½ / α_1 is the weight of the reconstruction term when p(x_0 | x_1) has variance 1 − α_1.
    """
    return torch.cat([1 / (2 * schedule.alpha[:1]), noise_weight(schedule)[1:]])
