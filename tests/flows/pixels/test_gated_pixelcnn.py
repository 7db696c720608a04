"""Gates, shifts and convolutions against direct computations; dependence on all earlier pixels."""

import pytest
import torch

from parnassus.flows import gated_pixelcnn
from parnassus.flows.pixels.gated_pixelcnn import HorizontalConv2d, VerticalConv2d, gated_activation, shift_down


def test_gated_activation() -> None:
    x = torch.tensor([0.5, -1.0, 0.0, 100.0]).reshape(1, 4, 1, 1)
    torch.testing.assert_close(
        gated_activation(x).flatten(), torch.tensor([0.5, -1.0]).tanh() * torch.tensor([0.5, 1.0])
    )


def test_shift_down() -> None:
    x = torch.arange(6.0).reshape(1, 1, 3, 2)
    assert shift_down(x).flatten().tolist() == [0, 0, 0, 1, 2, 3]


def test_vertical_and_horizontal_convolutions_match_hand_computation() -> None:
    x = torch.arange(1.0, 13.0).reshape(1, 1, 3, 4)
    vertical, with_centre, without_centre = (
        VerticalConv2d(1, 1, 3),
        HorizontalConv2d(1, 1, 1, include_centre=True),
        HorizontalConv2d(1, 1, 2, include_centre=False),
    )
    for layer in (vertical, with_centre, without_centre):
        torch.nn.init.ones_(layer.convolution.weight)
        assert layer.convolution.bias is not None
        torch.nn.init.zeros_(layer.convolution.bias)
    assert vertical(x)[0, 0, 1, 2] == 2 + 3 + 4 + 6 + 7 + 8
    assert vertical(x)[0, 0, 0, 0] == 1 + 2
    assert with_centre(x)[0, 0, 1].tolist() == [5, 11, 13, 15]
    assert without_centre(x)[0, 0, 1].tolist() == [0, 5, 11, 13]


@pytest.mark.parametrize("pixel", range(12))
def test_pixel_affects_exactly_the_later_conditionals(pixel: int) -> None:
    torch.manual_seed(0)
    model = gated_pixelcnn((3, 4), levels=4, channels=8, num_layers=6, kernel_size=3).double()
    x = torch.randint(4, (1, 3, 4))
    other = x.clone()
    other.view(-1)[pixel] = (other.view(-1)[pixel] + 2) % 4
    with torch.no_grad():
        changed = (model(x) != model(other)).any(1).flatten().nonzero()[:, 0].tolist()
    assert changed == list(range(pixel + 1, 12))


def test_even_kernel_size_raises_value_error() -> None:
    with pytest.raises(ValueError, match="must be odd; got kernel_size=4"):
        gated_pixelcnn((3, 3), kernel_size=4)
