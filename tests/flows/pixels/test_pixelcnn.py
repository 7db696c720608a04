"""Masks, causality, and a masked convolution against an unmasked one."""

import pytest
import torch

from parnassus.flows import MaskedConv2d, PixelModel, causal_filter_mask, pixelcnn


def small_model(levels: int = 2) -> PixelModel:
    torch.manual_seed(0)
    return pixelcnn((3, 3), levels=levels, channels=8, blocks=2, first_kernel_size=3).double()


def test_causal_masks_differ_only_in_the_centre() -> None:
    mask = [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert causal_filter_mask(3, include_centre=False).tolist() == mask
    mask[1][1] = 1.0
    assert causal_filter_mask(3, include_centre=True).tolist() == mask


def test_masked_convolution_equals_convolution_with_masked_filter() -> None:
    torch.manual_seed(0)
    layer = MaskedConv2d(2, 3, 5, include_centre=True)
    x = torch.randn(1, 2, 6, 6)
    expected = layer(x)
    with torch.no_grad():
        layer.convolution.weight.mul_(layer.mask)
    torch.testing.assert_close(expected, layer.convolution(x))


@pytest.mark.parametrize("pixel", range(9))
def test_pixel_affects_only_later_conditionals(pixel: int) -> None:
    model = small_model(levels=4)
    x = torch.randint(4, (1, 3, 3), generator=torch.Generator().manual_seed(1))
    other = x.clone()
    other.view(-1)[pixel] = (other.view(-1)[pixel] + 1) % 4
    with torch.no_grad():
        changed = (model(x) != model(other)).any(1).flatten().nonzero()[:, 0].tolist()
    assert all(index > pixel for index in changed)
    assert pixel == 8 or pixel + 1 in changed or pixel % 3 == 2  # the right neighbour depends on it


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must be odd; got kernel_size=4"):
        causal_filter_mask(4, include_centre=True)
    with pytest.raises(ValueError, match="at least 2 and shape positive; got levels=1"):
        pixelcnn((3, 3), levels=1)
