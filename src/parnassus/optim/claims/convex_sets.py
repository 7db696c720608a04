"""Claims about convex sets (Zhao sec. 12)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close
from parnassus.optim.convexity.convex_sets import Membership, find_nonconvex_segment, intersection, union


def sample_cube(count: int, dim: int, *, half_width: float = 2.0, seed: int = 0) -> Tensor:
    """Uniform samples from the cube [−half_width, half_width]^dim."""
    generator = torch.Generator().manual_seed(seed)
    return half_width * (2 * torch.rand(count, dim, generator=generator, dtype=torch.float64) - 1)


def is_refuted(contains: Membership, points: Tensor) -> float:
    """1 if the test finds a segment that leaves the set, else 0."""
    return float(find_nonconvex_segment(contains, points, generator=torch.Generator().manual_seed(1)) is not None)


def lp_ball(p: float, radius: float = 1.0) -> Membership:
    """Σ |xᵢ|^p ≤ radius^p."""
    return lambda x: x.abs().pow(p).sum(-1) <= radius**p


def half_space(normal: Tensor, offset: float) -> Membership:
    return lambda x: x @ normal <= offset


@claim("Z12.2")
def random_segments_detect_nonconvex_sets() -> Evidence:
    """ℓp balls with p ≥ 1, half-spaces and the simplex pass; rings, two balls and the ℓ½ ball fail (Zhao sec. 12)."""
    points = sample_cube(4_000, 2)
    on_simplex = sample_cube(2_000, 3).softmax(-1)
    two_balls = union(lambda x: lp_ball(2.0, 0.5)(x - 1), lambda x: lp_ball(2.0, 0.5)(x + 1))
    convex: dict[str, tuple[Membership, Tensor]] = {
        **{f"ball of p = {p:g}": (lp_ball(p), points) for p in (1.0, 1.5, 2.0, 8.0)},
        "half-space": (half_space(torch.tensor([1.0, -2.0]).double(), 0.3), points),
        "simplex": (lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-12), on_simplex),
    }
    others: dict[str, tuple[Membership, Tensor]] = {
        "ring": (lambda x: lp_ball(2.0)(x) & ~lp_ball(2.0, 0.6)(x), points),
        "two balls": (two_balls, points),
        "ball of p = ½": (lp_ball(0.5), points),
    }
    return all_of(
        **{name: close(is_refuted(contains, inside), 0.0) for name, (contains, inside) in convex.items()},
        **{f"{name} refuted": close(is_refuted(contains, inside), 1.0) for name, (contains, inside) in others.items()},
    )


@claim("Z12.2")
def every_linear_subspace_is_convex() -> Evidence:
    """Null space and column space contain all affine combinations, also for weights outside [0, 1] (Zhao sec. 12)."""
    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(3, 6, generator=generator, dtype=torch.float64)
    _, _, right = torch.linalg.svd(matrix)
    kernel = torch.randn(500, 3, generator=generator, dtype=torch.float64) @ right[3:]
    columns = torch.randn(500, 3, generator=generator, dtype=torch.float64) @ matrix
    outside = right[3:].T @ right[3:]  # the projection onto the kernel vanishes on the row space
    return all_of(
        null_space=close(is_refuted(lambda x: (x @ matrix.T).abs().amax(-1) < 1e-9, kernel), 0.0),
        column_space=close(is_refuted(lambda x: (x @ outside).abs().amax(-1) < 1e-9, columns), 0.0),
        affine_combination=close((5 * kernel[:250] - 4 * kernel[250:]) @ matrix.T, 0.0, atol=1e-12),
    )


@claim("Z12.3")
def intersections_are_convex_and_unions_need_not_be() -> Evidence:
    """If a and b are in both sets, so is λa + (1 − λ)b; a union of convex sets need not be convex (Zhao sec. 12)."""
    points = sample_cube(4_000, 2)
    generator = torch.Generator().manual_seed(0)
    refuted = []
    for _ in range(20):
        normal = torch.randn(2, generator=generator, dtype=torch.float64)
        centre = torch.randn(2, generator=generator, dtype=torch.float64) / 4
        first, second = half_space(normal, 0.2), ball_around(centre, 1.2)
        third = half_space(-normal, 0.4)
        refuted.append(is_refuted(intersection(first, second, third), points))
    left, right = (
        ball_around(torch.tensor([-0.8, 0.0]).double(), 0.9),
        ball_around(torch.tensor([0.8, 0.0]).double(), 0.9),
    )
    return all_of(
        intersections=close(torch.tensor(refuted), 0.0),
        lens=close(is_refuted(intersection(left, right), points), 0.0),
        union=close(is_refuted(union(left, right), points), 1.0),
    )


def ball_around(centre: Tensor, radius: float) -> Membership:
    return lambda x: lp_ball(2.0, radius)(x - centre)
