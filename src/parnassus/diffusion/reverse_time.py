"""From noise back to data in continuous time: the reverse of a noising equation, given the score (Anderson 1982).

    dX = (f X − g² ∇log q_t(X)) dt + g dW̄,   t from 1 down to 0

What ancestral sampling does step by step (book alg. 13.2), for every equation of `sde.py`.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.brownian import beside
from parnassus.diffusion.euler_maruyama import Drift, Volatility, euler_maruyama_path
from parnassus.diffusion.sde import NoisingSDE, TimedScore
from parnassus.diffusion.tweedie import tweedie_mean


def reverse_coefficients(sde: NoisingSDE, score: TimedScore, *, eta: float = 1.0) -> tuple[Drift, Volatility]:
    """Drift and volatility of the way back, for times that fall; every eta has the same laws q_t.

        f(t) x − ½ (1 + η²) g(t)² ∇log q_t(x)   and   η g(t)

    η = 1 is the reverse of the noising itself (Anderson 1982), η = 0 the probability flow without noise.
    """
    if not eta >= 0:
        raise ValueError(f"eta must not be negative; got eta={eta}")

    def drift(x: Tensor, t: Tensor) -> Tensor:
        return sde.drift(x, t) - (1 + eta**2) / 2 * beside(sde.noise(t).square(), x) * score(x, at(t, x))

    def volatility(x: Tensor, t: Tensor) -> Tensor:
        return eta * sde.volatility(x, t)

    return drift, volatility


def reverse_path(
    sde: NoisingSDE,
    score: TimedScore,
    start: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    eta: float = 1.0,
) -> Iterator[Float[Tensor, "batch *event"]]:
    """The states at falling times, noise first, by Euler's and Maruyama's steps; `towards_data` makes such times."""
    _require_falling(times)
    yield from euler_maruyama_path(*reverse_coefficients(sde, score, eta=eta), start, times.to(start))


def reverse(
    sde: NoisingSDE,
    score: TimedScore,
    start: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    eta: float = 1.0,
) -> Float[Tensor, "batch *event"]:
    """The state at the last of the falling times, without the noise that is still in it (see `denoised`)."""
    for x in reverse_path(sde, score, start, times, eta=eta):
        last = x
    return denoised(sde, score, last, times[-1])


def denoised(
    sde: NoisingSDE, score: TimedScore, x: Float[Tensor, "batch *event"], t: Float[Tensor, ""]
) -> Float[Tensor, "batch *event"]:
    """E[X_0 | X_t = x] = (x + b² ∇log q_t(x)) / a, by Tweedie's formula: the noise that is left taken out."""
    return tweedie_mean(lambda y: score(y, at(t, y)), x, noise=float(sde.std(t)), scale=float(sde.scale(t)))


def start_noise(sde: NoisingSDE, shape: tuple[int, ...], *, like: Tensor) -> Tensor:
    """Noise of this shape, where the way back begins: N(0, a(1)² + b(1)²), in the type and on the device of `like`."""
    return sde.last_std * torch.randn(shape, dtype=like.dtype, device=like.device)


def at(t: Float[Tensor, ""], x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """The same time for every example, as a score wants it."""
    return t.to(x).expand(len(x))


def _require_falling(times: Tensor) -> None:
    if len(times) < 2 or not bool((times.diff() < 0).all()):
        raise ValueError(f"times must fall, from noise to data, two at least; got times={times.tolist()[:10]}")
