"""Brownian motion on a grid of times, its refinement, and stochastic integrals (Diehl sec. 5.1)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.diffusion.continuous.time_grids import broadcast_rows, check_increasing


def wiener_process(
    times: Float[Tensor, " times"], shape: tuple[int, ...] = (), *, generator: torch.Generator | None = None
) -> Float[Tensor, "times *shape"]:
    """Independent Wiener processes at the given times, 0 at the first one (Diehl sec. 5.1).

    W_t − W_s ~ N(0, t − s), independent of the past up to s
    """
    check_increasing(times)
    increments = torch.randn(len(times) - 1, *shape, generator=generator, dtype=times.dtype, device=times.device)
    path = (broadcast_rows(times.diff().sqrt(), increments) * increments).cumsum(0)
    return torch.cat([torch.zeros_like(path[:1]), path])


def refine_path(
    times: Float[Tensor, " times"], path: Float[Tensor, "times *shape"], *, generator: torch.Generator | None = None
) -> tuple[Float[Tensor, " finer"], Float[Tensor, "finer *shape"]]:
    """The path with the midpoint of each step added, from the Brownian bridge (Diehl sec. 5.1).

        W_{(s+t)/2} | W_s, W_t ~ N((W_s + W_t)/2, (t − s)/4)

    The values of the path are kept, so that schemes with coarse and fine steps can be compared path by path.
    """
    check_increasing(times)
    std = broadcast_rows(times.diff().sqrt() / 2, path[1:])
    noise = torch.randn(path[1:].shape, generator=generator, dtype=path.dtype, device=path.device)
    middle = (path[:-1] + path[1:]) / 2 + std * noise
    return _interleave(times, (times[:-1] + times[1:]) / 2), _interleave(path, middle)


def ito_sum(
    integrand: Float[Tensor, "times *shape"], path: Float[Tensor, "times *shape"]
) -> Float[Tensor, "times *shape"]:
    """The Itô integral ∫₀ᵗ H dW at every time, H at the left end of each step (Diehl sec. 5.1).

        Σ_k H_{t_k} (W_{t_{k+1}} − W_{t_k})

    For H adapted to the path the sum is a martingale in t: ∫ W dW = (W_t² − t) / 2 in the limit.
    """
    return _integrate(integrand[:-1], path)


def stratonovich_sum(
    integrand: Float[Tensor, "times *shape"], path: Float[Tensor, "times *shape"]
) -> Float[Tensor, "times *shape"]:
    """The Stratonovich integral ∫₀ᵗ H ∘ dW, H the mean of both ends of each step.

        Σ_k ½ (H_{t_k} + H_{t_{k+1}}) (W_{t_{k+1}} − W_{t_k}),   ∫ W ∘ dW = W_t² / 2 exactly

    The ordinary chain rule holds, but the integral is not a martingale.
    """
    return _integrate((integrand[:-1] + integrand[1:]) / 2, path)


def quadratic_variation(path: Float[Tensor, "times *shape"]) -> Float[Tensor, "times *shape"]:
    """Σ_k (X_{t_{k+1}} − X_{t_k})² at every time: t for Brownian motion, 0 for a smooth path."""
    return _cumulate(path.diff(dim=0).square())


def _integrate(values: Tensor, path: Tensor) -> Tensor:
    return _cumulate(values * path.diff(dim=0))


def _cumulate(steps: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(steps[:1]), steps.cumsum(0)])


def _interleave(ends: Tensor, middles: Tensor) -> Tensor:
    """ends[0], middles[0], ends[1], …, ends[-1]."""
    pairs = torch.stack([ends[:-1], middles], dim=1).flatten(0, 1)
    return torch.cat([pairs, ends[-1:]])
