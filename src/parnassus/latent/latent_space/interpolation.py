"""Interpolation between codes, and traversals of single coordinates (book secs. 4.5, 5.2)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.distributions.slerp import slerp


def linear_interpolation(
    start: Float[Tensor, " latent"], end: Float[Tensor, " latent"], *, count: int = 8
) -> Float[Tensor, "count latent"]:
    """`count` codes on the line from `start` to `end`, both included."""
    fraction = _fractions(count, start)
    return (1 - fraction) * start + fraction * end


def spherical_interpolation(
    start: Float[Tensor, " latent"], end: Float[Tensor, " latent"], *, count: int = 8
) -> Float[Tensor, "count latent"]:
    """`count` codes on the great arc from `start` to `end`, with linearly interpolated norms (see `slerp`).

    In many dimensions N(0, I) concentrates on a thin shell; the midpoint of a line lies inside it, that of the arc on
    it.
    """
    return slerp(start, end, _fractions(count, start))


def latent_traversal(
    code: Float[Tensor, " latent"], coordinate: int, *, limit: float = 3.0, count: int = 9
) -> Float[Tensor, "count latent"]:
    """Copies of `code` with one coordinate set to `count` values from −`limit` to `limit`."""
    if not 0 <= coordinate < len(code):
        raise ValueError(f"coordinate must lie between 0 and {len(code) - 1}; got coordinate={coordinate}")
    codes = code.repeat(count, 1)
    codes[:, coordinate] = torch.linspace(-limit, limit, count, dtype=code.dtype, device=code.device)
    return codes


def _fractions(count: int, like: Tensor) -> Float[Tensor, "count 1"]:
    if count < 2:
        raise ValueError(f"count must be at least 2, for both ends; got count={count}")
    return torch.linspace(0, 1, count, dtype=like.dtype, device=like.device)[:, None]
