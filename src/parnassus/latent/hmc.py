"""Hamiltonian Monte Carlo: a state given a random push, and followed along the slopes of its log-density."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

LogDensity: TypeAlias = Callable[[Tensor], Tensor]
"""States (*batch, dim) in, log-densities (*batch) out, up to a constant."""


class Move(NamedTuple):
    """The states after a step, and the probabilities with which they were accepted."""

    state: Tensor
    acceptance: Tensor


def leapfrog(
    log_density: LogDensity,
    x: Float[Tensor, "*batch dim"],
    momentum: Float[Tensor, "*batch dim"],
    *,
    step: Float[Tensor, "*#batch"],
    steps: int,
) -> tuple[Float[Tensor, "*batch dim"], Float[Tensor, "*batch dim"]]:
    """Hamilton's equations ẋ = m, ṁ = ∇ log f(x) by `steps` leaps: reversible, and volumes are kept.

        m ← m + ½ε ∇ log f(x),   x ← x + ε m,   m ← m + ½ε ∇ log f(x)

    The energy is kept up to O(ε²) however long the path.
    """
    size = step[..., None]
    momentum = momentum + size / 2 * _slope(log_density, x)
    for leap in range(steps):
        x = x + size * momentum
        whole = size if leap < steps - 1 else size / 2
        momentum = momentum + whole * _slope(log_density, x)
    return x, momentum


def hmc_step(
    log_density: LogDensity, x: Float[Tensor, "*batch dim"], *, step: Float[Tensor, "*#batch"], steps: int = 10
) -> Move:
    """One step that leaves f invariant: a fresh momentum, a path, and Metropolis' rule for what leaps err by.

    accept with probability min(1, exp(−ΔH)),   H(x, m) = −log f(x) + ½‖m‖²                (Neal 2011)
    """
    if steps < 1 or not bool((step > 0).all()):
        raise ValueError(f"a path needs leaps of positive size; got steps={steps}, least size {float(step.min()):g}")
    with torch.no_grad():
        momentum = torch.randn_like(x)
        before = log_density(x) - momentum.square().sum(-1) / 2
        end, last = leapfrog(log_density, x, momentum, step=step, steps=steps)
        after = log_density(end) - last.square().sum(-1) / 2
        acceptance = (after - before).nan_to_num(nan=-torch.inf).exp().clamp(max=1)  # a path that blew up stays
        accept = torch.rand_like(acceptance) < acceptance
        return Move(torch.where(accept[..., None], end, x), acceptance)


def _slope(log_density: LogDensity, x: Tensor) -> Tensor:
    with torch.enable_grad():
        point = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(log_density(point).sum(), point)
    return slope
