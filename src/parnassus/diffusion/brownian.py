"""Brownian motion on a grid of times, seen ever more finely, and sums against it (Diehl sec. 5.1)."""

import torch
from jaxtyping import Float
from torch import Tensor


def wiener(
    times: Float[Tensor, " times"], shape: tuple[int, ...] = (), *, generator: torch.Generator | None = None
) -> Float[Tensor, "times *shape"]:
    """Independent Wiener processes at the given times, all 0 at the first of them (Diehl sec. 5.1).

    W_t − W_s ~ N(0, t − s), independent of everything up to s
    """
    increments = torch.randn(len(times) - 1, *shape, generator=generator, dtype=times.dtype, device=times.device)
    path = (beside(_steps(times).sqrt(), increments) * increments).cumsum(0)
    return torch.cat([torch.zeros_like(path[:1]), path])


def refine(
    times: Float[Tensor, " times"], path: Float[Tensor, "times *shape"], *, generator: torch.Generator | None = None
) -> tuple[Float[Tensor, " finer"], Float[Tensor, "finer *shape"]]:
    """The same path with a time added in the middle of each step, drawn from the Brownian bridge (Diehl sec. 5.1).

        W_{(s+t)/2} | W_s, W_t ~ N((W_s + W_t)/2, (t − s)/4)

    What was known of the path stays, so that schemes with coarse and fine steps can be compared path by path.
    """
    spread = beside(_steps(times).sqrt() / 2, path[1:])
    noise = torch.randn(path[1:].shape, generator=generator, dtype=path.dtype, device=path.device)
    middle = (path[:-1] + path[1:]) / 2 + spread * noise
    return _interleave(times, (times[:-1] + times[1:]) / 2), _interleave(path, middle)


def ito_sum(
    integrand: Float[Tensor, "times *shape"], path: Float[Tensor, "times *shape"]
) -> Float[Tensor, "times *shape"]:
    """∫₀ᵗ H dW at every time of the grid, H taken at the left end of each step (Diehl sec. 5.1).

        Σ_k H_{t_k} (W_{t_{k+1}} − W_{t_k})

    H may know the path up to t_k only, so the sum is a martingale in t: ∫ W dW = (W_t² − t) / 2 in the limit.
    """
    return _summed(integrand[:-1], path)


def stratonovich_sum(
    integrand: Float[Tensor, "times *shape"], path: Float[Tensor, "times *shape"]
) -> Float[Tensor, "times *shape"]:
    """∫₀ᵗ H ∘ dW, H taken as the mean of both ends of each step: the chain rule holds, the martingale is lost.

    Σ_k ½ (H_{t_k} + H_{t_{k+1}}) (W_{t_{k+1}} − W_{t_k}),   ∫ W ∘ dW = W_t² / 2 exactly
    """
    return _summed((integrand[:-1] + integrand[1:]) / 2, path)


def quadratic_variation(path: Float[Tensor, "times *shape"]) -> Float[Tensor, "times *shape"]:
    """Σ_k (X_{t_{k+1}} − X_{t_k})² up to every time of the grid: t for Brownian motion, 0 for a smooth path."""
    return _from_zero(path.diff(dim=0).square())


def beside(values: Float[Tensor, "*rows"], like: Float[Tensor, "batch *event"]) -> Tensor:
    """Values shaped so that they multiply `like` row by row: one for each row, or one for all."""
    return values.to(like).reshape(-1, *[1] * (like.dim() - 1))


def _summed(values: Tensor, path: Tensor) -> Tensor:
    return _from_zero(values * path.diff(dim=0))


def _from_zero(steps: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(steps[:1]), steps.cumsum(0)])


def _interleave(ends: Tensor, middles: Tensor) -> Tensor:
    """ends[0], middles[0], ends[1], …, ends[-1]."""
    pairs = torch.stack([ends[:-1], middles], dim=1).flatten(0, 1)
    return torch.cat([pairs, ends[-1:]])


def _steps(times: Tensor) -> Tensor:
    steps = times.diff()
    if not len(steps) or not bool((steps > 0).all()):
        raise ValueError(f"times must rise, from a first to at least a second; got times={times.tolist()[:10]}")
    return steps
