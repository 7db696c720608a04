import pytest
import torch

from parnassus.convolution import random_affine
from parnassus.layers.image_alignment import centre_of_mass


def squares(count: int) -> torch.Tensor:
    """A small square away from every edge, a little right of the middle."""
    images = torch.zeros(count, 1, 28, 28)
    images[:, :, 10:16, 14:20] = 1.0
    return images


def test_no_movement_changes_nothing() -> None:
    images = torch.rand(4, 3, 9, 13)
    torch.testing.assert_close(random_affine(images, translate=0.0, degrees=0.0, scale=0.0), images, atol=1e-5, rtol=0)


def test_a_shift_moves_by_up_to_that_many_pixels_and_keeps_the_ink() -> None:
    torch.manual_seed(0)
    images = squares(2_000)
    moved = random_affine(images, translate=3.0, degrees=0.0, scale=0.0)
    way = centre_of_mass(moved) - centre_of_mass(images)
    assert 2.9 < float(way.abs().max()) < 3.01
    torch.testing.assert_close(way.mean(0), torch.zeros(2), atol=0.15, rtol=0)
    torch.testing.assert_close(moved.sum((1, 2, 3)), images.sum((1, 2, 3)), atol=1e-3, rtol=0)


def test_a_turn_keeps_the_distance_from_the_middle() -> None:
    torch.manual_seed(0)
    images = squares(500)
    middle = torch.tensor([13.5, 13.5])
    before, after = (
        torch.linalg.vector_norm(centre_of_mass(each) - middle, dim=1)
        for each in (images, random_affine(images, translate=0.0, degrees=90.0, scale=0.0))
    )
    torch.testing.assert_close(after, before, atol=0.06, rtol=0)


def test_a_scale_changes_the_area_by_its_square() -> None:
    torch.manual_seed(0)
    images = squares(2_000)
    area = random_affine(images, translate=0.0, degrees=0.0, scale=0.2).sum((1, 2, 3)) / 36
    assert 1 / 1.2**2 - 0.05 < float(area.min()) < 1 / 1.15**2
    assert 1 / 0.85**2 < float(area.max()) < 1 / 0.8**2 + 0.05


def test_pictures_of_one_batch_move_apart_and_a_seed_moves_them_alike() -> None:
    images = squares(2)
    torch.manual_seed(0)
    first = random_affine(images)
    torch.manual_seed(0)
    assert torch.equal(first, random_affine(images))
    assert not torch.equal(first[0], first[1])


@pytest.mark.parametrize(("shift", "turn", "scale"), [(-1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0)])
def test_ranges_that_make_no_sense_get_a_sentence(shift: float, turn: float, scale: float) -> None:
    with pytest.raises(ValueError, match=r"translate and degrees must be ≥ 0 and scale in \[0, 1\); got"):
        random_affine(squares(1), translate=shift, degrees=turn, scale=scale)
