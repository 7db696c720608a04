"""Pieces and holes of shapes where both are known."""

from math import pi

import pytest
import torch
from torch import Tensor

from parnassus.layers import Betti, betti, landmarks


def ring(points: int, *, radius: float = 1.0) -> Tensor:
    angle = 2 * pi * torch.arange(points) / points
    return radius * torch.stack([angle.cos(), angle.sin()], 1)


def test_points_far_apart_are_pieces() -> None:
    assert betti(torch.eye(5) * 10, 1.0) == Betti(5, 0)


def test_a_square_is_a_loop_until_its_diagonal_is_reached() -> None:
    square = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert betti(square, 0.9) == Betti(4, 0)
    assert betti(square, 1.1) == Betti(1, 1)
    assert betti(square, 1.5) == Betti(1, 0)


def test_a_ring_is_filled_when_an_equilateral_triangle_fits() -> None:
    """The hole of a Rips complex of the unit circle closes at scale √3."""
    assert betti(ring(30), 1.6) == Betti(1, 1)
    assert betti(ring(30), 1.75) == Betti(1, 0)


def test_two_rings_that_touch_are_a_figure_eight() -> None:
    eight = torch.cat([ring(40), ring(40) + torch.tensor([2.0, 0.0])])
    assert betti(eight, 0.3) == Betti(1, 2)


def test_the_disc_has_no_hole_and_the_torus_two() -> None:
    line = torch.linspace(-1, 1, 8)
    grid = torch.cartesian_prod(line, line)
    assert betti(grid, 0.45) == Betti(1, 0)
    one, other = torch.arange(8).repeat_interleave(8), torch.arange(8).repeat(8)
    torus = torch.cat([ring(8)[one], ring(8)[other]], 1)  # in four dimensions
    assert betti(torus, 1.1) == Betti(1, 2)


def test_the_shape_does_not_depend_on_the_order_or_the_place() -> None:
    torch.manual_seed(0)
    cloud = torch.randn(40, 3)
    moved = cloud[torch.randperm(40)] + 7
    assert betti(cloud, 1.0) == betti(moved, 1.0)


def test_landmarks_cover_the_cloud() -> None:
    torch.manual_seed(0)
    cloud = torch.rand(1_000, 2)
    chosen = landmarks(cloud, 60)
    assert len(set(chosen.tolist())) == 60
    reach = torch.cdist(cloud, cloud[chosen]).amin(1).max()
    apart = torch.pdist(cloud[chosen]).min()
    assert float(reach) <= float(apart)  # else the furthest point would have been taken


def test_wrong_input_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"the scale must be positive; got scale=0"):
        betti(ring(5), 0.0)
    with pytest.raises(ValueError, match="got number=6, count=5"):
        landmarks(ring(5), 6)
