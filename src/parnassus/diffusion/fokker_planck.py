"""The Fokker-Planck equation on a line: how the density of a diffusion moves (Diehl sec. 5.1).

    ∂_t p = −∂_x (μ p) + ½ ∂_xx (σ² p) = −∂_x J,   J = μ p − ½ ∂_x (σ² p)

The line is cut into cells. What leaves a cell enters its neighbour, so the density becomes the law of a Markov chain
that jumps from cell to cell: it stays positive, and its mass stays 1, whatever the step.
"""

from collections.abc import Iterator
from math import ceil, factorial, log2, pi, sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.euler_maruyama import Drift, Volatility

TERMS = 20  # of the exponential series, at an argument of at most 1: what is left out is below 1e-19


def jump_rates(
    drift: Drift, volatility: Volatility, edges: Float[Tensor, " edges"], t: float = 0.0
) -> Float[Tensor, "cells cells"]:
    """The matrix L of dp/dt = L p for the masses of the cells between `edges`, with coefficients as at time t.

        J = (B(−w) D_l p_l − B(w) D_r p_r) / (2h),   w = 2μh / D,   B(w) = w / (eʷ − 1),   D = σ²

    for the left and right neighbours of a wall, h apart, μ and D = ½ (D_l + D_r) at the wall (Scharfetter and Gummel
    1969). With noise its error is of order h²; without, it takes from upwind, and smears by order h. L_{ij} is the rate
    of jumps from cell j to cell i; nothing passes the outer edges.
    """
    width = edges.diff()
    if len(width) < 2 or not bool((width > 0).all()):
        raise ValueError(f"edges must rise and make at least two cells; got edges={edges.tolist()[:10]}")
    centre, walls, time = (edges[:-1] + edges[1:]) / 2, edges[1:-1], edges.new_tensor(t)
    gap = centre.diff()
    tiny = torch.finfo(edges.dtype).eps  # where there is no noise, w is then huge and B picks the upwind cell
    noise = (volatility(centre, time) * torch.ones_like(centre)).square().clamp(min=tiny)
    w = 2 * drift(walls, time) * gap / ((noise[:-1] + noise[1:]) / 2)
    right = _bernoulli(-w) * noise[:-1] / (2 * gap) / width[:-1]
    left = _bernoulli(w) * noise[1:] / (2 * gap) / width[1:]
    jumps = torch.diag(right, -1) + torch.diag(left, 1)
    return jumps - torch.diag(jumps.sum(0))


def transition_matrix(rates: Float[Tensor, "cells cells"], time: float) -> Float[Tensor, "cells cells"]:
    """exp(time · L): column j is where mass from cell j has gone after `time`.

        exp(τL) = e^{−λτ} Σ_n (τ (L + λI))ⁿ / n!,   λ = max_j |L_jj|

    for a τ = time / 2ˢ with λτ ≤ 1, then squared s times. No term is negative, so nothing cancels: the entries are
    positive and the columns sum to 1 up to rounding.
    """
    if not time > 0:
        raise ValueError(f"the time must be positive; got time={time}")
    fastest = float(rates.diagonal().abs().max())
    squarings = max(0, ceil(log2(max(fastest * time, 1.0))))
    tau = time / 2**squarings
    identity = torch.eye(len(rates), dtype=rates.dtype, device=rates.device)
    jump = tau * (rates + fastest * identity)
    power, series = identity, identity
    for n in range(1, TERMS):
        power = power @ jump
        series = series + power / factorial(n)
    step = series / series.sum(0)  # e^{−λτ} and the remainder of the series at once
    for _ in range(squarings):
        step = step @ step
    return step / step.sum(0)


def fokker_planck_path(
    drift: Drift,
    volatility: Volatility,
    density: Float[Tensor, " cells"],
    edges: Float[Tensor, " edges"],
    times: Float[Tensor, " times"],
) -> Iterator[Float[Tensor, " cells"]]:
    """The mean density of every cell at each of the times, the first included (Diehl sec. 5.1).

    Over a step the coefficients are those of its middle: exact in time where they do not depend on it.
    """
    if len(density) != len(edges) - 1 or bool((density < 0).any()):
        least = float(density.min())
        raise ValueError(
            f"need a density ≥ 0 for each cell; got {len(density)}, the least {least:g}, for {len(edges)} edges"
        )
    mass = density * edges.diff()
    yield mass / edges.diff()
    for now, later in zip(times[:-1].tolist(), times[1:].tolist(), strict=True):
        rates = jump_rates(drift, volatility, edges, (now + later) / 2)
        mass = transition_matrix(rates, later - now) @ mass
        yield mass / edges.diff()


def fokker_planck(
    drift: Drift,
    volatility: Volatility,
    density: Float[Tensor, " cells"],
    edges: Float[Tensor, " edges"],
    times: Float[Tensor, " times"],
) -> Float[Tensor, "times cells"]:
    """The densities at all the times, one a row (Diehl sec. 5.1)."""
    return torch.stack(list(fokker_planck_path(drift, volatility, density, edges, times)))


def stationary_density(
    drift: Drift, volatility: Volatility, edges: Float[Tensor, " edges"], t: float = 0.0
) -> Float[Tensor, " cells"]:
    """The density that the jumps keep: what passes a wall to the right equals what passes it to the left.

    p_r / p_l = rate(l → r) / rate(r → l), which is e^{w} for constant noise: exp(∫ 2μ/σ²) in the limit.
    """
    rates = jump_rates(drift, volatility, edges, t)
    ratio = rates.diagonal(-1).log() - rates.diagonal(1).log()
    log_mass = torch.cat([ratio.new_zeros(1), ratio.cumsum(0)])
    return log_mass.softmax(0) / edges.diff()


def heat_kernel(x: Float[Tensor, "*shape"], t: float) -> Float[Tensor, "*shape"]:
    """(2πt)^(−1/2) exp(−x² / (2t)): the density of W_t, solution of ∂_t p = ½ ∂_xx p from a point (Diehl sec. 5.1).

    As printed, with exp(−x² / 2), its mass is 1/√t.
    """
    if not t > 0:
        raise ValueError(f"the time must be positive; got t={t}")
    return torch.exp(-x.square() / (2 * t)) / sqrt(2 * pi * t)


def _bernoulli(w: Float[Tensor, " walls"]) -> Float[Tensor, " walls"]:
    """B(w) = w / (eʷ − 1), 1 at w = 0, never negative."""
    near = w.abs() < 1e-6
    return torch.where(near, 1 - w / 2, w / torch.expm1(torch.where(near, 1.0, w)))
