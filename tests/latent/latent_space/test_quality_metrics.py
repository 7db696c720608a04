"""Metrics of a latent space on codes with known values."""

import pytest
import torch

from parnassus.latent.latent_space.quality_metrics import (
    anisotropy,
    centre_offset,
    find_holes,
    grid_coverage,
    neighbour_accuracy,
)


def normal_codes(count: int = 4_000) -> torch.Tensor:
    return torch.randn(count, 2, generator=torch.Generator().manual_seed(0))


def test_standard_normal_codes_are_centred_and_isotropic() -> None:
    z = normal_codes()
    assert centre_offset(z) < 0.03
    assert anisotropy(z) < 1.05


def test_shifts_and_scalings_are_detected() -> None:
    z = normal_codes() * torch.tensor([3.0, 1.0])
    torch.testing.assert_close(anisotropy(z), torch.tensor(3.0), rtol=0.05, atol=0)
    shifted = z - z.mean(0) + torch.tensor([20.0, 0.0])
    torch.testing.assert_close(centre_offset(shifted), torch.tensor(20 / 10**0.5), rtol=0.05, atol=0)


def test_coverage_counts_cells() -> None:
    corners = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    assert grid_coverage(corners, cells=2) == 1.0
    assert grid_coverage(corners[:2], cells=2) == 0.5
    assert grid_coverage(corners, cells=4) == 0.25


def test_neighbour_accuracy_excludes_the_point_itself() -> None:
    separated = torch.cat([normal_codes(50), normal_codes(50) + 100])
    labels = torch.arange(100) // 50
    assert neighbour_accuracy(separated, labels, neighbours=5) == 1.0
    pairs = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    assert neighbour_accuracy(pairs, torch.tensor([0, 1, 0, 1]), neighbours=1) == 0.0


def test_two_distant_clusters_have_a_hole_between_them() -> None:
    z = torch.cat([normal_codes(500), normal_codes(500) + torch.tensor([50.0, 0.0])])
    holes = find_holes(z)
    assert holes.depth.max() > 0.8
    assert (holes.deepest(5)[:, 0] - 25).abs().max() < 5
    assert find_holes(normal_codes()).depth.max() < 0.3


def test_invalid_values_raise() -> None:
    z = normal_codes(10)
    with pytest.raises(ValueError, match="got neighbours=10, count=10"):
        neighbour_accuracy(z, torch.zeros(10, dtype=torch.long))


def test_neighbours_are_found_far_from_the_origin() -> None:
    """The squares of coordinates of 10⁴ exceed float32's precision at distances below 1."""
    z = torch.arange(40.0)[:, None].expand(-1, 2) / 16
    labels = torch.arange(40) // 20
    assert float(neighbour_accuracy(z + 1e4, labels, neighbours=1)) == float(
        neighbour_accuracy(z, labels, neighbours=1)
    )
