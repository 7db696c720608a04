"""The Boltzmann distribution, its partition function and its free energy (book sec. 6.1)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability import check_distribution, entropy


def log_partition(energy: Float[Tensor, "*batch states"], *, beta: float = 1.0) -> Float[Tensor, "*batch"]:
    """The logarithm of Z = Σ_s exp(−β E(s)) over the last axis; flatten a table to sum over all (book eq. 6.9)."""
    return _exponents(energy, beta).logsumexp(-1)


def boltzmann_distribution(
    energy: Float[Tensor, "*batch states"], *, beta: float = 1.0
) -> Float[Tensor, "*batch states"]:
    """p(s) = exp(−β E(s)) / Z, a distribution over the last axis (book eq. 6.9).

    It is uniform at β = 0 and concentrates on the minimum energy as β grows. States with E = +∞ have probability 0 at
    every β. With energies over z for a given x it is the posterior p(z|x), where the Z of the whole system cancels.
    """
    return _exponents(energy, beta).softmax(-1)


def free_energy(
    energy: Float[Tensor, "*#batch states"], q: Float[Tensor, "*#batch states"], *, beta: float = 1.0
) -> Float[Tensor, "*#batch"]:
    """F(q) = ⟨E⟩_q − H(q) / β, the mean energy minus temperature times entropy (book sec. 6.1).

        KL(q(z|x), p(x,z)) = β F(q) + log Z

    The text omits the β and log Z of this relation. Z sums over all x and z, F over z for the given x.
    """
    _check_positive_beta(beta)
    check_distribution(q, "q")
    mean = torch.where(q > 0, q * energy, 0.0).sum(-1)
    return mean - entropy(q) / beta


def min_free_energy(energy: Float[Tensor, "*batch states"], *, beta: float = 1.0) -> Float[Tensor, "*batch"]:
    """min_q F(q) = −(1/β) log Σ_z exp(−β E(z)), attained by q = `boltzmann_distribution(energy)` (book sec. 6.1)."""
    _check_positive_beta(beta)
    return -log_partition(energy, beta=beta) / beta


def _check_positive_beta(beta: float) -> None:
    if not beta > 0:
        raise ValueError(f"a free energy needs an inverse temperature beta > 0; got beta={beta}")


def _exponents(energy: Tensor, beta: float) -> Tensor:
    if not 0 <= beta < float("inf"):
        raise ValueError(f"the inverse temperature must satisfy 0 ≤ beta < ∞; got beta={beta}")
    if not bool((energy > -torch.inf).all()):
        raise ValueError(f"energies must not be NaN or −∞; the smallest is {float(energy.detach().amin())}")
    if not bool((energy < torch.inf).any(-1).all()):
        raise ValueError("at least one state must have a finite energy; all are +∞")
    return torch.where(energy == torch.inf, -torch.inf, -beta * energy)
