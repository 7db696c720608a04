"""Monotone rational-quadratic splines, their inverse and their slope in closed form (Gregory and Delbourgo 1982)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Knots:
    """Points (x_k, y_k) of increasing curves and their slopes δ_k there, for any number of curves at once.

    x and y must increase and the slopes be positive; beyond the first and the last point the curve is the line of
    slope 1 through it.
    """

    x: Float[Tensor, "*curves knots"]
    y: Float[Tensor, "*curves knots"]
    slope: Float[Tensor, "*curves knots"]


@dataclass(frozen=True)
class _Bin:
    """The piece of each curve on which its number falls."""

    left: Float[Tensor, "*curves"]
    bottom: Float[Tensor, "*curves"]
    width: Float[Tensor, "*curves"]
    height: Float[Tensor, "*curves"]
    slope_left: Float[Tensor, "*curves"]
    slope_right: Float[Tensor, "*curves"]

    @property
    def steepness(self) -> Float[Tensor, "*curves"]:
        """s_k, the slope of the chord."""
        return self.height / self.width

    @property
    def bend(self) -> Float[Tensor, "*curves"]:
        """δ_{k+1} + δ_k − 2 s_k, zero where the piece is a parabola."""
        return self.slope_right + self.slope_left - 2 * self.steepness


def spline(z: Float[Tensor, "*curves"], knots: Knots) -> tuple[Float[Tensor, "*curves"], Float[Tensor, "*curves"]]:
    """Give τ(z) and log τ′(z) of the curve through the knots (Durkan et al. 2019, eqs. 4-5).

    τ(z) = y_k + h_k (s_k ξ² + δ_k ξ(1 − ξ)) / (s_k + (δ_{k+1} + δ_k − 2 s_k) ξ(1 − ξ)),   ξ = (z − x_k) / w_k
    """
    inside, kept = _within(z, knots.x)
    piece = _bin(knots, _index(kept, knots.x))
    xi = (kept - piece.left) / piece.width
    both = xi * (1 - xi)
    denominator = piece.steepness + piece.bend * both
    curve = piece.bottom + piece.height * (piece.steepness * xi.square() + piece.slope_left * both) / denominator
    return torch.where(inside, curve, _tail(z, knots.x, knots.y)), torch.where(inside, _log_slope(piece, xi), 0.0)


def spline_inverse(
    x: Float[Tensor, "*curves"], knots: Knots
) -> tuple[Float[Tensor, "*curves"], Float[Tensor, "*curves"]]:
    """Give z with τ(z) = x, and log of the slope of τ⁻¹ there: the root of a quadratic (Durkan et al. 2019, eqs. 6-8).

        a ξ² + b ξ + c = 0,   ξ = 2c / (−b − √(b² − 4ac))

    This form of the root loses no digits, and rounding may not push the discriminant below 0.
    """
    inside, kept = _within(x, knots.y)
    piece = _bin(knots, _index(kept, knots.y))
    above = kept - piece.bottom
    a = piece.height * (piece.steepness - piece.slope_left) + above * piece.bend
    b = piece.height * piece.slope_left - above * piece.bend
    c = -piece.steepness * above
    root = (b.square() - 4 * a * c).clamp(min=torch.finfo(b.dtype).tiny).sqrt()  # its slope at 0 is infinite
    xi = (2 * c / (-b - root)).clamp(0, 1)
    curve = piece.left + xi * piece.width
    return torch.where(inside, curve, _tail(x, knots.y, knots.x)), torch.where(inside, -_log_slope(piece, xi), 0.0)


def _log_slope(piece: _Bin, xi: Float[Tensor, "*curves"]) -> Float[Tensor, "*curves"]:
    """Log of s² (δ_{k+1} ξ² + 2 s ξ(1 − ξ) + δ_k (1 − ξ)²) / (s + (δ_{k+1} + δ_k − 2 s) ξ(1 − ξ))²."""
    s, both = piece.steepness, xi * (1 - xi)
    weighted = piece.slope_right * xi.square() + 2 * s * both + piece.slope_left * (1 - xi).square()
    return 2 * s.log() + weighted.log() - 2 * (s + piece.bend * both).log()


def _within(
    value: Float[Tensor, "*curves"], borders: Float[Tensor, "*curves knots"]
) -> tuple[Bool[Tensor, "*curves"], Float[Tensor, "*curves"]]:
    """Which numbers the curve itself covers; the others are moved to its ends, so that no gradient is NaN."""
    low, high = borders[..., 0], borders[..., -1]
    return (low <= value) & (value <= high), torch.minimum(torch.maximum(value, low), high)


def _tail(value: Tensor, borders: Tensor, images: Tensor) -> Tensor:
    """The line of slope 1 through the nearer end."""
    above = value > borders[..., -1]
    return value + torch.where(above, images[..., -1] - borders[..., -1], images[..., 0] - borders[..., 0])


def _index(value: Float[Tensor, "*curves"], borders: Float[Tensor, "*curves knots"]) -> Int[Tensor, "*curves 1"]:
    """The bin of each number: how many inner borders lie at or below it."""
    inner = borders[..., 1:-1].detach()
    return (inner <= value.detach()[..., None]).sum(-1, keepdim=True)


def _bin(knots: Knots, index: Int[Tensor, "*curves 1"]) -> _Bin:
    both = torch.cat([index, index + 1], -1)
    (left, right), (bottom, top), (slope_left, slope_right) = (
        values.gather(-1, both).unbind(-1) for values in (knots.x, knots.y, knots.slope)
    )
    return _Bin(left, bottom, right - left, top - bottom, slope_left, slope_right)
