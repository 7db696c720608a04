"""Convolutional residual networks: shapes, parameter counts and blocks."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional

from parnassus.convolution.residual import (
    Block,
    basic_block,
    bottleneck_block,
    conv_batch_norm,
    grouped_block,
    resnet,
    resnet18,
    resnet50,
    resnext50,
    small_stem,
)
from parnassus.layers import Classifier, count_parameters


@pytest.mark.parametrize(("model", "count"), [(resnet18, 11_689_512), (resnet50, 25_557_032), (resnext50, 25_028_904)])
def test_parameter_counts_match_published_networks(model: Callable[[], Classifier], count: int) -> None:
    with torch.device("meta"):
        network = model()
        assert count_parameters(network) == count
        assert network(torch.empty(2, 3, 224, 224)).shape == (2, 1_000)


@pytest.mark.parametrize("block", [basic_block, bottleneck_block, partial(grouped_block, groups=4)])
@pytest.mark.parametrize(("inputs", "stride", "side"), [(16, 1, 8), (8, 1, 8), (16, 2, 4)])
def test_block_outputs_are_nonnegative_with_shape_given_by_stride(
    block: Block, inputs: int, stride: int, side: int
) -> None:
    y = block(inputs, 16, stride)(torch.randn(2, inputs, 8, 8))
    assert y.shape == (2, 16, side, side)
    assert float(y.detach().min()) >= 0


def test_basic_block_matches_its_formula() -> None:
    torch.manual_seed(0)
    block, x = basic_block(4, 4).eval(), torch.randn(2, 4, 6, 6)
    first, second = block.get_parameter("body.0.weight"), block.get_parameter("body.3.weight")
    normalisation = (1 + 1e-5) ** -0.5  # batch normalisation with initial running averages
    h = (functional.conv2d(x, first, padding=1) * normalisation).relu()
    torch.testing.assert_close(block(x), (x + functional.conv2d(h, second, padding=1) * normalisation).relu())


def test_groups_divide_the_number_of_weights() -> None:
    ungrouped, grouped = (count_parameters(conv_batch_norm(32, 32, 3, groups=groups)) for groups in (1, 8))
    assert ungrouped - 64 == 8 * (grouped - 64) == 32 * 32 * 9


def test_groups_are_independent() -> None:
    torch.manual_seed(0)
    layer = conv_batch_norm(8, 8, 3, groups=2).eval()
    x = torch.randn(1, 8, 5, 5)
    changed = x.clone()
    changed[:, 4:] += 1
    torch.testing.assert_close(layer(x)[:, :4], layer(changed)[:, :4])
    assert not torch.allclose(layer(x)[:, 4:], layer(changed)[:, 4:])


def test_all_parameters_receive_gradients_and_convolutions_have_no_bias() -> None:
    torch.manual_seed(0)
    model = resnet(small_stem(1, 8), 3, block=basic_block, counts=(1, 1), widths=(8, 16), inputs=8)
    model.loss(torch.randn(6, 1, 8, 8), torch.arange(6) % 3).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
    assert not any(isinstance(module, nn.Conv2d) and module.bias is not None for module in model.modules())


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must be a multiple of 4; got outputs=18"):
        bottleneck_block(18, 18)
    with pytest.raises(ValueError, match="groups must divide outputs / 2; got outputs=64, groups=5"):
        grouped_block(64, 64, groups=5)
    with pytest.raises(ValueError, match=r"one entry per stage, counts at least 1; got counts=\(2, 2\), widths=\(8,\)"):
        resnet(small_stem(1, 8), 3, block=basic_block, counts=(2, 2), widths=(8,))
