"""Langevin dynamics: climb the log-density and shake (book sec. 13.2.7).

Each comes twice: a generator of all states, the start first, and a function that gives the last.
"""

from collections.abc import Callable, Iterator
from math import sqrt
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.fields import squared_length
from parnassus.diffusion.samplers import last_state
from parnassus.diffusion.score_matching import Score

LogDensity: TypeAlias = Callable[[Tensor], Tensor]
"""Examples (batch, …) in, log-densities (batch) out, up to a constant."""


def langevin_path(
    score: Score, start: Float[Tensor, "count *event"], *, step: float, steps: int, temperature: float = 1.0
) -> Iterator[Float[Tensor, "count *event"]]:
    """All states of the unadjusted walk, the start first (book eq. 13.87).

        x ← x + c ∇ log p(x) + √(2cτ) ε

    As c → 0 it settles in p^(1/τ). τ = 1 is the book's; τ = 0 climbs without noise to the nearest maximum.
    """
    _require(step, steps)
    if not temperature >= 0:
        raise ValueError(f"the temperature must not be negative; got temperature={temperature}")
    x, shake = start, sqrt(2 * step * temperature)
    yield x
    for _ in range(steps):
        x = x + step * score(x)
        if shake:
            x = x + shake * torch.randn_like(x)
        yield x


def langevin(
    score: Score, start: Float[Tensor, "count *event"], *, step: float, steps: int, temperature: float = 1.0
) -> Float[Tensor, "count *event"]:
    """The states after `steps` steps of unadjusted Langevin dynamics (book eq. 13.87)."""
    return last_state(langevin_path(score, start, step=step, steps=steps, temperature=temperature))


class Adjusted(NamedTuple):
    """The states after a step, and the probability with which each proposal was accepted."""

    state: Tensor
    acceptance: Tensor


def adjusted_langevin_step(
    log_density: LogDensity, score: Score, x: Float[Tensor, "count *event"], *, step: float
) -> Adjusted:
    """One Langevin step as a proposal, and Metropolis' rule: p is left as it is, at any step size (MALA).

        accept y with probability min(1, p(y) q(x | y) / (p(x) q(y | x))),   q(y | x) = N(x + c ∇ log p(x), 2c I)

    The plain step has a stationary law that is only near p (Roberts and Tweedie 1996).
    """
    _require(step, 0)
    slope = score(x)
    proposal = x + step * slope + sqrt(2 * step) * torch.randn_like(x)
    forth = squared_length(proposal - x - step * slope)
    back = squared_length(x - proposal - step * score(proposal))
    gain = log_density(proposal) - log_density(x) + (forth - back) / (4 * step)
    acceptance = gain.nan_to_num(nan=-torch.inf).clamp(max=0).exp()
    accept = torch.rand_like(acceptance) < acceptance
    return Adjusted(torch.where(accept.view(-1, *[1] * (x.dim() - 1)), proposal, x), acceptance)


def adjusted_langevin_path(
    log_density: LogDensity, score: Score, start: Float[Tensor, "count *event"], *, step: float, steps: int
) -> Iterator[Adjusted]:
    """All states of the Metropolis-adjusted walk, the start first, with the acceptance that led to each."""
    _require(step, steps)
    now = Adjusted(start, start.new_ones(len(start)))
    yield now
    for _ in range(steps):
        now = adjusted_langevin_step(log_density, score, now.state, step=step)
        yield now


def adjusted_langevin(
    log_density: LogDensity, score: Score, start: Float[Tensor, "count *event"], *, step: float, steps: int
) -> Float[Tensor, "count *event"]:
    """The states after `steps` steps of the Metropolis-adjusted Langevin algorithm."""
    path = adjusted_langevin_path(log_density, score, start, step=step, steps=steps)
    return last_state(moved.state for moved in path)


def stationary_variance(variance: float, step: float) -> float:
    """s² / (1 − c/(2s²)): where unadjusted steps of size c settle on the target N(0, s²) (book sec. 13.2.7).

    The walk is x ← (1 − c/s²) x + √(2c) ε; for c ≥ 2s² it has no end, and this is infinite.
    """
    if not variance > 0 or not step > 0:
        raise ValueError(f"need variance > 0 and step > 0; got variance={variance}, step={step}")
    return variance / (1 - step / (2 * variance)) if step < 2 * variance else float("inf")


def _require(step: float, steps: int) -> None:
    if not step > 0 or steps < 0:
        raise ValueError(f"need step > 0 and steps ≥ 0; got step={step}, steps={steps}")
