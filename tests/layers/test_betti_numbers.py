"""Pieces and holes of shapes where both are known."""

from math import pi

import pytest
import torch
from torch import Tensor

from parnassus.layers import BettiNumbers, betti_numbers, farthest_point_sampling


def ring(points: int, *, radius: float = 1.0) -> Tensor:
    angle = 2 * pi * torch.arange(points) / points
    return radius * torch.stack([angle.cos(), angle.sin()], 1)


def test_points_far_apart_are_pieces() -> None:
    assert betti_numbers(torch.eye(5) * 10, 1.0) == BettiNumbers(5, 0)


def test_a_square_is_a_loop_until_its_diagonal_is_reached() -> None:
    square = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert betti_numbers(square, 0.9) == BettiNumbers(4, 0)
    assert betti_numbers(square, 1.1) == BettiNumbers(1, 1)
    assert betti_numbers(square, 1.5) == BettiNumbers(1, 0)


def test_a_ring_is_filled_when_an_equilateral_triangle_fits() -> None:
    """The hole of a Rips complex of the unit circle closes at scale √3."""
    assert betti_numbers(ring(30), 1.6) == BettiNumbers(1, 1)
    assert betti_numbers(ring(30), 1.75) == BettiNumbers(1, 0)


def test_two_rings_that_touch_are_a_figure_eight() -> None:
    eight = torch.cat([ring(40), ring(40) + torch.tensor([2.0, 0.0])])
    assert betti_numbers(eight, 0.3) == BettiNumbers(1, 2)


def test_the_disc_has_no_hole_and_the_torus_two() -> None:
    line = torch.linspace(-1, 1, 8)
    grid = torch.cartesian_prod(line, line)
    assert betti_numbers(grid, 0.45) == BettiNumbers(1, 0)
    one, other = torch.arange(8).repeat_interleave(8), torch.arange(8).repeat(8)
    torus = torch.cat([ring(8)[one], ring(8)[other]], 1)  # in four dimensions
    assert betti_numbers(torus, 1.1) == BettiNumbers(1, 2)


def test_the_shape_does_not_depend_on_the_order_or_the_place() -> None:
    torch.manual_seed(0)
    cloud = torch.randn(40, 3)
    moved = cloud[torch.randperm(40)] + 7
    assert betti_numbers(cloud, 1.0) == betti_numbers(moved, 1.0)


def test_landmarks_cover_the_cloud() -> None:
    torch.manual_seed(0)
    cloud = torch.rand(1_000, 2)
    chosen = farthest_point_sampling(cloud, 60)
    assert len(set(chosen.tolist())) == 60
    reach = torch.cdist(cloud, cloud[chosen]).amin(1).max()
    apart = torch.pdist(cloud[chosen]).min()
    assert float(reach) <= float(apart)  # else the furthest point would have been taken


def test_wrong_input_raises() -> None:
    with pytest.raises(ValueError, match=r"scale must be positive; got scale=0"):
        betti_numbers(ring(5), 0.0)
    with pytest.raises(ValueError, match="got count=6, points=5"):
        farthest_point_sampling(ring(5), 6)
