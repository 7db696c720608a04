"""Boltzmann distributions: low energy is high probability, sharpened by the inverse temperature β (book sec. 6.1)."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.divergences import entropy
from parnassus.probability.simplex import require_distribution

Energy: TypeAlias = Callable[[Tensor], Tensor]
"""States along the first axis in, one number for each out."""


def log_partition(energy: Float[Tensor, "*batch states"], *, beta: float = 1.0) -> Float[Tensor, "*batch"]:
    """The logarithm of Z = Σ_s exp(−β E(s)) over the last axis; flatten a table to sum over all (book eq. 6.9)."""
    return _exponents(energy, beta).logsumexp(-1)


def boltzmann(energy: Float[Tensor, "*batch states"], *, beta: float = 1.0) -> Float[Tensor, "*batch states"]:
    """p(s) = exp(−β E(s)) / Z, a distribution over the last axis (book eq. 6.9).

    Uniform at β = 0; all at the least energy as β grows. E = +∞ forbids a state at every β.
    Over z alone, for a given x, it is the posterior p(z|x), where the Z of the whole system cancels.
    """
    return _exponents(energy, beta).softmax(-1)


def free_energy(
    energy: Float[Tensor, "*#batch states"], q: Float[Tensor, "*#batch states"], *, beta: float = 1.0
) -> Float[Tensor, "*#batch"]:
    """F(q) = ⟨E⟩_q − H(q) / β, energy less temperature times entropy (book sec. 6.1).

        KL(q(z|x), p(x,z)) = β F(q) + log Z

    The text leaves out the β and log Z of this relation. Z sums over all x and z, F over z for the x at hand.
    """
    if not beta > 0:
        raise ValueError(f"the free energy needs an inverse temperature β > 0; got beta={beta}")
    require_distribution(q, "q")
    mean = torch.where(q > 0, q * energy, 0.0).sum(-1)
    return mean - entropy(q) / beta


def least_free_energy(energy: Float[Tensor, "*batch states"], *, beta: float = 1.0) -> Float[Tensor, "*batch"]:
    """min_q F(q) = −(1/β) log Σ_z exp(−β E(z)), reached by q = `boltzmann(energy)` (book sec. 6.1)."""
    if not beta > 0:
        raise ValueError(f"the free energy needs an inverse temperature β > 0; got beta={beta}")
    return -log_partition(energy, beta=beta) / beta


def gibbs(
    energy: Energy,
    start: Float[Tensor, "chains units"],
    *,
    sweeps: int,
    beta: float = 1.0,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "chains units"]:
    """Binary states after `sweeps` rounds in which every unit is drawn anew given all others (book sec. 11.1).

        P(s_i = 1 | rest) = σ(β (E(s_i = 0) − E(s_i = 1)))

    Only differences of energies are needed, never Z. The chains are independent.
    """
    _require_chain(sweeps, beta)
    state = start.clone()
    for _ in range(sweeps):
        for unit in range(state.shape[1]):
            off, on = state.clone(), state.clone()
            off[:, unit], on[:, unit] = 0, 1
            rises = torch.sigmoid(beta * (energy(off) - energy(on)))
            state[:, unit] = torch.bernoulli(rises, generator=generator).to(state)
    return state


class Walk(NamedTuple):
    """Where a Metropolis walk came to, and how many of its proposals it took."""

    state: Tensor
    acceptance: Tensor


def metropolis(
    energy: Energy,
    start: Float[Tensor, "chains *event"],
    propose: Callable[[Tensor], Tensor],
    *,
    steps: int,
    beta: float = 1.0,
    generator: torch.Generator | None = None,
) -> Walk:
    """Propose s′, take it with probability min(1, exp(−β (E(s′) − E(s)))), else stay (Metropolis et al. 1953).

    `propose` must be symmetric: as likely to lead from s to s′ as back. States may be of any kind.
    """
    _require_chain(steps, beta)
    state, level = start, energy(start)
    taken = torch.zeros_like(level)
    for _ in range(steps):
        offer = propose(state)
        offered = energy(offer)
        u = torch.rand(level.shape, generator=generator, dtype=level.dtype, device=level.device)
        accept = u < (beta * (level - offered)).exp()
        state = torch.where(accept.view(-1, *[1] * (state.ndim - 1)), offer, state)
        level = torch.where(accept, offered, level)
        taken += accept
    return Walk(state, taken / steps)


def _exponents(energy: Tensor, beta: float) -> Tensor:
    if not 0 <= beta < float("inf"):
        raise ValueError(f"the inverse temperature must satisfy 0 ≤ β < ∞; got beta={beta}")
    if not bool((energy > -torch.inf).all()):
        raise ValueError(f"energies must not be NaN or −∞; the least is {float(energy.detach().amin())}")
    if not bool((energy < torch.inf).any(-1).all()):
        raise ValueError("some state must have a finite energy; all are +∞")
    return torch.where(energy == torch.inf, -torch.inf, -beta * energy)


def _require_chain(steps: int, beta: float) -> None:
    if steps < 1 or not 0 <= beta < float("inf"):
        raise ValueError(f"a chain needs at least one step and 0 ≤ β < ∞; got {steps} steps, beta={beta}")
