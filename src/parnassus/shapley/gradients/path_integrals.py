"""Integrals of gradients along straight lines, adaptive to the kinks of ReLU networks.

On every line the integral of the directional derivative is known: f(end) − f(start). So each segment of a line has a
known integration error, and a kink lies where the tangents at the ends of a segment meet: there it is split. Between
the kinks of a ReLU network gradients are constant, and segments exact.

This takes about twenty gradients per kink. A line with more kinks than the budget allows, as in networks for images,
is better served by evenly spaced points, whose error decreases as 1/count: its remaining budget is spent on them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.shapley.gradients.model_gradients import MAX_GRADIENT_VALUES, ModelGradients

NODES = 7
"""Gauss-Legendre nodes per segment: exact for gradients that are polynomials of degree 13."""
GRADIENTS_PER_KINK = 3 * NODES
"""Number of gradients to locate a kink: a split, and the segments on both sides."""
KINK_THRESHOLD = 0.2
"""Fraction of a derivative's variation in the highest coefficients above which there are kinks, not only curvature."""
MIN_LENGTH = 2.0**-30
"""Shortest segment, relative to its line, that is split: below it the model is discontinuous or constant."""


class LineIntegrals(NamedTuple):
    """Sums over the lines of a row of step_j ∫ ∂_j f, their errors, and the number of gradients per row."""

    integrals: Float[Tensor, "rows outputs features"]
    errors: Float[Tensor, "rows outputs features"]
    evaluations: int


class Segments(NamedTuple):
    """Segments of lines, from `left` to `right` in [0, 1], with the model's outputs at both ends."""

    line: Int[Tensor, " count"]
    left: Float[Tensor, " count"]
    right: Float[Tensor, " count"]
    at_left: Float[Tensor, "count outputs"]
    at_right: Float[Tensor, "count outputs"]

    def select(self, chosen: Tensor) -> "Segments":
        return Segments(*(each[chosen] for each in self))


