import pytest
import torch
from torch import nn

from parnassus.convolution import first_filters, lenet
from parnassus.layers import count_parameters, tanh


def test_default_parameter_count_matches_lenet_5() -> None:
    assert count_parameters(lenet((1, 28, 28), 10)) == 61_706


@pytest.mark.parametrize("shape", [(1, 12, 12), (3, 32, 32), (1, 17, 40)])
def test_images_of_any_sufficient_size_are_accepted(shape: tuple[int, int, int]) -> None:
    model = lenet(shape, 7, channels=(4, 8), hidden=(16,), dropout=0.1)
    assert model(torch.randn(5, *shape)).shape == (5, 7)
    assert first_filters(model).shape == (4, shape[0], 5, 5)


def test_output_matches_explicit_layers() -> None:
    torch.manual_seed(0)
    model = lenet((1, 28, 28), 10, activation=tanh, pool=nn.AvgPool2d)
    x = torch.randn(3, 1, 28, 28)
    first, second = (module for module in model.modules() if isinstance(module, nn.Conv2d))
    dense = [parameters for name, parameters in model.named_parameters() if "convolution" not in name]
    h = nn.functional.avg_pool2d(torch.tanh(nn.functional.conv2d(x, first.weight, first.bias, padding=2)), 2)
    h = nn.functional.avg_pool2d(torch.tanh(nn.functional.conv2d(h, second.weight, second.bias)), 2).flatten(1)
    h = torch.tanh(h @ dense[0] + dense[1])
    h = torch.tanh(h @ dense[2] + dense[3])
    torch.testing.assert_close(model(x), h @ dense[4] + dense[5])


def test_logits_can_be_negative() -> None:
    torch.manual_seed(0)
    assert float(lenet((1, 28, 28), 10)(torch.randn(8, 1, 28, 28)).detach().min()) < 0


def test_too_small_images_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least 12 × 12 pixels; got 8 × 8"):
        lenet((1, 8, 8), 10)
