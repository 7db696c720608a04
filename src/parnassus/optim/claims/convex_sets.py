"""Claims about convex sets (Zhao sec. 12)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close
from parnassus.optim.convex_sets import Member, find_escape, intersection, union


def cloud(count: int, dim: int, *, reach: float = 2.0, seed: int = 0) -> Tensor:
    """Points drawn evenly from the cube [−reach, reach]^dim."""
    generator = torch.Generator().manual_seed(seed)
    return reach * (2 * torch.rand(count, dim, generator=generator, dtype=torch.float64) - 1)


def escapes(member: Member, points: Tensor) -> float:
    """1 if the checker finds a segment that leaves the set, else 0."""
    return float(find_escape(member, points, generator=torch.Generator().manual_seed(1)) is not None)


def ball(p: float, radius: float = 1.0) -> Member:
    """Σ |xᵢ|^p ≤ radius^p."""
    return lambda x: x.abs().pow(p).sum(-1) <= radius**p


def half_space(normal: Tensor, offset: float) -> Member:
    return lambda x: x @ normal <= offset


@claim("Z12.2")
def the_checker_tells_convex_sets_from_others() -> Evidence:
    """Balls of ℓp with p ≥ 1, half-spaces, the simplex pass; rings, two balls, the ℓ½ ball fail (Zhao sec. 12)."""
    points = cloud(4_000, 2)
    on_simplex = cloud(2_000, 3).softmax(-1)
    two = union(lambda x: ball(2.0, 0.5)(x - 1), lambda x: ball(2.0, 0.5)(x + 1))
    convex: dict[str, tuple[Member, Tensor]] = {
        **{f"ball of p = {p:g}": (ball(p), points) for p in (1.0, 1.5, 2.0, 8.0)},
        "half-space": (half_space(torch.tensor([1.0, -2.0]).double(), 0.3), points),
        "simplex": (lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-12), on_simplex),
    }
    others: dict[str, tuple[Member, Tensor]] = {
        "ring": (lambda x: ball(2.0)(x) & ~ball(2.0, 0.6)(x), points),
        "two balls": (two, points),
        "ball of p = ½": (ball(0.5), points),
    }
    return all_of(
        **{name: close(escapes(member, inside), 0.0) for name, (member, inside) in convex.items()},
        **{f"not the {name}": close(escapes(member, inside), 1.0) for name, (member, inside) in others.items()},
    )


@claim("Z12.2")
def every_linear_subspace_is_convex() -> Evidence:
    """Mixtures of points of a null space or a column space stay in it, for weights beyond [0, 1] too (Zhao sec. 12)."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(3, 6, generator=generator, dtype=torch.float64)
    _, _, right = torch.linalg.svd(matrix)
    kernel = torch.randn(500, 3, generator=generator, dtype=torch.float64) @ right[3:]
    columns = torch.randn(500, 3, generator=generator, dtype=torch.float64) @ matrix
    outside = right[3:].T @ right[3:]  # the projection onto the kernel vanishes on the row space
    return all_of(
        null_space=close(escapes(lambda x: (x @ matrix.T).abs().amax(-1) < 1e-9, kernel), 0.0),
        column_space=close(escapes(lambda x: (x @ outside).abs().amax(-1) < 1e-9, columns), 0.0),
        weight_of_five=close((5 * kernel[:250] - 4 * kernel[250:]) @ matrix.T, 0.0, atol=1e-12),
    )


@claim("Z12.3")
def intersections_stay_convex_and_unions_do_not() -> Evidence:
    """λa + (1 − λ)b is in both sets if a and b are; a union of two convex sets may have a gap (Zhao sec. 12)."""
    points = cloud(4_000, 2)
    generator = torch.Generator().manual_seed(0)
    found = []
    for _ in range(20):
        normal = torch.randn(2, generator=generator, dtype=torch.float64)
        centre = torch.randn(2, generator=generator, dtype=torch.float64) / 4
        first, second = half_space(normal, 0.2), _around(centre, 1.2)
        third = half_space(-normal, 0.4)
        found.append(escapes(intersection(first, second, third), points))
    left, right = _around(torch.tensor([-0.8, 0.0]).double(), 0.9), _around(torch.tensor([0.8, 0.0]).double(), 0.9)
    return all_of(
        intersections=close(torch.tensor(found), 0.0),
        lens=close(escapes(intersection(left, right), points), 0.0),
        union=close(escapes(union(left, right), points), 1.0),
    )


def _around(centre: Tensor, radius: float) -> Member:
    return lambda x: ball(2.0, radius)(x - centre)
