"""Stochastic differential equations solved step by step with normal increments (Diehl sec. 5.1).

    dX = μ(X, t) dt + σ(X, t) dW

`Drift` and `Volatility` are functions of (x, t) for a batch x and one time t. σ may be a number, a tensor like x that
acts on each coordinate alone, or a matrix (batch, d, m) for each example, where W has m coordinates.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

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
    """X at each of the times, the start included, one at a time (Diehl sec. 5.1).

        X_{t+Δ} = X_t + μ(X_t, t) Δ + σ(X_t, t) (W_{t+Δ} − W_t)

    Times may fall as well as rise: then the equation runs backwards and Δ is negative, while the noise keeps the
    variance |Δ|. With `wiener`, a path on the same times, that noise is used; otherwise it is drawn afresh.
    """
    _require_monotone(times)
    x = start
    yield x
    for index, delta in enumerate(times.diff()):
        t = times[index]
        sigma = volatility(x, t)
        increment = _drawn(x, sigma, delta) if wiener is None else wiener[index + 1] - wiener[index]
        x = x + drift(x, t) * delta + _applied(sigma, increment, x)
        yield x


def euler_maruyama(
    drift: Drift,
    volatility: Volatility,
    start: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    wiener: Float[Tensor, "times batch *noise"] | None = None,
) -> Float[Tensor, "batch *event"]:
    """X at the last of the times only (Diehl sec. 5.1).

    Its error path by path falls as Δ^½, and as Δ where σ does not depend on X; that of expectations falls as Δ.
    """
    for x in euler_maruyama_path(drift, volatility, start, times, wiener=wiener):
        last = x
    return last


def _drawn(x: Tensor, sigma: Tensor, delta: Tensor) -> Tensor:
    """An increment of W over |Δ|, with a coordinate for each column of a matrix σ."""
    shape = (len(x), sigma.shape[-1]) if _is_matrix(sigma, x) else x.shape
    return delta.abs().sqrt() * torch.randn(shape, dtype=x.dtype, device=x.device)


def _applied(sigma: Tensor, increment: Tensor, x: Tensor) -> Tensor:
    return (sigma @ increment[..., None])[..., 0] if _is_matrix(sigma, x) else sigma * increment


def _is_matrix(sigma: Tensor, x: Tensor) -> bool:
    return sigma.dim() == x.dim() + 1


def _require_monotone(times: Tensor) -> None:
    steps = times.diff()
    if not len(steps) or not bool((steps > 0).all() or (steps < 0).all()):
        raise ValueError(f"times must rise or fall throughout, two at least; got times={times.tolist()[:10]}")
