"""The U-Net: image sizes, initial output, conditioning, memory formats and gradients."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.diffusion.networks.unet import Downsample, UNet, UNetBlock, Upsample


def randomise_zeros(network: nn.Module) -> nn.Module:
    """The network with random values in place of zero-initialised parameters."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            if not bool(parameter.any()):
                parameter.normal_(0, 0.1)
    return network


def small_network(shape: tuple[int, int, int] = (1, 8, 8), *, classes: int = 0) -> UNet:
    torch.manual_seed(0)
    network = UNet(shape, 8, multipliers=(1, 2), blocks=1, attention=(1,), classes=classes)
    randomise_zeros(network)
    return network


def noised_images(shape: tuple[int, int, int], count: int = 3) -> tuple[Tensor, Tensor]:
    torch.manual_seed(2)
    return torch.randn(count, *shape), torch.arange(count) * 7


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 28, 28), (2, 9, 14), (1, 1, 5)])
def test_output_shape(shape: tuple[int, int, int]) -> None:
    x, t = noised_images(shape)
    assert UNet(shape, 8, multipliers=(1, 2, 2), blocks=2)(x, t).shape == x.shape


def test_untrained_network_outputs_zeros() -> None:
    x, t = noised_images((1, 8, 8))
    assert not bool(UNet((1, 8, 8), 8)(x, t).any())


def test_inputs_are_zero_padded_to_a_multiple_of_the_stride() -> None:
    """An image of odd size gives the same output as the zero-padded image."""
    x, t = noised_images((1, 7, 5))
    odd, even = small_network((1, 7, 5)), small_network((1, 8, 6))
    even.load_state_dict(odd.state_dict())
    padded = even(torch.nn.functional.pad(x, (0, 1, 0, 1)), t)
    torch.testing.assert_close(odd(x, t), padded[..., :7, :5])


def test_all_parameters_receive_gradients_and_examples_are_independent() -> None:
    network = small_network(classes=3)
    x, t = noised_images((1, 8, 8))
    x.requires_grad_()
    network(x, t, torch.tensor([0, 1, 3]))[0].square().sum().backward()
    assert x.grad is not None
    assert bool(x.grad[0].any())
    assert not bool(x.grad[1:].any())
    without_gradient = [name for name, parameter in network.named_parameters() if parameter.grad is None]
    assert without_gradient == []


def test_output_depends_on_step_and_class_and_null_label_equals_no_label() -> None:
    network = small_network(classes=3)
    x, t = noised_images((1, 8, 8))
    null, first = torch.full_like(t, 3), torch.zeros_like(t)
    torch.testing.assert_close(network(x, t), network(x, t, null))
    assert not torch.allclose(network(x, t), network(x, t, first), atol=1e-3)
    assert not torch.allclose(network(x, t), network(x, t + 50), atol=1e-3)


def test_output_does_not_depend_on_the_memory_format() -> None:
    x, t = noised_images((2, 8, 8))
    network = small_network((2, 8, 8))
    expected = network(x, t)
    for parameter in network.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(network(x.contiguous(memory_format=torch.channels_last), t), expected)


@torch.no_grad()
def test_bfloat16_autocast_is_close_to_float32() -> None:
    network = small_network()
    x, t = noised_images((1, 8, 8))
    exact = network(x, t)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        approximate = network(x, t)
    assert float((approximate.float() - exact).norm() / exact.norm()) < 0.03


def test_block_is_initially_its_shortcut_and_resampling_changes_sizes_by_2() -> None:
    h, embedding = torch.randn(2, 8, 4, 6), torch.randn(2, 5)
    torch.testing.assert_close(UNetBlock(8, 8, 5, attention=True)(h, embedding), h)
    wider = UNetBlock(8, 12, 5)
    torch.testing.assert_close(wider(h, embedding), wider.shortcut(h))
    assert Downsample(8)(h).shape == (2, 8, 2, 3)
    assert Upsample(8)(h).shape == (2, 8, 8, 12)


def test_number_of_attention_layers() -> None:
    def count_attention_layers(levels: tuple[int, ...]) -> int:
        network = UNet((1, 8, 8), 8, multipliers=(1, 2), blocks=1, attention=levels)
        return sum("qkv.weight" in name for name, _ in network.named_parameters())

    assert [count_attention_layers(()), count_attention_layers((1,)), count_attention_layers((0, 1))] == [
        0,
        4,
        7,
    ]  # one layer in the encoder, two in the decoder, one in the middle


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"levels from 0 to 1.*got \[2\]"):
        UNet((1, 8, 8), 8, multipliers=(1, 2), attention=(2,))
    with pytest.raises(ValueError, match="must be positive; got width=8, blocks=0"):
        UNet((1, 8, 8), 8, blocks=0)
    with pytest.raises(ValueError, match="without classes"):
        small_network()(*noised_images((1, 8, 8)), torch.zeros(3, dtype=torch.int64))
