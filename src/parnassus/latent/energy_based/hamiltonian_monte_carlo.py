"""Hamiltonian Monte Carlo (HMC) with the leapfrog integrator (Neal 2011)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.latent.energy_based.markov_chain_monte_carlo import ChainState
from parnassus.probability.inference.importance_sampling import LogDensity


def leapfrog(
    log_density: LogDensity,
    x: Float[Tensor, "*batch dim"],
    momentum: Float[Tensor, "*batch dim"],
    *,
    step_size: Float[Tensor, "*#batch"],
    num_steps: int,
) -> tuple[Float[Tensor, "*batch dim"], Float[Tensor, "*batch dim"]]:
    """Integrate Hamilton's equations ẋ = m, ṁ = ∇ log f(x) by leapfrog steps; reversible and volume-preserving.

        m ← m + ½ε ∇ log f(x),   x ← x + ε m,   m ← m + ½ε ∇ log f(x)

    The energy error is O(ε²), however long the trajectory. `log_density` maps states (*batch, dim) to log-densities
    (*batch), up to a constant.
    """
    size = step_size[..., None]
    momentum = momentum + size / 2 * _gradient(log_density, x)
    for step in range(num_steps):
        x = x + size * momentum
        kick = size if step < num_steps - 1 else size / 2
        momentum = momentum + kick * _gradient(log_density, x)
    return x, momentum


def hmc_step(
    log_density: LogDensity,
    x: Float[Tensor, "*batch dim"],
    *,
    step_size: Float[Tensor, "*#batch"],
    num_leapfrog_steps: int = 10,
) -> ChainState:
    """One step that leaves f invariant: a new momentum, a leapfrog trajectory and a Metropolis test.

    accept with probability min(1, exp(−ΔH)),   H(x, m) = −log f(x) + ½‖m‖²                (Neal 2011)
    """
    if num_leapfrog_steps < 1 or not bool((step_size > 0).all()):
        raise ValueError(
            "num_leapfrog_steps and step_size must be positive; "
            f"got num_leapfrog_steps={num_leapfrog_steps}, smallest step_size {float(step_size.min()):g}"
        )
    with torch.no_grad():
        momentum = torch.randn_like(x)
        before = log_density(x) - momentum.square().sum(-1) / 2
        end, last = leapfrog(log_density, x, momentum, step_size=step_size, num_steps=num_leapfrog_steps)
        after = log_density(end) - last.square().sum(-1) / 2
        acceptance = (after - before).nan_to_num(nan=-torch.inf).exp().clamp(max=1)  # reject diverged trajectories
        accept = torch.rand_like(acceptance) < acceptance
        return ChainState(torch.where(accept[..., None], end, x), acceptance)


def _gradient(log_density: LogDensity, x: Tensor) -> Tensor:
    with torch.enable_grad():
        point = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(log_density(point).sum(), point)
    return gradient
