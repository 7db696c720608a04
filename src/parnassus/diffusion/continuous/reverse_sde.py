"""The reverse-time stochastic differential equation of a noising equation (Anderson 1982).

    dX = (f X − g² ∇log q_t(X)) dt + g dW̄,   t from 1 down to 0

The continuous analogue of ancestral sampling (book alg. 13.2), for every equation of `sde.py`.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.continuous.euler_maruyama import Drift, Volatility, euler_maruyama_path
from parnassus.diffusion.continuous.sde import NoisingSDE, TimedScore
from parnassus.diffusion.continuous.time_grids import broadcast_rows, check_decreasing, expand_time
from parnassus.diffusion.samplers.time_steps import last_state
from parnassus.diffusion.scores.tweedie import tweedie_mean


def reverse_coefficients(sde: NoisingSDE, score: TimedScore, *, eta: float = 1.0) -> tuple[Drift, Volatility]:
    """Drift and volatility in reverse time; the marginals q_t are the same for every eta.

        f(t) x − ½ (1 + η²) g(t)² ∇log q_t(x)   and   η g(t)

    η = 1 is the reverse-time equation (Anderson 1982), η = 0 the probability flow without noise.
    """
    if not eta >= 0:
        raise ValueError(f"eta must be ≥ 0; got eta={eta}")

    def drift(x: Tensor, t: Tensor) -> Tensor:
        return sde.drift(x, t) - (1 + eta**2) / 2 * broadcast_rows(sde.diffusion_rate(t).square(), x) * score(
            x, expand_time(t, x)
        )

    def volatility(x: Tensor, t: Tensor) -> Tensor:
        return eta * sde.volatility(x, t)

    return drift, volatility


def reverse_sde_path(
    sde: NoisingSDE,
    score: TimedScore,
    start: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    eta: float = 1.0,
) -> Iterator[Float[Tensor, "batch *event"]]:
    """States at decreasing times, by Euler-Maruyama steps; `reverse_times` gives such times."""
    check_decreasing(times)
    yield from euler_maruyama_path(*reverse_coefficients(sde, score, eta=eta), start, times.to(start))


def reverse_sde(
    sde: NoisingSDE,
    score: TimedScore,
    start: Float[Tensor, "batch *event"],
    times: Float[Tensor, " times"],
    *,
    eta: float = 1.0,
) -> Float[Tensor, "batch *event"]:
    """The state at the last of the decreasing times, with the remaining noise removed (see `denoise`)."""
    last = last_state(reverse_sde_path(sde, score, start, times, eta=eta))
    return denoise(sde, score, last, times[-1])


def denoise(
    sde: NoisingSDE, score: TimedScore, x: Float[Tensor, "batch *event"], t: Float[Tensor, ""]
) -> Float[Tensor, "batch *event"]:
    """E[X_0 | X_t = x] = (x + b² ∇log q_t(x)) / a, by Tweedie's formula."""
    return tweedie_mean(
        lambda y: score(y, expand_time(t, y)), x, noise_std=float(sde.std(t)), scale=float(sde.scale(t))
    )


def sample_prior(sde: NoisingSDE, shape: tuple[int, ...], *, like: Tensor) -> Tensor:
    """A sample of the prior N(0, a(1)² + b(1)²), in the dtype and on the device of `like`."""
    return sde.prior_std * torch.randn(shape, dtype=like.dtype, device=like.device)
