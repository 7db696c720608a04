"""The probability flow ODE, with the same marginals as the diffusion (Song et al. 2021).

    dx/dt = f(t) x − ½ g(t)² ∇log q_t(x)

DDIM is a discretisation of it (book sec. 13.2.5). It is invertible and a continuous normalising flow (book sec. 13.1),
so densities can be computed.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Normal

from parnassus.diffusion.continuous.ode_solvers import ODESolver, TimedField, rk4
from parnassus.diffusion.continuous.reverse_sde import reverse_coefficients
from parnassus.diffusion.continuous.sde import NoisingSDE, TimedScore
from parnassus.diffusion.continuous.time_grids import check_increasing
from parnassus.diffusion.scores.vector_fields import VectorField
from parnassus.diffusion.scores.vector_fields import divergence as exact_divergence

Divergence: TypeAlias = Callable[[VectorField, Tensor], tuple[Tensor, Tensor]]
"""Values of a field at x and its divergence, one value per example."""
LogDensity: TypeAlias = Callable[[Tensor], Tensor]


def probability_flow_field(sde: NoisingSDE, score: TimedScore) -> TimedField:
    """The velocity f(t) x − ½ g(t)² ∇log q_t(x) (Song et al. 2021, eq. 13)."""
    velocity, _ = reverse_coefficients(sde, score, eta=0.0)
    return velocity


def solve_probability_flow(
    sde: NoisingSDE,
    score: TimedScore,
    x: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    solver: ODESolver = rk4,
) -> Float[Tensor, "batch *event"]:
    """The state x transported by the flow from the first to the last of the times.

    Decreasing times map noise to samples, increasing times map data to noise; the maps are inverse to each other.
    """
    return solver(probability_flow_field(sde, score), x, times)


def probability_flow_log_prob(
    sde: NoisingSDE,
    score: TimedScore,
    x: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    divergence: Divergence = exact_divergence,
    solver: ODESolver = rk4,
    prior_log_prob: LogDensity | None = None,
) -> Float[Tensor, " batch"]:
    """The log-density of x under the flow, in nats, for increasing times (Song et al. 2021, eq. 39).

        log q_s(x_s) = log q_1(x_1) + ∫_s^1 div v(x_t, t) dt

    The first of the times is that of x. `prior_log_prob` is log q_1, by default of N(0, a(1)² + b(1)²). The divergence
    is exact, with a backward pass per coordinate; `partial(hutchinson_divergence, probe=random_signs(x)[0])` takes one
    pass and is unbiased (Hutchinson 1990).
    """
    check_increasing(times)
    field = probability_flow_field(sde, score)

    def augmented_field(state: Tensor, t: Tensor) -> Tensor:
        velocity, div = divergence(lambda y: field(y, t), state[:, :-1].reshape(x.shape))
        return torch.cat([velocity.flatten(1), div[:, None]], 1).detach()

    last = solver(augmented_field, torch.cat([x.flatten(1), x.new_zeros(len(x), 1)], 1), times)
    log_prob = prior_log_prob or partial(_normal_log_prob, std=sde.prior_std)
    return log_prob(last[:, :-1].reshape(x.shape)) + last[:, -1]


def _normal_log_prob(x: Tensor, *, std: float) -> Tensor:
    log_prob: Tensor = Normal(torch.zeros_like(x), std).log_prob(x).flatten(1).sum(1)
    return log_prob
