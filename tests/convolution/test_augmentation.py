import pytest
import torch

from parnassus.convolution import random_affine
from parnassus.layers.image_alignment import centre_of_mass


def square_images(count: int) -> torch.Tensor:
    """Images of a small square to the right of the centre."""
    images = torch.zeros(count, 1, 28, 28)
    images[:, :, 10:16, 14:20] = 1.0
    return images


def test_zero_ranges_give_the_identity() -> None:
    images = torch.rand(4, 3, 9, 13)
    torch.testing.assert_close(random_affine(images, translate=0.0, degrees=0.0, scale=0.0), images, atol=1e-5, rtol=0)


def test_translations_are_within_the_range_and_preserve_the_sum_of_pixels() -> None:
    torch.manual_seed(0)
    images = square_images(2_000)[:, :, :, 2:26]  # higher than wide, so that the axes differ
    translated = random_affine(images, translate=3.0, degrees=0.0, scale=0.0)
    displacement = centre_of_mass(translated) - centre_of_mass(images)
    for each in displacement.unbind(1):
        assert 2.9 < float(each.max()) < 3.01
        assert -3.01 < float(each.min()) < -2.9
    torch.testing.assert_close(displacement.mean(0), torch.zeros(2), atol=0.15, rtol=0)
    torch.testing.assert_close(translated.sum((1, 2, 3)), images.sum((1, 2, 3)), atol=1e-3, rtol=0)


def test_shifts_reach_the_given_number_of_pixels_on_both_axes() -> None:
    """The images are not square: a shift in units of the other axis would be wrong."""
    torch.manual_seed(0)
    images = torch.zeros(4_000, 1, 20, 40)
    images[:, :, 8:12, 17:22] = 1.0
    displacement = centre_of_mass(random_affine(images, translate=3.0, degrees=0.0, scale=0.0)) - centre_of_mass(images)
    vertical, horizontal = displacement.unbind(1)
    for shift in (vertical, horizontal):  # uniform on [−3, 3]
        assert 2.95 < float(shift.max()) < 3.01
        assert -3.01 < float(shift.min()) < -2.95
        torch.testing.assert_close(shift.std(), torch.tensor(3 / 3**0.5), atol=0.05, rtol=0)
    assert abs(float(torch.corrcoef(displacement.T)[0, 1])) < 0.07


def test_rotations_preserve_the_distance_from_the_centre() -> None:
    torch.manual_seed(0)
    images = square_images(500)
    centre = torch.tensor([13.5, 13.5])
    before, after = (
        torch.linalg.vector_norm(centre_of_mass(x) - centre, dim=1)
        for x in (images, random_affine(images, translate=0.0, degrees=90.0, scale=0.0))
    )
    torch.testing.assert_close(after, before, atol=0.06, rtol=0)


def test_scaling_changes_the_area_by_the_squared_factor() -> None:
    torch.manual_seed(0)
    images = square_images(2_000)
    area = random_affine(images, translate=0.0, degrees=0.0, scale=0.2).sum((1, 2, 3)) / 36
    assert 1 / 1.2**2 - 0.05 < float(area.min()) < 1 / 1.15**2
    assert 1 / 0.85**2 < float(area.max()) < 1 / 0.8**2 + 0.05


def test_images_of_a_batch_differ_and_equal_seeds_give_equal_images() -> None:
    images = square_images(2)
    torch.manual_seed(0)
    first = random_affine(images)
    torch.manual_seed(0)
    assert torch.equal(first, random_affine(images))
    assert not torch.equal(first[0], first[1])


@pytest.mark.parametrize(("translate", "degrees", "scale"), [(-1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0)])
def test_invalid_ranges_raise_value_error(translate: float, degrees: float, scale: float) -> None:
    with pytest.raises(ValueError, match=r"translate and degrees must be ≥ 0 and scale in \[0, 1\); got"):
        random_affine(square_images(1), translate=translate, degrees=degrees, scale=scale)
