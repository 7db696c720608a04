"""Convolutional encoders and decoders: shapes, and residual blocks that start as the identity."""

import pytest
import torch

from parnassus.latent.autoencoders.convolutional_networks import conv_decoder, conv_encoder, residual_block


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 24), (1, 8, 8)])
@pytest.mark.parametrize("num_downsamplings", [0, 1, 2])
def test_encoder_and_decoder_shapes(shape: tuple[int, int, int], num_downsamplings: int) -> None:
    encoder = conv_encoder(shape, 6, width=4, num_downsamplings=num_downsamplings)
    decoder = conv_decoder(3, shape, width=4, num_downsamplings=num_downsamplings)
    assert encoder(torch.rand(2, *shape)).shape == (2, 6)
    assert decoder(torch.randn(2, 3)).shape == (2, *shape)


def test_sides_halve_and_channels_double() -> None:
    encoder = conv_encoder((1, 8, 8), 4, width=4, num_downsamplings=2, blocks=0)
    assert encoder[:-2](torch.rand(1, 1, 8, 8)).shape == (1, 16, 2, 2)


def test_residual_block_is_initialised_as_the_identity() -> None:
    torch.manual_seed(0)
    block, x = residual_block(3), torch.randn(2, 3, 5, 5)
    torch.testing.assert_close(block(x), x, rtol=0, atol=0)
    block(x).square().sum().backward()
    assert any(bool(parameter.grad.any()) for parameter in block.parameters() if parameter.grad is not None)


def test_invalid_shapes_raise() -> None:
    with pytest.raises(ValueError, match=r"\(channels, height, width\); got shape=\(28, 28\)"):
        conv_encoder((28, 28), 4)
    with pytest.raises(ValueError, match=r"2\*\*num_downsamplings = 8; got 28 × 28"):
        conv_decoder(2, (1, 28, 28), num_downsamplings=3)
    with pytest.raises(ValueError, match="num_downsamplings must not be negative; got num_downsamplings=-1"):
        conv_encoder((1, 8, 8), 4, num_downsamplings=-1)
