"""Grids of times for continuous diffusion, their checks, and broadcasting over a batch."""

import torch
from jaxtyping import Float
from torch import Tensor


def check_monotone(times: Float[Tensor, " times"]) -> None:
    """Raise a ValueError unless the times increase or decrease strictly."""
    steps = times.diff()
    if not len(steps) or not bool((steps > 0).all() or (steps < 0).all()):
        raise ValueError(f"times must be at least 2 and strictly monotone; got times={times.tolist()[:10]}")


def check_increasing(times: Float[Tensor, " times"]) -> None:
    """Raise a ValueError unless the times increase strictly, from data to noise."""
    if len(times) < 2 or not bool((times.diff() > 0).all()):
        raise ValueError(f"times must be at least 2 and increase strictly; got times={times.tolist()[:10]}")


def check_decreasing(times: Float[Tensor, " times"]) -> None:
    """Raise a ValueError unless the times decrease strictly, from noise to data."""
    if len(times) < 2 or not bool((times.diff() < 0).all()):
        raise ValueError(f"times must be at least 2 and decrease strictly; got times={times.tolist()[:10]}")


def reverse_times(steps: int, *, end: float = 1e-3, exponent: float = 2.0) -> Float[Tensor, " times"]:
    """Times from 1 down to `end`, evenly spaced in t^(1/exponent), so denser near the data."""
    if steps < 1 or not 0 < end < 1 or not exponent > 0:
        raise ValueError(
            f"steps must be ≥ 1, 0 < end < 1 and exponent > 0; got steps={steps}, end={end}, exponent={exponent}"
        )
    return torch.linspace(1, end ** (1 / exponent), steps + 1, dtype=torch.float64, device="cpu") ** exponent


def expand_time(t: Float[Tensor, ""], x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """One time repeated for every example of x."""
    return t.to(x).expand(len(x))


def broadcast_rows(values: Float[Tensor, "*rows"], like: Float[Tensor, "batch *event"]) -> Tensor:
    """Values, one per row or one for all, with trailing axes of size 1 to multiply `like`."""
    return values.to(like).reshape(-1, *[1] * (like.dim() - 1))
