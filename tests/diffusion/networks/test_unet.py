"""The U-Net: any size, silent at first, told step and class, the same however memory is laid out."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.diffusion.networks.unet import Downsample, UNet, UNetBlock, Upsample


def awake(network: nn.Module) -> nn.Module:
    """The network with every zero start replaced, as if it had learned something."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            if not bool(parameter.any()):
                parameter.normal_(0, 0.1)
    return network


def small(shape: tuple[int, int, int] = (1, 8, 8), *, classes: int = 0) -> UNet:
    torch.manual_seed(0)
    network = UNet(shape, 8, multipliers=(1, 2), blocks=1, attention=(1,), classes=classes)
    awake(network)
    return network


def scene(shape: tuple[int, int, int], count: int = 3) -> tuple[Tensor, Tensor]:
    torch.manual_seed(2)
    return torch.randn(count, *shape), torch.arange(count) * 7


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 28, 28), (2, 9, 14), (1, 1, 5)])
def test_noise_has_the_shape_of_any_picture(shape: tuple[int, int, int]) -> None:
    x, t = scene(shape)
    assert UNet(shape, 8, multipliers=(1, 2, 2), blocks=2)(x, t).shape == x.shape


def test_an_untrained_network_finds_no_noise() -> None:
    x, t = scene((1, 8, 8))
    assert not bool(UNet((1, 8, 8), 8)(x, t).any())


def test_padding_inside_is_padding_outside() -> None:
    """A picture that does not divide gives what the same network gives for the picture with zeros around it."""
    x, t = scene((1, 7, 5))
    odd, even = small((1, 7, 5)), small((1, 8, 6))
    even.load_state_dict(odd.state_dict())
    outside = even(torch.nn.functional.pad(x, (0, 1, 0, 1)), t)
    torch.testing.assert_close(odd(x, t), outside[..., :7, :5])


def test_every_parameter_learns_and_examples_stay_apart() -> None:
    network = small(classes=3)
    x, t = scene((1, 8, 8))
    x.requires_grad_()
    network(x, t, torch.tensor([0, 1, 3]))[0].square().sum().backward()
    assert x.grad is not None
    assert bool(x.grad[0].any())
    assert not bool(x.grad[1:].any())
    silent = [name for name, parameter in network.named_parameters() if parameter.grad is None]
    assert silent == []


def test_step_and_class_are_heard_and_the_null_label_is_no_label() -> None:
    network = small(classes=3)
    x, t = scene((1, 8, 8))
    null, first = torch.full_like(t, 3), torch.zeros_like(t)
    torch.testing.assert_close(network(x, t), network(x, t, null))
    assert not torch.allclose(network(x, t), network(x, t, first), atol=1e-3)
    assert not torch.allclose(network(x, t), network(x, t + 50), atol=1e-3)


def test_the_layout_of_memory_changes_nothing() -> None:
    x, t = scene((2, 8, 8))
    network = small((2, 8, 8))
    plain = network(x, t)
    for parameter in network.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(network(x.contiguous(memory_format=torch.channels_last), t), plain)


@torch.no_grad()
def test_bfloat16_autocast_stays_near() -> None:
    network = small()
    x, t = scene((1, 8, 8))
    exact = network(x, t)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = network(x, t)
    assert float((rough.float() - exact).norm() / exact.norm()) < 0.03


def test_a_stage_begins_as_its_shortcut_and_sizes_halve_and_double() -> None:
    h, code = torch.randn(2, 8, 4, 6), torch.randn(2, 5)
    torch.testing.assert_close(UNetBlock(8, 8, 5, attention=True)(h, code), h)
    wider = UNetBlock(8, 12, 5)
    torch.testing.assert_close(wider(h, code), wider.shortcut(h))
    assert Downsample(8)(h).shape == (2, 8, 2, 3)
    assert Upsample(8)(h).shape == (2, 8, 8, 12)


def test_attention_at_every_level_and_at_none() -> None:
    def layers(levels: tuple[int, ...]) -> int:
        network = UNet((1, 8, 8), 8, multipliers=(1, 2), blocks=1, attention=levels)
        return sum("qkv.weight" in name for name, _ in network.named_parameters())

    assert [layers(()), layers((1,)), layers((0, 1))] == [0, 4, 7]  # a stage down, two up, and the middle


def test_wrong_sizes_get_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"levels from 0 to 1.*got \[2\]"):
        UNet((1, 8, 8), 8, multipliers=(1, 2), attention=(2,))
    with pytest.raises(ValueError, match="must be positive; got width=8, blocks=0"):
        UNet((1, 8, 8), 8, blocks=0)
    with pytest.raises(ValueError, match="without classes"):
        small()(*scene((1, 8, 8)), torch.zeros(3, dtype=torch.int64))
