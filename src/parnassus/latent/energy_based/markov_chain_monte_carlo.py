"""Markov chain Monte Carlo: Gibbs sampling and the Metropolis algorithm (book sec. 11.1)."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

Energy: TypeAlias = Callable[[Tensor], Tensor]
"""A function that maps states along the first axis to one energy per state."""


class ChainState(NamedTuple):
    """The states of Markov chains, and the acceptance rate of their proposals.

    >>> ChainState(state=torch.zeros(4, 2), acceptance=torch.tensor(0.7)).state.shape
    torch.Size([4, 2])
    """

    state: Tensor
    acceptance: Tensor


def gibbs_sampling(
    energy: Energy,
    start: Float[Tensor, "chains units"],
    *,
    sweeps: int,
    beta: float = 1.0,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "chains units"]:
    """Binary states after `sweeps` sweeps, each of which resamples every unit given all others (book sec. 11.1).

        P(s_i = 1 | rest) = σ(β (E(s_i = 0) − E(s_i = 1)))

    Only differences of energies are needed, never Z. The chains are independent.
    """
    _check_chain(sweeps, beta)
    state = start.clone()
    for _ in range(sweeps):
        for unit in range(state.shape[1]):
            zero, one = state.clone(), state.clone()
            zero[:, unit], one[:, unit] = 0, 1
            probability = torch.sigmoid(beta * (energy(zero) - energy(one)))
            state[:, unit] = torch.bernoulli(probability, generator=generator).to(state)
    return state


def metropolis_sampling(
    energy: Energy,
    start: Float[Tensor, "chains *event"],
    propose: Callable[[Tensor], Tensor],
    *,
    steps: int,
    beta: float = 1.0,
    generator: torch.Generator | None = None,
) -> ChainState:
    """Accept a proposal s′ with probability min(1, exp(−β (E(s′) − E(s)))), else keep s (Metropolis et al. 1953).

    `propose` must be symmetric: s → s′ as probable as s′ → s. States may have any shape.
    """
    _check_chain(steps, beta)
    state, current = start, energy(start)
    num_accepted = torch.zeros_like(current)
    for _ in range(steps):
        proposal = propose(state)
        proposed = energy(proposal)
        u = torch.rand(current.shape, generator=generator, dtype=current.dtype, device=current.device)
        accept = u < (beta * (current - proposed)).exp()
        state = torch.where(accept.view(-1, *[1] * (state.ndim - 1)), proposal, state)
        current = torch.where(accept, proposed, current)
        num_accepted += accept
    return ChainState(state, num_accepted / steps)


def _check_chain(steps: int, beta: float) -> None:
    if steps < 1 or not 0 <= beta < float("inf"):
        raise ValueError(f"a chain needs at least one step and 0 ≤ beta < ∞; got {steps} steps, beta={beta}")
