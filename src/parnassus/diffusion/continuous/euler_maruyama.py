"""The Euler-Maruyama method for stochastic differential equations (Diehl sec. 5.1).

    dX = μ(X, t) dt + σ(X, t) dW

`Drift` and `Volatility` are functions of (x, t) for a batch x and one time t. σ may be a scalar, a tensor like x that
acts on each coordinate, or a matrix (batch, d, m) for each example, where W has m coordinates.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.continuous.time_grids import check_monotone
from parnassus.diffusion.samplers.time_steps import last_state

Drift: TypeAlias = Callable[[Tensor, Tensor], Tensor]
Volatility: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def euler_maruyama_path(
    drift: Drift,
    volatility: Volatility,
    start: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    wiener: Float[Tensor, "times batch *noise"] | None = None,
) -> Iterator[Float[Tensor, "batch *event"]]:
    """Yield X at each of the times, the start included (Diehl sec. 5.1).

        X_{t+Δ} = X_t + μ(X_t, t) Δ + σ(X_t, t) (W_{t+Δ} − W_t)

    Times may decrease: then Δ is negative and the noise has variance |Δ|. With `wiener`, a path at the same times, its
    increments are used; otherwise they are sampled.
    """
    check_monotone(times)
    x = start
    yield x
    for index, delta in enumerate(times.diff()):
        t = times[index]
        sigma = volatility(x, t)
        increment = _sample_increment(x, sigma, delta) if wiener is None else wiener[index + 1] - wiener[index]
        x = x + drift(x, t) * delta + _apply(sigma, increment, x)
        yield x


def euler_maruyama(
    drift: Drift,
    volatility: Volatility,
    start: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    wiener: Float[Tensor, "times batch *noise"] | None = None,
) -> Float[Tensor, "batch *event"]:
    """X at the last of the times (Diehl sec. 5.1).

    The strong order is ½, or 1 if σ does not depend on X; the weak order is 1.
    """
    return last_state(euler_maruyama_path(drift, volatility, start, times, wiener=wiener))


def _sample_increment(x: Tensor, sigma: Tensor, delta: Tensor) -> Tensor:
    """An increment of W over |Δ|, with one coordinate per column of a matrix σ."""
    shape = (len(x), sigma.shape[-1]) if _is_matrix(sigma, x) else x.shape
    return delta.abs().sqrt() * torch.randn(shape, dtype=x.dtype, device=x.device)


def _apply(sigma: Tensor, increment: Tensor, x: Tensor) -> Tensor:
    return (sigma @ increment[..., None])[..., 0] if _is_matrix(sigma, x) else sigma * increment


def _is_matrix(sigma: Tensor, x: Tensor) -> bool:
    return sigma.dim() == x.dim() + 1
