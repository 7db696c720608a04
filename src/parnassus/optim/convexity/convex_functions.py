"""Convex functions: tests by chords, Hessian and lines; local minima are global (Zhao sec. 12)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, jacrev, vmap

from parnassus.optim.convexity.convex_sets import Segment, random_pairs
from parnassus.optim.landscapes.problems import Function


def chord_gap(
    function: Function,
    x1: Float[Tensor, "count dim"],
    x2: Float[Tensor, "count dim"],
    weight: Float[Tensor, " count"],
) -> Float[Tensor, " count"]:
    """λf(x₁) + (1 − λ)f(x₂) − f(λx₁ + (1 − λ)x₂): the height of the chord above the graph (Zhao sec. 12).

    f is convex if this is never negative, and strictly convex if it is positive for x₁ ≠ x₂ and 0 < λ < 1.
    """
    f = vmap(function)
    lam = weight[:, None]
    gap: Tensor = weight * f(x1) + (1 - weight) * f(x2) - f(lam * x1 + (1 - lam) * x2)
    return gap


def find_violating_chord(
    function: Function, points: Float[Tensor, "count dim"], *, generator: torch.Generator, num_trials: int = 10_000
) -> Segment | None:
    """The random chord that lies furthest below the graph; None if no chord lies below it.

    Gaps within rounding error of 0 are ignored. A chord found proves that f is not convex.
    """
    if len(points) < 2:
        raise ValueError(f"a chord needs at least two points; got {len(points)}")
    a, b, weight = random_pairs(points, num_trials, generator)
    gap = chord_gap(function, a, b, weight)
    scale = vmap(function)(points).abs().max()
    index = int(gap.argmin())
    if not gap[index] < -64 * torch.finfo(points.dtype).eps * (1 + scale):
        return None
    return Segment(a[index], b[index], float(weight[index]))


def min_hessian_eigenvalue(function: Function, points: Float[Tensor, "count dim"]) -> Float[Tensor, " count"]:
    """Smallest eigenvalue of ∇²f at each point; f is convex if and only if it is never negative (Zhao sec. 12)."""
    hessian: Tensor = vmap(jacrev(grad(function)))(points)
    spectrum: Tensor = torch.linalg.eigvalsh(hessian)
    return spectrum[:, 0]


def restrict_to_line(function: Function, x: Float[Tensor, " dim"], y: Float[Tensor, " dim"]) -> Function:
    """g(z) = f(zx + (1 − z)y) of a scalar z; f is convex if and only if every such g is (Zhao sec. 12)."""

    def restriction(z: Float[Tensor, "*one"]) -> Float[Tensor, ""]:
        return function(z * x + (1 - z) * y)

    return restriction


class NearbyLowerPoint(NamedTuple):
    """A point near x*, with its value and the bound on it by convexity.

    >>> NearbyLowerPoint(weight=0.1, point=torch.zeros(2), bound=0.9, value=0.8).value
    0.8
    """

    weight: float  # λ
    point: Float[Tensor, " dim"]
    bound: float  # λf(x*) + (1 − λ)f(x₀)
    value: float


def nearby_lower_point(
    function: Function, x_star: Float[Tensor, " dim"], x0: Float[Tensor, " dim"], *, radius: float
) -> NearbyLowerPoint:
    """The point within `radius` of x* from the proof that a local minimum of a convex f is global (Zhao sec. 12).

        λ = max(0, 1 − p/‖x* − x₀‖),   f(λx* + (1 − λ)x₀) ≤ λf(x*) + (1 − λ)f(x₀) < f(x*)

    If x₀ is lower than x*, so is the point at λ, for every radius p > 0: x* is then not a local minimum.
    """
    if not radius > 0 or torch.equal(x_star, x0):
        raise ValueError(f"need radius > 0 and two different points; got radius={radius}, x_star={x_star}, x0={x0}")
    weight = max(0.0, 1 - radius / float(torch.linalg.vector_norm(x_star - x0)))
    point = weight * x_star + (1 - weight) * x0
    bound = weight * float(function(x_star)) + (1 - weight) * float(function(x0))
    return NearbyLowerPoint(weight, point, bound, float(function(point)))


def linearisation_error(
    function: Function, x: Float[Tensor, " dim"], steps: Float[Tensor, "count dim"]
) -> Float[Tensor, " count"]:
    """f(x + ε) − f(x) − ε·∇f(x) for each ε, approximately ½ εᵀ∇²f(x) ε (Zhao sec. 12).

    For ε = −η∇f(x), a gradient step decreases f by η‖∇f(x)‖² minus this error.
    """
    values: Tensor = vmap(function)(x + steps)
    linear: Tensor = function(x) + steps @ grad(function)(x)
    return values - linear
