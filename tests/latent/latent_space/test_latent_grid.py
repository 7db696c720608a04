"""Ranges and grids of codes, and tiled images."""

import pytest
import torch

from parnassus.latent.latent_space.latent_grid import latent_grid, latent_range, tile_images


def test_latent_range_excludes_the_tails() -> None:
    z = torch.stack([torch.linspace(0, 100, 101), torch.linspace(-1, 1, 101)], 1)
    (x0, x1), (y0, y1) = latent_range(z, tail=0.1)
    assert (x0, x1) == pytest.approx((10, 90))
    assert (y0, y1) == pytest.approx((-0.8, 0.8))


def test_latent_grid_is_in_row_major_order() -> None:
    grid = latent_grid((0.0, 1.0), (5.0, 7.0), count=3)
    assert grid[0].tolist() == [0.0, 7.0]
    assert grid[2].tolist() == [1.0, 7.0]
    assert grid[6].tolist() == [0.0, 5.0]


def test_tiling_keeps_images_intact() -> None:
    tiles = torch.arange(6.0)[:, None, None].expand(6, 2, 3)
    image = tile_images(tiles, columns=3)
    assert image.shape == (4, 9)
    assert image[0].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert image[2, 8] == 5


def test_invalid_values_raise() -> None:
    with pytest.raises(ValueError, match=r"tail must lie in \[0, 0.5\); got tail=0.5"):
        latent_range(torch.zeros(10, 2), tail=0.5)
    with pytest.raises(ValueError, match="at least 2 to span a range; got count=1"):
        latent_grid((0.0, 1.0), (0.0, 1.0), count=1)
    with pytest.raises(ValueError, match="got columns=4, images=6"):
        tile_images(torch.zeros(6, 2, 2), columns=4)
