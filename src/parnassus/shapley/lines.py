"""Integrals of gradients along straight lines, as exact as one wishes, across the kinks of ReLU networks too.

On every line the integral of the slope in its direction is known: f(end) − f(start). So each piece of a line says
itself by how much it misses, and a kink is where the tangents at the ends of a piece meet: there it is cut. Pieces
between kinks of a ReLU network have constant gradients, and are exact.

That takes some twenty gradients for each kink. A line with more of them than can be paid for, as in networks of images,
is better served by evenly spaced ones, whose error falls like 1/count: it is given what is left of its budget so.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.shapley.slopes import TOGETHER, Slopes

NODES = 7
"""Points of Gauss and Legendre in a piece: exact for gradients that are polynomials of degree 13."""
FOR_A_KINK = 3 * NODES
"""Gradients that it takes to find one: a cut, and the pieces on both sides."""
ROUGH = 0.2
"""Share of a slope's deviation in the highest coefficients beyond which there are kinks, not only curves."""
SHORTEST = 2.0**-30
"""Of a line, a piece that is not cut again: a jump of the model has been found, or nothing."""


class Along(NamedTuple):
    """Σ over lines of one row of step_j ∫ ∂_j f, how far this may be off, and at how many inputs it was found."""

    parts: Float[Tensor, "rows outputs features"]
    errors: Float[Tensor, "rows outputs features"]
    asked: int


class Pieces(NamedTuple):
    """Pieces of lines, from `left` to `right` in [0, 1], and what the model says at both."""

    line: Int[Tensor, " count"]
    left: Float[Tensor, " count"]
    right: Float[Tensor, " count"]
    at_left: Float[Tensor, "count outputs"]
    at_right: Float[Tensor, "count outputs"]

    def only(self, chosen: Tensor) -> "Pieces":
        return Pieces(*(each[chosen] for each in self))


