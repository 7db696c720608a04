"""Betti numbers of point clouds of known topology."""

from math import pi

import pytest
import torch
from torch import Tensor

from parnassus.layers import BettiNumbers, betti_numbers, farthest_point_sampling


def sample_circle(points: int, *, radius: float = 1.0) -> Tensor:
    angle = 2 * pi * torch.arange(points) / points
    return radius * torch.stack([angle.cos(), angle.sin()], 1)


def test_distant_points_are_separate_components() -> None:
    assert betti_numbers(torch.eye(5) * 10, 1.0) == BettiNumbers(5, 0)


def test_square_has_a_hole_below_the_scale_of_its_diagonal() -> None:
    square = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert betti_numbers(square, 0.9) == BettiNumbers(4, 0)
    assert betti_numbers(square, 1.1) == BettiNumbers(1, 1)
    assert betti_numbers(square, 1.5) == BettiNumbers(1, 0)


def test_hole_of_the_circle_closes_at_scale_root_three() -> None:
    """The hole of the Vietoris-Rips complex of the unit circle closes at scale √3."""
    assert betti_numbers(sample_circle(30), 1.6) == BettiNumbers(1, 1)
    assert betti_numbers(sample_circle(30), 1.75) == BettiNumbers(1, 0)


def test_two_touching_circles_have_two_holes() -> None:
    figure_eight = torch.cat([sample_circle(40), sample_circle(40) + torch.tensor([2.0, 0.0])])
    assert betti_numbers(figure_eight, 0.3) == BettiNumbers(1, 2)


def test_filled_square_has_no_hole_and_torus_has_two() -> None:
    line = torch.linspace(-1, 1, 8)
    grid = torch.cartesian_prod(line, line)
    assert betti_numbers(grid, 0.45) == BettiNumbers(1, 0)
    first, second = torch.arange(8).repeat_interleave(8), torch.arange(8).repeat(8)
    torus = torch.cat([sample_circle(8)[first], sample_circle(8)[second]], 1)  # in four dimensions
    assert betti_numbers(torus, 1.1) == BettiNumbers(1, 2)


def test_betti_numbers_are_invariant_to_permutation_and_translation() -> None:
    torch.manual_seed(0)
    cloud = torch.randn(40, 3)
    transformed = cloud[torch.randperm(40)] + 7
    assert betti_numbers(cloud, 1.0) == betti_numbers(transformed, 1.0)


def test_landmarks_cover_the_points() -> None:
    torch.manual_seed(0)
    cloud = torch.rand(1_000, 2)
    landmarks = farthest_point_sampling(cloud, 60)
    assert len(set(landmarks.tolist())) == 60
    covering_radius = torch.cdist(cloud, cloud[landmarks]).amin(1).max()
    min_distance = torch.pdist(cloud[landmarks]).min()
    assert float(covering_radius) <= float(min_distance)  # otherwise a farther point would have been selected


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"scale must be positive; got scale=0"):
        betti_numbers(sample_circle(5), 0.0)
    with pytest.raises(ValueError, match="got count=6, points=5"):
        farthest_point_sampling(sample_circle(5), 6)
