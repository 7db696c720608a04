"""Betti numbers of a point cloud: its connected components and holes (Diehl sec. 1).

They are invariant under continuous invertible layers; a ReLU layer is not injective and can change them.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.errors import check_positive


class BettiNumbers(NamedTuple):
    """Numbers of connected components and of holes of a set of points.

    >>> BettiNumbers(components=1, holes=2)
    BettiNumbers(components=1, holes=2)
    """

    components: int  # b₀, connected components
    holes: int  # b₁, one-dimensional holes


def farthest_point_sampling(points: Float[Tensor, "points dim"], count: int) -> Int[Tensor, " count"]:
    """Indices of spread-out points: row 0 first, then always the point farthest from those chosen before."""
    if not 1 <= count <= len(points):
        raise ValueError(f"count must be from 1 to the number of points; got count={count}, points={len(points)}")
    chosen = [0]
    distance = (points - points[0]).norm(dim=1)
    for _ in range(count - 1):
        chosen.append(int(distance.argmax()))
        distance = torch.minimum(distance, (points - points[chosen[-1]]).norm(dim=1))
    return torch.tensor(chosen)


def betti_numbers(points: Float[Tensor, "count dim"], scale: float) -> BettiNumbers:
    """b₀ and b₁ of the Vietoris-Rips complex of a point cloud at a scale (Naitzat et al. 2020).

        b₀ = V − rank ∂₁,   b₁ = E − rank ∂₁ − rank ∂₂, ranks over {0, 1}

    Points closer than `scale` are joined by an edge; three points that are pairwise joined form a filled triangle.
    """
    check_positive(scale=scale)
    joined = torch.cdist(points, points) < scale
    edges = torch.triu(joined, 1).nonzero().tolist()
    neighbours = [sum(1 << other for other in row.nonzero()[:, 0].tolist()) for row in joined]
    number = {(first, second): index for index, (first, second) in enumerate(edges)}
    triangles = []
    for (first, second), edge in number.items():
        third = neighbours[first] & neighbours[second] & -(1 << second + 1)  # bits above `second`: each triangle once
        while third:
            last = third.bit_length() - 1
            triangles.append(1 << edge | 1 << number[first, last] | 1 << number[second, last])
            third ^= 1 << last
    vertex_rank = _rank([1 << first | 1 << second for first, second in edges])
    return BettiNumbers(len(points) - vertex_rank, len(edges) - vertex_rank - _rank(triangles))


def _rank(columns: list[int]) -> int:
    """The rank over {0, 1} of columns given as bit sets, by elimination on the highest bit."""
    reduced: dict[int, int] = {}
    for start in columns:
        column = start
        while column and (pivot := column.bit_length()) in reduced:
            column ^= reduced[pivot]
        if column:
            reduced[pivot] = column
    return len(reduced)
