"""Measures of a latent space on codes whose answers are known."""

import pytest
import torch

from parnassus.latent.maps import (
    anisotropy,
    centre_offset,
    coverage,
    holes,
    latent_grid,
    latent_range,
    mosaic,
    neighbour_accuracy,
)


def normal(count: int = 4_000) -> torch.Tensor:
    return torch.randn(count, 2, generator=torch.Generator().manual_seed(0))


def test_a_standard_normal_is_centred_and_round() -> None:
    z = normal()
    assert centre_offset(z) < 0.03
    assert anisotropy(z) < 1.05


def test_moving_and_stretching_are_seen() -> None:
    z = normal() * torch.tensor([3.0, 1.0])
    torch.testing.assert_close(anisotropy(z), torch.tensor(3.0), rtol=0.05, atol=0)
    moved = z - z.mean(0) + torch.tensor([20.0, 0.0])
    torch.testing.assert_close(centre_offset(moved), torch.tensor(20 / 10**0.5), rtol=0.05, atol=0)


def test_coverage_counts_cells() -> None:
    corners = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    assert coverage(corners, cells=2) == 1.0
    assert coverage(corners[:2], cells=2) == 0.5
    assert coverage(corners, cells=4) == 0.25


def test_neighbours_vote_without_the_point_itself() -> None:
    apart = torch.cat([normal(50), normal(50) + 100])
    labels = torch.arange(100) // 50
    assert neighbour_accuracy(apart, labels, neighbours=5) == 1.0
    pairs = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    assert neighbour_accuracy(pairs, torch.tensor([0, 1, 0, 1]), neighbours=1) == 0.0


def test_two_far_clusters_leave_a_hole_half_way() -> None:
    z = torch.cat([normal(500), normal(500) + torch.tensor([50.0, 0.0])])
    found = holes(z)
    assert found.depth.max() > 0.8
    assert (found.deepest(5)[:, 0] - 25).abs().max() < 5
    assert holes(normal()).depth.max() < 0.3


def test_the_range_holds_the_middle_codes() -> None:
    z = torch.stack([torch.linspace(0, 100, 101), torch.linspace(-1, 1, 101)], 1)
    (x0, x1), (y0, y1) = latent_range(z, tail=0.1)
    assert (x0, x1) == pytest.approx((10, 90))
    assert (y0, y1) == pytest.approx((-0.8, 0.8))


def test_the_grid_reads_like_a_page() -> None:
    grid = latent_grid((0.0, 1.0), (5.0, 7.0), count=3)
    assert grid[0].tolist() == [0.0, 7.0]
    assert grid[2].tolist() == [1.0, 7.0]
    assert grid[6].tolist() == [0.0, 5.0]


def test_the_mosaic_keeps_tiles_whole() -> None:
    tiles = torch.arange(6.0)[:, None, None].expand(6, 2, 3)
    picture = mosaic(tiles, columns=3)
    assert picture.shape == (4, 9)
    assert picture[0].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert picture[2, 8] == 5


def test_wrong_values_are_named() -> None:
    z = normal(10)
    with pytest.raises(ValueError, match="got neighbours=10, count=10"):
        neighbour_accuracy(z, torch.zeros(10, dtype=torch.long))
    with pytest.raises(ValueError, match=r"tail must lie in \[0, 0.5\); got tail=0.5"):
        latent_range(z, tail=0.5)
    with pytest.raises(ValueError, match="at least 2 to span a range; got count=1"):
        latent_grid((0.0, 1.0), (0.0, 1.0), count=1)
    with pytest.raises(ValueError, match="got columns=4, images=6"):
        mosaic(torch.zeros(6, 2, 2), columns=4)
