"""Figures are found and put where a set of pictures has its own."""

import pytest
import torch
from torch import Tensor

from parnassus.layers.placement import Placement, centre_of_mass, longest_side, middle


def bar(row: int, column: int, height: int, width: int, *, size: int = 28) -> Tensor:
    """A white box in a black picture."""
    image = torch.zeros(1, 1, size, size)
    image[..., row : row + height, column : column + width] = 1
    return image


def test_a_box_has_its_middle_its_mass_and_its_side() -> None:
    image = bar(3, 10, 5, 2)
    assert centre_of_mass(image).tolist() == [[10.5, 5.0]]  # x, then y
    assert middle(image).tolist() == [[10.5, 5.0]]
    assert longest_side(image).tolist() == [5.0]


def test_mass_and_middle_part_where_the_ink_is_uneven() -> None:
    image = bar(4, 4, 1, 9) + bar(5, 4, 8, 1)  # an L upside down
    assert middle(image).tolist() == [[8.0, 8.0]]
    assert centre_of_mass(image)[0].lt(8).all()


def test_faint_pixels_are_no_part_of_the_frame() -> None:
    image = bar(10, 10, 4, 4) + 0.1 * bar(0, 0, 2, 2)
    assert longest_side(image).tolist() == [4.0]


@pytest.mark.parametrize("anchor", [centre_of_mass, middle])
def test_the_anchor_is_the_one_that_the_pictures_share(anchor: object) -> None:
    """Ls of many lengths, all with their mass, or all with their middle, at the same place."""
    figures = torch.cat([bar(4, 4, 1, width) + bar(5, 4, 8, 1) for width in range(2, 10)])
    assert callable(anchor)
    placed = Placement(anchor, torch.tensor([14.0, 14.0]), 9.0).apply(figures)
    fitted = Placement.fit(placed)
    assert fitted.anchor is anchor
    torch.testing.assert_close(fitted.place, torch.tensor([14.0, 14.0]), atol=0.3, rtol=0)


def test_a_small_figure_in_a_corner_becomes_a_large_one_in_the_middle() -> None:
    placement = Placement(middle, torch.tensor([13.5, 13.5]), 20.0)
    placed = placement.apply(bar(1, 2, 10, 4))
    torch.testing.assert_close(placed, bar(4, 10, 20, 8), atol=0.6, rtol=0)  # the rim is half way
    torch.testing.assert_close(placed[..., 5:23, 11:17], torch.ones(1, 1, 18, 6))


def test_a_figure_in_its_place_stays_as_it_is() -> None:
    torch.manual_seed(0)
    images = torch.rand(3, 1, 8, 8)
    placed = Placement(middle, middle(images)[0], float(longest_side(images)[0])).apply(images[:1])
    torch.testing.assert_close(placed, images[:1], atol=1e-5, rtol=0)


def test_blank_paper_stays_blank() -> None:
    blank = torch.zeros(1, 1, 8, 8)
    for anchor in (centre_of_mass, middle):
        assert torch.equal(Placement(anchor, torch.tensor([3.5, 3.5]), 8.0).apply(blank), blank)
