"""Convex functions: by their chords, by their Hessian, and what follows for their minima (Zhao sec. 12)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, jacrev, vmap

from parnassus.optim.convex_sets import Segment
from parnassus.optim.problems import Function


def chord_gap(
    function: Function,
    x1: Float[Tensor, "count dim"],
    x2: Float[Tensor, "count dim"],
    weight: Float[Tensor, " count"],
) -> Float[Tensor, " count"]:
    """λf(x₁) + (1 − λ)f(x₂) − f(λx₁ + (1 − λ)x₂): how far the chord is above the graph (Zhao sec. 12).

    f is convex if this is never negative, and strictly convex if it is positive for x₁ ≠ x₂ and 0 < λ < 1.
    """
    f = vmap(function)
    lam = weight[:, None]
    gap: Tensor = weight * f(x1) + (1 - weight) * f(x2) - f(lam * x1 + (1 - lam) * x2)
    return gap


def find_low_chord(
    function: Function, cloud: Float[Tensor, "count dim"], *, generator: torch.Generator, tries: int = 10_000
) -> Segment | None:
    """A chord that runs below the graph at λ, the lowest of `tries` random ones; None if no chord does.

    Gaps within rounding of 0 do not count. A chord found proves that f is not convex.
    """
    if len(cloud) < 2:
        raise ValueError(f"a chord needs two points; got a cloud of {len(cloud)}")
    first, second = torch.randint(len(cloud), (2, tries), generator=generator)
    weight = torch.rand(tries, generator=generator, dtype=cloud.dtype)
    gap = chord_gap(function, cloud[first], cloud[second], weight)
    size = vmap(function)(cloud).abs().max()
    low = int(gap.argmin())
    if not gap[low] < -64 * torch.finfo(cloud.dtype).eps * (1 + size):
        return None
    return Segment(cloud[first[low]], cloud[second[low]], float(weight[low]))


def least_curvature(function: Function, points: Float[Tensor, "count dim"]) -> Float[Tensor, " count"]:
    """The least eigenvalue of ∇²f at each point; f is convex if and only if it is never negative (Zhao sec. 12)."""
    curvature: Tensor = vmap(jacrev(grad(function)))(points)
    spectrum: Tensor = torch.linalg.eigvalsh(curvature)
    return spectrum[:, 0]


def on_line(function: Function, x: Float[Tensor, " dim"], y: Float[Tensor, " dim"]) -> Function:
    """g(z) = f(zx + (1 − z)y), of a number z; f is convex if and only if every such g is (Zhao sec. 12)."""

    def along(z: Float[Tensor, "*one"]) -> Float[Tensor, ""]:
        return function(z * x + (1 - z) * y)

    return along


class LowerNearby(NamedTuple):
    """A point within reach of x*, with the value that convexity grants it and the one it has."""

    weight: float  # λ
    point: Float[Tensor, " dim"]
    granted: float  # λf(x*) + (1 − λ)f(x₀)
    value: float


def lower_nearby(
    function: Function, x_star: Float[Tensor, " dim"], x0: Float[Tensor, " dim"], *, reach: float
) -> LowerNearby:
    """The proof that a local minimum of a convex f is global, carried out (Zhao sec. 12).

        λ = max(0, 1 − p/‖x* − x₀‖),   f(λx* + (1 − λ)x₀) ≤ λf(x*) + (1 − λ)f(x₀) < f(x*)

    If x₀ were lower than x*, so would be the point at λ, however small the reach p: x* was no local minimum.
    """
    if not reach > 0 or torch.equal(x_star, x0):
        raise ValueError(f"need reach > 0 and two different points; got reach={reach}, x_star={x_star}, x0={x0}")
    weight = max(0.0, 1 - reach / float(torch.linalg.vector_norm(x_star - x0)))
    point = weight * x_star + (1 - weight) * x0
    granted = weight * float(function(x_star)) + (1 - weight) * float(function(x0))
    return LowerNearby(weight, point, granted, float(function(point)))


def linearisation_error(
    function: Function, x: Float[Tensor, " dim"], steps: Float[Tensor, "count dim"]
) -> Float[Tensor, " count"]:
    """f(x + ε) − f(x) − ε·∇f(x) for each ε, about ½ εᵀ∇²f(x) ε (Zhao sec. 12).

    With ε = −η∇f(x) it is what a gradient step gains less than η‖∇f(x)‖².
    """
    values: Tensor = vmap(function)(x + steps)
    linear: Tensor = function(x) + steps @ grad(function)(x)
    return values - linear
