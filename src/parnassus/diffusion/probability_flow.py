"""The probability flow: an equation without noise that carries the same laws as a diffusion (Song et al. 2021).

    dx/dt = f(t) x − ½ g(t)² ∇log q_t(x)

DDIM is a way of solving it (book sec. 13.2.5). It can be followed both ways, from noise to data and back, and it is a
continuous flow (book sec. 13.1), so the density of every point is known.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Normal

from parnassus.diffusion.fields import Field
from parnassus.diffusion.fields import divergence as exact_divergence
from parnassus.diffusion.ode import Solver, TimedField, rk4
from parnassus.diffusion.reverse_time import reverse_coefficients
from parnassus.diffusion.sde import NoisingSDE, TimedScore

Divergence: TypeAlias = Callable[[Field, Tensor], tuple[Tensor, Tensor]]
"""Values of a field at x and its divergence there, one number for each example."""
LogDensity: TypeAlias = Callable[[Tensor], Tensor]


def flow_field(sde: NoisingSDE, score: TimedScore) -> TimedField:
    """The velocity f(t) x − ½ g(t)² ∇log q_t(x): the way back at η = 0 (Song et al. 2021, eq. 13)."""
    velocity, _ = reverse_coefficients(sde, score, eta=0.0)
    return velocity


def follow(
    sde: NoisingSDE,
    score: TimedScore,
    x: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    solver: Solver = rk4,
) -> Float[Tensor, "batch *event"]:
    """Where the flow takes x between the first and the last of the times.

    Falling times turn noise into samples, rising ones data into the noise they came from: one undoes the other.
    """
    return solver(flow_field(sde, score), x, times)


def flow_log_prob(
    sde: NoisingSDE,
    score: TimedScore,
    x: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    divergence: Divergence = exact_divergence,
    solver: Solver = rk4,
    end_law: LogDensity | None = None,
) -> Float[Tensor, " batch"]:
    """The log-density that the flow gives to x, in nats, for rising times (Song et al. 2021, eq. 39).

        log q_s(x_s) = log q_1(x_1) + ∫_s^1 div v(x_t, t) dt

    x counts as a state at the first of the times, where a little noise is in it already. `end_law` is log q_1, that of
    N(0, a(1)² + b(1)²) unless told. The divergence is exact, with a backward pass for each coordinate; with
    `partial(probed_divergence, probe=random_signs(x)[0])` it takes one pass and is right on average (Hutchinson 1990).
    """
    if len(times) < 2 or not bool((times.diff() > 0).all()):
        raise ValueError(f"times must rise, from data to noise, two at least; got times={times.tolist()[:10]}")
    field = flow_field(sde, score)

    def widened(state: Tensor, t: Tensor) -> Tensor:
        velocity, spread = divergence(lambda place: field(place, t), state[:, :-1].reshape(x.shape))
        return torch.cat([velocity.flatten(1), spread[:, None]], 1).detach()

    last = solver(widened, torch.cat([x.flatten(1), x.new_zeros(len(x), 1)], 1), times)
    law = end_law or partial(_normal_log_prob, std=sde.last_std)
    return law(last[:, :-1].reshape(x.shape)) + last[:, -1]


def _normal_log_prob(x: Tensor, *, std: float) -> Tensor:
    log_prob: Tensor = Normal(torch.zeros_like(x), std).log_prob(x).flatten(1).sum(1)
    return log_prob
