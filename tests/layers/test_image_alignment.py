"""Image alignment: anchor, scale and position of figures."""

import pytest
import torch
from torch import Tensor

from parnassus.layers.image_alignment import ImageAlignment, bounding_box_centre, centre_of_mass, longest_side


def draw_box(row: int, column: int, height: int, width: int, *, size: int = 28) -> Tensor:
    """A black image with a white box."""
    image = torch.zeros(1, 1, size, size)
    image[..., row : row + height, column : column + width] = 1
    return image


def test_anchors_and_longest_side_of_a_box() -> None:
    image = draw_box(3, 10, 5, 2)
    assert centre_of_mass(image).tolist() == [[10.5, 5.0]]  # x, then y
    assert bounding_box_centre(image).tolist() == [[10.5, 5.0]]
    assert longest_side(image).tolist() == [5.0]


def test_centre_of_mass_and_bounding_box_centre_differ_for_asymmetric_figures() -> None:
    image = draw_box(4, 4, 1, 9) + draw_box(5, 4, 8, 1)  # an L upside down
    assert bounding_box_centre(image).tolist() == [[8.0, 8.0]]
    assert centre_of_mass(image)[0].lt(8).all()


def test_faint_pixels_are_ignored() -> None:
    image = draw_box(10, 10, 4, 4) + 0.1 * draw_box(0, 0, 2, 2)
    assert longest_side(image).tolist() == [4.0]


@pytest.mark.parametrize("anchor", [centre_of_mass, bounding_box_centre])
def test_fit_selects_the_anchor_shared_by_the_images(anchor: object) -> None:
    """L-shaped figures of several sizes with the same centre of mass or of the bounding box."""
    figures = torch.cat([draw_box(4, 4, 1, width) + draw_box(5, 4, 8, 1) for width in range(2, 10)])
    assert callable(anchor)
    aligned = ImageAlignment(anchor, torch.tensor([14.0, 14.0]), 9.0).transform(figures)
    fitted = ImageAlignment.fit(aligned)
    assert fitted.anchor is anchor
    torch.testing.assert_close(fitted.position, torch.tensor([14.0, 14.0]), atol=0.3, rtol=0)


def test_small_figure_in_a_corner_is_centred_and_enlarged() -> None:
    alignment = ImageAlignment(bounding_box_centre, torch.tensor([13.5, 13.5]), 20.0)
    aligned = alignment.transform(draw_box(1, 2, 10, 4))
    torch.testing.assert_close(aligned, draw_box(4, 10, 20, 8), atol=0.6, rtol=0)  # border pixels are interpolated
    torch.testing.assert_close(aligned[..., 5:23, 11:17], torch.ones(1, 1, 18, 6))


def test_aligned_figure_is_unchanged() -> None:
    torch.manual_seed(0)
    images = torch.rand(3, 1, 8, 8)
    aligned = ImageAlignment(
        bounding_box_centre, bounding_box_centre(images)[0], float(longest_side(images)[0])
    ).transform(images[:1])
    torch.testing.assert_close(aligned, images[:1], atol=1e-5, rtol=0)


def test_empty_image_is_unchanged() -> None:
    blank = torch.zeros(1, 1, 8, 8)
    for anchor in (centre_of_mass, bounding_box_centre):
        assert torch.equal(ImageAlignment(anchor, torch.tensor([3.5, 3.5]), 8.0).transform(blank), blank)
