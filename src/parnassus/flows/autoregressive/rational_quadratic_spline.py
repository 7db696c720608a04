"""Monotone rational-quadratic splines with closed-form inverse and derivative (Gregory and Delbourgo 1982)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Knots:
    """Knots (x_k, y_k) of increasing splines with the derivatives δ_k there, for a batch of splines.

    x and y must increase and the derivatives be positive. Outside the first and the last knot a spline is linear with
    slope 1.

    >>> line = torch.linspace(0, 1, 3)[None]
    >>> Knots(line, line, torch.ones(1, 3)).x.shape
    torch.Size([1, 3])
    """

    x: Float[Tensor, "*curves knots"]
    y: Float[Tensor, "*curves knots"]
    derivative: Float[Tensor, "*curves knots"]


@dataclass(frozen=True)
class _Segment:
    """The segment of each spline that contains its argument."""

    left: Float[Tensor, "*curves"]
    bottom: Float[Tensor, "*curves"]
    width: Float[Tensor, "*curves"]
    height: Float[Tensor, "*curves"]
    derivative_left: Float[Tensor, "*curves"]
    derivative_right: Float[Tensor, "*curves"]

    @property
    def chord_slope(self) -> Float[Tensor, "*curves"]:
        """s_k, the slope of the chord of the segment."""
        return self.height / self.width

    @property
    def curvature(self) -> Float[Tensor, "*curves"]:
        """δ_{k+1} + δ_k − 2 s_k, zero where the segment is quadratic."""
        return self.derivative_right + self.derivative_left - 2 * self.chord_slope


def rational_quadratic_spline(
    z: Float[Tensor, "*curves"], knots: Knots
) -> tuple[Float[Tensor, "*curves"], Float[Tensor, "*curves"]]:
    """Return τ(z) and log τ′(z) of the spline through the knots (Durkan et al. 2019, eqs. 4-5).

    τ(z) = y_k + h_k (s_k ξ² + δ_k ξ(1 − ξ)) / (s_k + (δ_{k+1} + δ_k − 2 s_k) ξ(1 − ξ)),   ξ = (z − x_k) / w_k
    """
    inside, clamped = _within(z, knots.x)
    segment = _segment(knots, _index(clamped, knots.x))
    xi = (clamped - segment.left) / segment.width
    product = xi * (1 - xi)
    denominator = segment.chord_slope + segment.curvature * product
    curve = (
        segment.bottom
        + segment.height * (segment.chord_slope * xi.square() + segment.derivative_left * product) / denominator
    )
    return torch.where(inside, curve, _tail(z, knots.x, knots.y)), torch.where(
        inside, _log_derivative(segment, xi), 0.0
    )


def inverse_rational_quadratic_spline(
    x: Float[Tensor, "*curves"], knots: Knots
) -> tuple[Float[Tensor, "*curves"], Float[Tensor, "*curves"]]:
    """Return z with τ(z) = x, and the log-derivative of τ⁻¹ at x (Durkan et al. 2019, eqs. 6-8).

        a ξ² + b ξ + c = 0,   ξ = 2c / (−b − √(b² − 4ac))

    This form of the root avoids cancellation; the discriminant is clamped, since rounding can make it negative.
    """
    inside, clamped = _within(x, knots.y)
    segment = _segment(knots, _index(clamped, knots.y))
    above = clamped - segment.bottom
    a = segment.height * (segment.chord_slope - segment.derivative_left) + above * segment.curvature
    b = segment.height * segment.derivative_left - above * segment.curvature
    c = -segment.chord_slope * above
    root = (b.square() - 4 * a * c).clamp(min=torch.finfo(b.dtype).tiny).sqrt()  # the derivative of √ at 0 is infinite
    xi = (2 * c / (-b - root)).clamp(0, 1)
    curve = segment.left + xi * segment.width
    return torch.where(inside, curve, _tail(x, knots.y, knots.x)), torch.where(
        inside, -_log_derivative(segment, xi), 0.0
    )


def _log_derivative(segment: _Segment, xi: Float[Tensor, "*curves"]) -> Float[Tensor, "*curves"]:
    """Log of s² (δ_{k+1} ξ² + 2 s ξ(1 − ξ) + δ_k (1 − ξ)²) / (s + (δ_{k+1} + δ_k − 2 s) ξ(1 − ξ))²."""
    s, product = segment.chord_slope, xi * (1 - xi)
    weighted = segment.derivative_right * xi.square() + 2 * s * product + segment.derivative_left * (1 - xi).square()
    return 2 * s.log() + weighted.log() - 2 * (s + segment.curvature * product).log()


def _within(
    value: Float[Tensor, "*curves"], borders: Float[Tensor, "*curves knots"]
) -> tuple[Bool[Tensor, "*curves"], Float[Tensor, "*curves"]]:
    """Which values lie between the outer borders, and the values clamped to them, so that no gradient is NaN."""
    low, high = borders[..., 0], borders[..., -1]
    return (low <= value) & (value <= high), torch.minimum(torch.maximum(value, low), high)


def _tail(value: Tensor, borders: Tensor, images: Tensor) -> Tensor:
    """The line of slope 1 through the nearer outer knot."""
    above = value > borders[..., -1]
    return value + torch.where(above, images[..., -1] - borders[..., -1], images[..., 0] - borders[..., 0])


def _index(value: Float[Tensor, "*curves"], borders: Float[Tensor, "*curves knots"]) -> Int[Tensor, "*curves 1"]:
    """The bin of each value: the number of inner borders at or below it."""
    inner = borders[..., 1:-1].detach()
    return (inner <= value.detach()[..., None]).sum(-1, keepdim=True)


def _segment(knots: Knots, index: Int[Tensor, "*curves 1"]) -> _Segment:
    ends = torch.cat([index, index + 1], -1)
    (left, right), (bottom, top), (derivative_left, derivative_right) = (
        values.gather(-1, ends).unbind(-1) for values in (knots.x, knots.y, knots.derivative)
    )
    return _Segment(left, bottom, right - left, top - bottom, derivative_left, derivative_right)