def along_lines(
    slopes: Slopes,
    x: Float[Tensor, "rows *shape"],
    background: Float[Tensor, "others *shape"],
    *,
    tolerance: float,
    most: int,
) -> Along:
    """The mean over the lines from all baselines b to x: (x_j − b_j) ∫₀¹ ∂_j f(b + α (x − b)) dα.

    A piece is cut while it misses more than `tolerance` of what the model says there. If a line shows more kinks than
    `most` gradients can find, what is left of it is integrated by evenly spaced ones.
    """
    others, rows = len(background), len(x)
    at_x, at_background = slopes.answers(x), slopes.answers(background)
    line = torch.arange(rows * others, device=x.device)
    nought = torch.zeros_like(line).double()
    todo = Pieces(line, nought, nought + 1, at_background[line % others], at_x[line // others])
    enough = max(tolerance, 4 * slopes.precision(x)) * todo.at_right.abs().maximum(todo.at_left.abs()).amax(1)
    parts = x.new_zeros(rows, at_x.shape[1], x[0].numel(), dtype=torch.float64)
    squares, asked = torch.zeros_like(parts), torch.zeros_like(line)
    portion = max(1, TOGETHER // (NODES * parts[0].numel()))
    needed = asked.clone()  # to find the kinks that each line showed when it was last cut
    while len(todo.line):
        pieces_of = todo.line.bincount(minlength=len(asked))
        hopeless = (asked + needed.maximum(NODES * pieces_of) > most) & (asked > 0)
        at_last = todo.only(hopeless[todo.line])
        for spaced in evenly(slopes, x, background, at_last, (most - asked) // pieces_of.clamp(min=1)):
            asked.index_add_(0, spaced.line, torch.full_like(spaced.line, spaced.many))
            parts.index_add_(0, spaced.line // others, spaced.parts / others)
            squares.index_add_(0, spaced.line // others, (spaced.errors / others).square())
        todo = todo.only(~hopeless[todo.line])
        if not len(todo.line):
            break
        asked.index_add_(0, todo.line, torch.full_like(todo.line, NODES))
        left = (most - asked) // pieces_of.clamp(min=1)
        needed.zero_()
        cut = [todo.only(todo.line < 0)]
        for some in torch.arange(len(todo.line), device=x.device).split(portion):
            pieces = todo.only(some)
            piece = integrated(slopes, x, background, pieces)
            line, length = pieces.line, pieces.right - pieces.left
            last = left[line] < torch.where(piece.kinks > 1, NODES, 2 * NODES)  # so few would be no better
            good = (piece.miss <= enough[line]) | (length < SHORTEST) | last
            needed.index_add_(0, line[~good], FOR_A_KINK * piece.kinks[~good])
            parts.index_add_(0, line[good] // others, piece.parts[good] / others)
            squares.index_add_(0, line[good] // others, (piece.errors[good] / others).square())
            cut.append(halves(slopes, x, background, pieces.only(~good), piece.cut[~good]))
        todo = Pieces(*(torch.cat(each) for each in zip(*cut, strict=True)))
    return Along(parts, squares.sqrt(), int(asked.sum()) // rows)


class Integrated(NamedTuple):
    """Of each piece: the integral by feature, its possible error, what it misses, where to cut it, how many kinks."""

    parts: Float[Tensor, "count outputs features"]
    errors: Float[Tensor, "count outputs features"]
    miss: Float[Tensor, " count"]
    cut: Float[Tensor, " count"]
    kinks: Int[Tensor, " count"]


def integrated(
    slopes: Slopes, x: Float[Tensor, "rows *shape"], background: Float[Tensor, "others *shape"], pieces: Pieces
) -> Integrated:
    """By Gauss and Legendre; how far a feature may be off, by the last two coefficients of its gradient in their basis.

    They are small only where a polynomial of this degree follows the gradient, and no kink hides between the nodes.
    """
    nodes, rules = legendre(NODES)
    nodes, rules = nodes.to(x.device), rules.to(x.device)
    length = (pieces.right - pieces.left)[:, None]
    step = (x[pieces.line // len(background)] - background[pieces.line % len(background)]).flatten(1).double()
    places = pieces.left[:, None] + length * nodes
    gradients = slopes(between(x, background, pieces.line[:, None].expand_as(places), places).flatten(0, 1))
    gradients = gradients.unflatten(0, places.shape) * step[:, None, None]
    found = torch.einsum("rn,cnof->rcof", rules, gradients) * length[:, None]
    parts, errors = found[0], (found[1].square() + found[2].square()).sqrt()
    change = pieces.at_right - pieces.at_left
    missing = (change - parts.sum(-1)).abs()
    miss, worst = torch.maximum(missing, errors.square().sum(-1).sqrt()).max(1)
    every = torch.arange(len(worst), device=x.device)
    slope = gradients.sum(-1)[every, :, worst]
    cut = where_tangents_meet(slope, change[every, worst] / length[:, 0])
    return Integrated(parts, errors, miss, cut, kinks_seen(slope, rules))


class Spaced(NamedTuple):
    """Of each piece, of this line: the integral by feature from so many gradients, and its possible error."""

    line: Int[Tensor, " count"]
    many: int
    parts: Float[Tensor, "count outputs features"]
    errors: Float[Tensor, "count outputs features"]


def evenly(
    slopes: Slopes,
    x: Float[Tensor, "rows *shape"],
    background: Float[Tensor, "others *shape"],
    pieces: Pieces,
    most: Int[Tensor, " lines"],
) -> Iterator[Spaced]:
    """Pieces by as many midpoints as their line has for each; an error is half of what every second one changes."""
    count = most[pieces.line].clamp(min=1)
    for many in count.unique().tolist():
        same = pieces.only(count == many)
        numbers = many * x[0].numel() * same.at_left.shape[1]
        for some in torch.arange(len(same.line), device=x.device).split(max(1, TOGETHER // numbers)):
            chosen = same.only(some)
            step = (x[chosen.line // len(background)] - background[chosen.line % len(background)]).flatten(1).double()
            length = chosen.right - chosen.left
            places = chosen.left[:, None] + length[:, None] * (torch.arange(many, device=x.device) + 0.5) / many
            gradients = slopes(between(x, background, chosen.line[:, None].expand_as(places), places).flatten(0, 1))
            gradients = gradients.unflatten(0, places.shape) * (step * length[:, None])[:, None, None]
            parts = gradients.mean(1)
            yield Spaced(chosen.line, many, parts, (parts - gradients[:, ::2].mean(1)).abs() / 2)


def kinks_seen(slope: Float[Tensor, "count nodes"], rules: Float[Tensor, "3 nodes"]) -> Int[Tensor, " count"]:
    """Between how many neighbours the slope changes; one where a polynomial follows it, and another cut will do."""
    near = 1e-6 * slope.abs().amax(1, keepdim=True)
    curved = (slope @ rules[1:].mT).square().sum(1).sqrt() <= ROUGH * slope.var(1, correction=0).sqrt()
    return torch.where(curved, 1, (slope.diff(dim=1).abs() > near).sum(1).clamp(min=1))


def where_tangents_meet(
    slope: Float[Tensor, "count nodes"], mean_slope: Float[Tensor, " count"]
) -> Float[Tensor, " count"]:
    """The kink t of a piece that has one, t first + (1 − t) last = mean slope; else the middle."""
    first, last = slope[:, 0], slope[:, -1]
    near = 1e-6 * slope.abs().amax(1, keepdim=True)
    one = (((slope - first[:, None]).abs() <= near) | ((slope - last[:, None]).abs() <= near)).all(1)
    kink = (mean_slope - last) / (first - last)
    return torch.where(one & (kink > 0) & (kink < 1), kink, 0.5)


def legendre(nodes: int) -> tuple[Float[Tensor, " nodes"], Float[Tensor, "3 nodes"]]:
    """Gauss's nodes in [0, 1], and the rules of the integral and of the two highest coefficients that they can see."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    basis = np.polynomial.legendre.legvander(points, nodes - 1).T
    high = np.stack([(2 * degree + 1) * basis[degree] * weights / 2 for degree in (nodes - 2, nodes - 1)])
    return torch.from_numpy((1 + points) / 2), torch.from_numpy(np.concatenate([weights[None] / 2, high]))


def between(
    x: Float[Tensor, "rows *shape"],
    background: Float[Tensor, "others *shape"],
    line: Int[Tensor, "*places"],
    places: Float[Tensor, "*places"],
) -> Float[Tensor, "..."]:
    """The point b + α (x − b) of each line."""
    low, high = background[line % len(background)], x[line // len(background)]
    alpha = places.to(x.dtype).reshape(*places.shape, *[1] * (x.ndim - 1))
    return torch.lerp(low, high, alpha)


def halves(
    slopes: Slopes,
    x: Float[Tensor, "rows *shape"],
    background: Float[Tensor, "others *shape"],
    pieces: Pieces,
    share: Float[Tensor, " count"],
) -> Pieces:
    """Each piece cut in two at this share of its length."""
    line, left, right, at_left, at_right = pieces
    if not len(line):
        return pieces
    middle = left + share * (right - left)
    at_middle = slopes.answers(between(x, background, line, middle))
    return Pieces(
        torch.cat([line, line]),
        torch.cat([left, middle]),
        torch.cat([middle, right]),
        torch.cat([at_left, at_middle]),
        torch.cat([at_middle, at_right]),
    )