def integrate_along_lines(
    gradients: ModelGradients,
    x: Float[Tensor, "rows *shape"],
    background: Float[Tensor, "others *shape"],
    *,
    tolerance: float,
    max_gradients: int,
) -> LineIntegrals:
    """The mean over the lines from all baselines b to x: (x_j − b_j) ∫₀¹ ∂_j f(b + α (x − b)) dα.

    A segment is split while its error is above `tolerance`, relative to the output. If a line shows more kinks than
    `max_gradients` can locate, the rest of it is integrated at evenly spaced points.
    """
    others, rows = len(background), len(x)
    at_x, at_background = gradients.outputs(x), gradients.outputs(background)
    line = torch.arange(rows * others, device=x.device)
    zero = torch.zeros_like(line).double()
    todo = Segments(line, zero, zero + 1, at_background[line % others], at_x[line // others])
    max_error = max(tolerance, 4 * gradients.eps(x)) * todo.at_right.abs().maximum(todo.at_left.abs()).amax(1)
    integrals = x.new_zeros(rows, at_x.shape[1], x[0].numel(), dtype=torch.float64)
    squares, used = torch.zeros_like(integrals), torch.zeros_like(line)
    batch_size = max(1, MAX_GRADIENT_VALUES // (NODES * integrals[0].numel()))
    needed = used.clone()  # to locate the kinks that each line showed in the last round
    while len(todo.line):
        num_segments = todo.line.bincount(minlength=len(used))
        exhausted = (used + needed.maximum(NODES * num_segments) > max_gradients) & (used > 0)
        remaining = todo.select(exhausted[todo.line])
        for part in midpoint_rule(
            gradients, x, background, remaining, (max_gradients - used) // num_segments.clamp(min=1)
        ):
            used.index_add_(0, part.line, torch.full_like(part.line, part.num_points))
            integrals.index_add_(0, part.line // others, part.integrals / others)
            squares.index_add_(0, part.line // others, (part.errors / others).square())
        todo = todo.select(~exhausted[todo.line])
        if not len(todo.line):
            break
        used.index_add_(0, todo.line, torch.full_like(todo.line, NODES))
        left = (max_gradients - used) // num_segments.clamp(min=1)
        needed.zero_()
        split = [todo.select(todo.line < 0)]
        for batch in torch.arange(len(todo.line), device=x.device).split(batch_size):
            segments = todo.select(batch)
            found = gauss_legendre(gradients, x, background, segments)
            line, length = segments.line, segments.right - segments.left
            is_last = left[line] < torch.where(found.kinks > 1, NODES, 2 * NODES)  # so few would not improve it
            done = (found.error <= max_error[line]) | (length < MIN_LENGTH) | is_last
            needed.index_add_(0, line[~done], GRADIENTS_PER_KINK * found.kinks[~done])
            integrals.index_add_(0, line[done] // others, found.integrals[done] / others)
            squares.index_add_(0, line[done] // others, (found.errors[done] / others).square())
            split.append(split_segments(gradients, x, background, segments.select(~done), found.split_at[~done]))
        todo = Segments(*(torch.cat(each) for each in zip(*split, strict=True)))
    return LineIntegrals(integrals, squares.sqrt(), int(used.sum()) // rows)


class SegmentIntegrals(NamedTuple):
    """Results per segment: integrals and errors by feature, total error, position to split, and number of kinks."""

    integrals: Float[Tensor, "count outputs features"]
    errors: Float[Tensor, "count outputs features"]
    error: Float[Tensor, " count"]
    split_at: Float[Tensor, " count"]
    kinks: Int[Tensor, " count"]


def gauss_legendre(
    gradients: ModelGradients,
    x: Float[Tensor, "rows *shape"],
    background: Float[Tensor, "others *shape"],
    segments: Segments,
) -> SegmentIntegrals:
    """Gauss-Legendre quadrature; errors by feature from the last two Legendre coefficients of its derivative.

    They are small only where a polynomial of this degree fits the derivative, without a kink between the nodes.
    """
    nodes, rules = legendre_rules(NODES)
    nodes, rules = nodes.to(x.device), rules.to(x.device)
    length = (segments.right - segments.left)[:, None]
    found = gradients_on_lines(gradients, x, background, segments.line, segments.left[:, None] + length * nodes)
    products = found * line_steps(x, background, segments.line)[:, None, None]
    sums = torch.einsum("rn,cnof->rcof", rules, products) * length[:, None]
    integrals, errors = sums[0], (sums[1].square() + sums[2].square()).sqrt()
    change = segments.at_right - segments.at_left
    gap = (change - integrals.sum(-1)).abs()
    error, worst = torch.maximum(gap, errors.square().sum(-1).sqrt()).max(1)
    every = torch.arange(len(worst), device=x.device)
    derivative = products.sum(-1)[every, :, worst]
    split_at = tangent_intersection(derivative, change[every, worst] / length[:, 0])
    return SegmentIntegrals(integrals, errors, error, split_at, count_kinks(derivative, rules))


class MidpointIntegrals(NamedTuple):
    """Results per segment, with their lines: integrals by feature from `num_points` gradients, and their errors."""

    line: Int[Tensor, " segments"]
    num_points: int
    integrals: Float[Tensor, "segments outputs features"]
    errors: Float[Tensor, "segments outputs features"]


def midpoint_rule(
    gradients: ModelGradients,
    x: Float[Tensor, "rows *shape"],
    background: Float[Tensor, "others *shape"],
    segments: Segments,
    max_gradients: Int[Tensor, " lines"],
) -> Iterator[MidpointIntegrals]:
    """Midpoint rule with the number of points of each line; the error is half the change from using every second."""
    counts = max_gradients[segments.line].clamp(min=1)
    for count in counts.unique().tolist():
        same = segments.select(counts == count)
        size = count * x[0].numel() * same.at_left.shape[1]
        for batch in torch.arange(len(same.line), device=x.device).split(max(1, MAX_GRADIENT_VALUES // size)):
            part = same.select(batch)
            length = (part.right - part.left)[:, None]
            midpoints = (torch.arange(count, device=x.device) + 0.5) / count
            found = gradients_on_lines(gradients, x, background, part.line, part.left[:, None] + length * midpoints)
            products = found * (line_steps(x, background, part.line) * length)[:, None, None]
            integrals = products.mean(1)
            yield MidpointIntegrals(part.line, count, integrals, (integrals - products[:, ::2].mean(1)).abs() / 2)


def count_kinks(derivative: Float[Tensor, "count nodes"], rules: Float[Tensor, "3 nodes"]) -> Int[Tensor, " count"]:
    """Number of changes between neighbouring nodes; 1 where a polynomial fits, so that one split suffices."""
    tolerance = 1e-6 * derivative.abs().amax(1, keepdim=True)
    high = (derivative @ rules[1:].mT).square().sum(1).sqrt()
    is_smooth = high <= KINK_THRESHOLD * derivative.var(1, correction=0).sqrt()
    return torch.where(is_smooth, 1, (derivative.diff(dim=1).abs() > tolerance).sum(1).clamp(min=1))


def tangent_intersection(
    derivative: Float[Tensor, "count nodes"], mean_derivative: Float[Tensor, " count"]
) -> Float[Tensor, " count"]:
    """The kink t of a segment with one kink, t first + (1 − t) last = mean derivative; else the middle."""
    first, last = derivative[:, 0], derivative[:, -1]
    tolerance = 1e-6 * derivative.abs().amax(1, keepdim=True)
    is_first, is_last = ((derivative - end[:, None]).abs() <= tolerance for end in (first, last))
    kink = (mean_derivative - last) / (first - last)
    return torch.where((is_first | is_last).all(1) & (kink > 0) & (kink < 1), kink, 0.5)


def legendre_rules(nodes: int) -> tuple[Float[Tensor, " nodes"], Float[Tensor, "3 nodes"]]:
    """Gauss-Legendre nodes in [0, 1], and the rules for the integral and for the two highest Legendre coefficients."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    basis = np.polynomial.legendre.legvander(points, nodes - 1).T
    high = np.stack([(2 * degree + 1) * basis[degree] * weights / 2 for degree in (nodes - 2, nodes - 1)])
    return torch.from_numpy((1 + points) / 2), torch.from_numpy(np.concatenate([weights[None] / 2, high]))


def gradients_on_lines(
    gradients: ModelGradients,
    x: Float[Tensor, "rows *shape"],
    background: Float[Tensor, "others *shape"],
    line: Int[Tensor, " count"],
    positions: Float[Tensor, "count points"],
) -> Float[Tensor, "count points outputs features"]:
    """∂f at several points of each line."""
    points = interpolate(x, background, line[:, None].expand_as(positions), positions)
    found: Tensor = gradients(points.flatten(0, 1)).unflatten(0, positions.shape)
    return found


def line_steps(
    x: Float[Tensor, "rows *shape"], background: Float[Tensor, "others *shape"], line: Int[Tensor, " count"]
) -> Float[Tensor, "count features"]:
    """The step x − b of each line."""
    return (x[line // len(background)] - background[line % len(background)]).flatten(1).double()


def interpolate(
    x: Float[Tensor, "rows *shape"],
    background: Float[Tensor, "others *shape"],
    line: Int[Tensor, "*points"],
    positions: Float[Tensor, "*points"],
) -> Float[Tensor, "..."]:
    """The point b + α (x − b) of each line."""
    low, high = background[line % len(background)], x[line // len(background)]
    alpha = positions.to(x.dtype).reshape(*positions.shape, *[1] * (x.ndim - 1))
    return torch.lerp(low, high, alpha)


def split_segments(
    gradients: ModelGradients,
    x: Float[Tensor, "rows *shape"],
    background: Float[Tensor, "others *shape"],
    segments: Segments,
    split_at: Float[Tensor, " count"],
) -> Segments:
    """Each segment divided in two at this fraction of its length."""
    line, left, right, at_left, at_right = segments
    if not len(line):
        return segments
    middle = left + split_at * (right - left)
    at_middle = gradients.outputs(interpolate(x, background, line, middle))
    return Segments(
        torch.cat([line, line]),
        torch.cat([left, middle]),
        torch.cat([middle, right]),
        torch.cat([at_left, at_middle]),
        torch.cat([at_middle, at_right]),
    )
