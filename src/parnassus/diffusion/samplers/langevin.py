"""Langevin dynamics, unadjusted and Metropolis-adjusted (MALA) (book sec. 13.2.7).

`…_path` functions yield all states from the start on; the others return the last state.
"""

from collections.abc import Callable, Iterator
from math import sqrt
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.samplers.time_steps import last_state
from parnassus.diffusion.scores.score_matching import ScoreFunction
from parnassus.diffusion.scores.vector_fields import squared_norm

LogDensity: TypeAlias = Callable[[Tensor], Tensor]
"""Examples (batch, …) in, log-densities (batch) out, up to a constant."""


def langevin_path(
    score: ScoreFunction, start: Float[Tensor, "count *event"], *, step: float, steps: int, temperature: float = 1.0
) -> Iterator[Float[Tensor, "count *event"]]:
    """All states of unadjusted Langevin dynamics, from the start on (book eq. 13.87).

        x ← x + c ∇ log p(x) + √(2cτ) ε

    As c → 0 the stationary distribution is p^(1/τ). τ = 1 in the book; τ = 0 is gradient ascent.
    """
    _check_steps(step, steps)
    if not temperature >= 0:
        raise ValueError(f"temperature must be ≥ 0; got temperature={temperature}")
    x, noise_std = start, sqrt(2 * step * temperature)
    yield x
    for _ in range(steps):
        x = x + step * score(x)
        if noise_std:
            x = x + noise_std * torch.randn_like(x)
        yield x


def langevin(
    score: ScoreFunction, start: Float[Tensor, "count *event"], *, step: float, steps: int, temperature: float = 1.0
) -> Float[Tensor, "count *event"]:
    """The states after `steps` steps of unadjusted Langevin dynamics (book eq. 13.87)."""
    return last_state(langevin_path(score, start, step=step, steps=steps, temperature=temperature))


class AdjustedState(NamedTuple):
    """States after a step, and the acceptance probability of each proposal."""

    state: Tensor
    acceptance: Tensor


def adjusted_langevin_step(
    log_density: LogDensity, score: ScoreFunction, x: Float[Tensor, "count *event"], *, step: float
) -> AdjustedState:
    """One step of the Metropolis-adjusted Langevin algorithm (MALA); p is stationary for any step size.

        accept y with probability min(1, p(y) q(x | y) / (p(x) q(y | x))),   q(y | x) = N(x + c ∇ log p(x), 2c I)

    The unadjusted step has p as its stationary distribution only approximately (Roberts and Tweedie 1996).
    """
    _check_steps(step, 0)
    gradient = score(x)
    proposal = x + step * gradient + sqrt(2 * step) * torch.randn_like(x)
    forward = squared_norm(proposal - x - step * gradient)
    backward = squared_norm(x - proposal - step * score(proposal))
    log_ratio = log_density(proposal) - log_density(x) + (forward - backward) / (4 * step)
    acceptance = log_ratio.nan_to_num(nan=-torch.inf).clamp(max=0).exp()
    accept = torch.rand_like(acceptance) < acceptance
    return AdjustedState(torch.where(accept.view(-1, *[1] * (x.dim() - 1)), proposal, x), acceptance)


def adjusted_langevin_path(
    log_density: LogDensity, score: ScoreFunction, start: Float[Tensor, "count *event"], *, step: float, steps: int
) -> Iterator[AdjustedState]:
    """All states of MALA from the start on, with their acceptance probabilities."""
    _check_steps(step, steps)
    current = AdjustedState(start, start.new_ones(len(start)))
    yield current
    for _ in range(steps):
        current = adjusted_langevin_step(log_density, score, current.state, step=step)
        yield current


def adjusted_langevin(
    log_density: LogDensity, score: ScoreFunction, start: Float[Tensor, "count *event"], *, step: float, steps: int
) -> Float[Tensor, "count *event"]:
    """The states after `steps` steps of the Metropolis-adjusted Langevin algorithm."""
    path = adjusted_langevin_path(log_density, score, start, step=step, steps=steps)
    return last_state(step.state for step in path)


def stationary_variance(variance: float, step: float) -> float:
    """s² / (1 − c/(2s²)), the stationary variance of unadjusted steps c for N(0, s²) (book sec. 13.2.7).

    The update is x ← (1 − c/s²) x + √(2c) ε; it diverges for c ≥ 2s², where the result is infinite.
    """
    if not variance > 0 or not step > 0:
        raise ValueError(f"variance and step must be positive; got variance={variance}, step={step}")
    return variance / (1 - step / (2 * variance)) if step < 2 * variance else float("inf")


def _check_steps(step: float, steps: int) -> None:
    if not step > 0 or steps < 0:
        raise ValueError(f"step must be positive and steps ≥ 0; got step={step}, steps={steps}")
