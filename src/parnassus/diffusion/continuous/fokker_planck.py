"""The Fokker-Planck equation in one dimension, by a finite-volume scheme (Diehl sec. 5.1).

    ∂_t p = −∂_x (μ p) + ½ ∂_xx (σ² p) = −∂_x J,   J = μ p − ½ ∂_x (σ² p)

The scheme is a Markov jump process between cells: the density stays positive and keeps mass 1 for any time step.
"""

from collections.abc import Iterator
from math import ceil, factorial, log2

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.continuous.euler_maruyama import Drift, Volatility
from parnassus.errors import check_positive
from parnassus.probability import normal_density

TERMS = 20  # of the exponential series at an argument of at most 1; the remainder is below 1e-19


def jump_rates(
    drift: Drift, volatility: Volatility, edges: Float[Tensor, " edges"], t: float = 0.0
) -> Float[Tensor, "cells cells"]:
    """The matrix L of dp/dt = L p for the masses of the cells between `edges`, at time t.

        J = (B(−w) D_l p_l − B(w) D_r p_r) / (2h),   w = 2μh / D,   B(w) = w / (eʷ − 1),   D = σ²

    for the left and right neighbours of an inner edge, h apart, μ and D = ½ (D_l + D_r) at the edge (Scharfetter and
    Gummel 1969). With noise the error is O(h²); without, it is the upwind scheme with error O(h). L_{ij} is the rate of
    jumps from cell j to cell i; the outer edges are reflecting boundaries.
    """
    width = edges.diff()
    if len(width) < 2 or not bool((width > 0).all()):
        raise ValueError(f"edges must increase and form at least 2 cells; got edges={edges.tolist()[:10]}")
    centre, inner_edges, time = (edges[:-1] + edges[1:]) / 2, edges[1:-1], edges.new_tensor(t)
    gap = centre.diff()
    tiny = torch.finfo(edges.dtype).eps  # without noise w is then huge and B selects the upwind cell
    noise = (volatility(centre, time) * torch.ones_like(centre)).square().clamp(min=tiny)
    w = 2 * drift(inner_edges, time) * gap / ((noise[:-1] + noise[1:]) / 2)
    right = _bernoulli(-w) * noise[:-1] / (2 * gap) / width[:-1]
    left = _bernoulli(w) * noise[1:] / (2 * gap) / width[1:]
    jumps = torch.diag(right, -1) + torch.diag(left, 1)
    return jumps - torch.diag(jumps.sum(0))


def transition_matrix(rates: Float[Tensor, "cells cells"], time: float) -> Float[Tensor, "cells cells"]:
    """The transition matrix exp(time · L); column j is the distribution after `time` from cell j.

        exp(τL) = e^{−λτ} Σ_n (τ (L + λI))ⁿ / n!,   λ = max_j |L_jj|

    for a τ = time / 2ˢ with λτ ≤ 1, then squared s times. No term is negative, so there is no cancellation: entries are
    positive and columns sum to 1 up to rounding.
    """
    check_positive(time=time)
    max_rate = float(rates.diagonal().abs().max())
    squarings = max(0, ceil(log2(max(max_rate * time, 1.0))))
    tau = time / 2**squarings
    identity = torch.eye(len(rates), dtype=rates.dtype, device=rates.device)
    jump = tau * (rates + max_rate * identity)
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

    Over a step the coefficients are those at its midpoint: exact in time for constant coefficients.
    """
    if len(density) != len(edges) - 1 or bool((density < 0).any()):
        minimum = float(density.min())
        raise ValueError(
            f"density must have one value ≥ 0 per cell; got {len(density)} values, minimum {minimum:g}, "
            f"and {len(edges)} edges"
        )
    mass = density * edges.diff()
    yield mass / edges.diff()
    for start, end in zip(times[:-1].tolist(), times[1:].tolist(), strict=True):
        rates = jump_rates(drift, volatility, edges, (start + end) / 2)
        mass = transition_matrix(rates, end - start) @ mass
        yield mass / edges.diff()


def fokker_planck(
    drift: Drift,
    volatility: Volatility,
    density: Float[Tensor, " cells"],
    edges: Float[Tensor, " edges"],
    times: Float[Tensor, " times"],
) -> Float[Tensor, "times cells"]:
    """The densities at all the times, one per row (Diehl sec. 5.1)."""
    return torch.stack(list(fokker_planck_path(drift, volatility, density, edges, times)))


def stationary_density(
    drift: Drift, volatility: Volatility, edges: Float[Tensor, " edges"], t: float = 0.0
) -> Float[Tensor, " cells"]:
    """The stationary density of the jump process, from detailed balance at every inner edge.

    p_r / p_l = rate(l → r) / rate(r → l), which is e^{w} for constant noise, exp(∫ 2μ/σ²) in the limit.
    """
    rates = jump_rates(drift, volatility, edges, t)
    ratio = rates.diagonal(-1).log() - rates.diagonal(1).log()
    log_mass = torch.cat([ratio.new_zeros(1), ratio.cumsum(0)])
    return log_mass.softmax(0) / edges.diff()


def heat_kernel(x: Float[Tensor, "*shape"], t: float) -> Float[Tensor, "*shape"]:
    """(2πt)^(−1/2) exp(−x² / (2t)): the density of W_t (Diehl sec. 5.1).

    It solves ∂_t p = ½ ∂_xx p from a point mass. As printed, with exp(−x² / 2), its mass is 1/√t.
    """
    check_positive(t=t)
    return normal_density(x, mean=0.0, variance=t)


def _bernoulli(w: Float[Tensor, " edges"]) -> Float[Tensor, " edges"]:
    """B(w) = w / (eʷ − 1), 1 at w = 0, never negative."""
    small = w.abs() < 1e-6
    return torch.where(small, 1 - w / 2, w / torch.expm1(torch.where(small, 1.0, w)))
