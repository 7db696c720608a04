"""The forward (noising) process of the discrete chain (book sec. 13.2.1).

A `Denoiser` maps (x_t, t) to a prediction of the noise ε in x_t. Code counts t from 0, the book from 1.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.distributions import Normal

from parnassus.diffusion.chain.schedules import Schedule

Denoiser: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def extract(values: Float[Tensor, " steps"], t: Int[Tensor, " batch"], like: Float[Tensor, "batch *event"]) -> Tensor:
    """The entries values[t] in the dtype of `like`, with trailing axes of size 1 to multiply it."""
    table = values.to(like.dtype).to(like.device, non_blocking=True)  # dtype first: not every device has float64
    return table[t].reshape(-1, *[1] * (like.dim() - 1))


def forward_step(
    schedule: Schedule,
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """One step of the chain, x_t = √α_t x_{t−1} + √(1 − α_t) ε (book eq. 13.25)."""
    return extract(schedule.alpha.sqrt(), t, x) * x + extract((1 - schedule.alpha).sqrt(), t, x) * noise


def diffuse(
    schedule: Schedule,
    x0: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """All steps up to t at once, x_t = √ᾱ_t x_0 + √(1 − ᾱ_t) ε (book eq. 13.30)."""
    return extract(schedule.alpha_bar.sqrt(), t, x0) * x0 + extract((1 - schedule.alpha_bar).sqrt(), t, x0) * noise


def forward_log_prob(
    schedule: Schedule, chain: Float[Tensor, "steps batch d"], x0: Float[Tensor, "batch d"]
) -> Float[Tensor, " batch"]:
    """The log-density of a whole chain given x_0 (book eqs. 13.22-13.24).

    log q(x_1, …, x_T | x_0) = Σ_t log N(x_t; √α_t x_{t−1}, (1 − α_t) I)
    """
    before = torch.cat([x0[None], chain[:-1]])
    alpha = schedule.alpha.to(chain).reshape(-1, 1, 1)
    kernel = Normal(alpha.sqrt() * before, (1 - alpha).sqrt())
    log_prob: Tensor = kernel.log_prob(chain).sum((0, 2))
    return log_prob


def forward_variance(schedule: Schedule) -> Float[Tensor, " steps"]:
    """1 − α_t, an upper bound of Σ_q(t) and the other common reverse variance (book sec. 13.2.2)."""
    return 1 - schedule.alpha


def noising_states(
    schedule: Schedule, clean: Float[Tensor, "images *event"], noise: Float[Tensor, "images *event"], *, count: int
) -> tuple[list[int], Float[Tensor, "images {count} *event"]]:
    """Steps t, and `count` states of each image: the clean image, then x_t at these steps.

    Steps are spaced quadratically: with a cosine schedule most of the change happens early.
    """
    fractions = torch.linspace(0, 1, count - 1).square()
    steps = fractions.mul(len(schedule) - 1).round().long().tolist()
    times = [torch.full((len(clean),), step, device=clean.device) for step in steps]
    return steps, torch.stack([clean, *(diffuse(schedule, clean, t, noise) for t in times)], 1)
