"""The shape of a point cloud in two numbers: its pieces and its holes (Diehl sec. 1).

A continuous invertible layer cannot change them; a ReLU layer, which folds, can.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Betti(NamedTuple):
    pieces: int  # b₀, connected components
    holes: int  # b₁, loops that nothing fills


def landmarks(points: Float[Tensor, "count dim"], number: int) -> Int[Tensor, " number"]:
    """Rows spread evenly over the cloud: each next one is the furthest from all taken before, beginning with row 0."""
    if not 1 <= number <= len(points):
        raise ValueError(f"number must be from 1 to the count of points; got number={number}, count={len(points)}")
    taken = [0]
    distance = (points - points[0]).norm(dim=1)
    for _ in range(number - 1):
        taken.append(int(distance.argmax()))
        distance = torch.minimum(distance, (points - points[taken[-1]]).norm(dim=1))
    return torch.tensor(taken)


def betti(points: Float[Tensor, "count dim"], scale: float) -> Betti:
    """The first two Betti numbers of the Vietoris–Rips complex of a cloud at a scale (Naitzat et al. 2020).

        b₀ = V − rank ∂₁,   b₁ = E − rank ∂₁ − rank ∂₂, ranks over {0, 1}

    Points nearer than `scale` are joined by an edge; three that are joined pairwise make a filled triangle.
    """
    if not scale > 0:
        raise ValueError(f"the scale must be positive; got scale={scale}")
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
    return Betti(len(points) - vertex_rank, len(edges) - vertex_rank - _rank(triangles))


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
