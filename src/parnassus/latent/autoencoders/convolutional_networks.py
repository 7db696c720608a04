"""Convolutional encoders and decoders for images of any channel count (book secs. 4.5, 6.3)."""

from collections.abc import Sequence

from torch import nn

from parnassus.errors import check_non_negative
from parnassus.latent.autoencoders.dense_networks import mlp_decoder, mlp_encoder
from parnassus.layers import Residual


def residual_block(channels: int) -> Residual:
    """Residual block x + W₂ g(W₁ g(x)) of 3 × 3 convolutions, initialised as the identity."""
    last = nn.Conv2d(channels, channels, 3, padding=1)
    for parameter in last.parameters():
        nn.init.zeros_(parameter)
    return Residual(nn.Sequential(nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.SiLU(), last))


def conv_encoder(
    shape: Sequence[int], outputs: int, *, width: int = 32, num_downsamplings: int = 2, blocks: int = 1
) -> nn.Sequential:
    """A network from an image of `shape` (channels, height, width) to `outputs` values.

    Each of the downsamplings halves height and width and doubles the number of channels, at first `width`. For a VAE
    `outputs` is 2·latent_dim: means, then log-variances.
    """
    channels, height, columns = _check_image_shape(shape, num_downsamplings)
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, padding=1)]
    for _ in range(num_downsamplings):
        layers += [residual_block(width) for _ in range(blocks)]
        layers += [nn.SiLU(), nn.Conv2d(width, 2 * width, 4, stride=2, padding=1)]
        width *= 2
    layers += [residual_block(width) for _ in range(blocks)]
    features = width * (height >> num_downsamplings) * (columns >> num_downsamplings)
    return nn.Sequential(*layers, nn.SiLU(), nn.Flatten(), nn.Linear(features, outputs))


def conv_decoder(
    latent_dim: int, shape: Sequence[int], *, width: int = 32, num_downsamplings: int = 2, blocks: int = 1
) -> nn.Sequential:
    """A network from a code to an image of `shape`, mirroring `conv_encoder`; its last layer is linear."""
    channels, height, columns = _check_image_shape(shape, num_downsamplings)
    width <<= num_downsamplings
    size = (width, height >> num_downsamplings, columns >> num_downsamplings)
    layers: list[nn.Module] = [nn.Linear(latent_dim, size[0] * size[1] * size[2]), nn.Unflatten(1, size)]
    for _ in range(num_downsamplings):
        layers += [residual_block(width) for _ in range(blocks)]
        layers += [nn.SiLU(), nn.ConvTranspose2d(width, width // 2, 4, stride=2, padding=1)]
        width //= 2
    layers += [residual_block(width) for _ in range(blocks)]
    return nn.Sequential(*layers, nn.SiLU(), nn.Conv2d(width, channels, 3, padding=1))


def image_networks(
    shape: Sequence[int], latent_dim: int, *, width: int, blocks: int
) -> tuple[nn.Sequential, nn.Sequential]:
    """An encoder with 2·latent_dim outputs and the network of a decoder, for images of `shape`.

    `blocks` is the number of residual blocks at each resolution; with 0 both have one hidden dense layer.
    """
    if blocks == 0:
        return mlp_encoder(shape, 2 * latent_dim, width=width), mlp_decoder(latent_dim, shape, width=width)
    encoder = conv_encoder(shape, 2 * latent_dim, width=width, blocks=blocks)
    return encoder, conv_decoder(latent_dim, shape, width=width, blocks=blocks)


def _check_image_shape(shape: Sequence[int], num_downsamplings: int) -> tuple[int, int, int]:
    if len(shape) != 3:
        raise ValueError(f"shape must be (channels, height, width); got shape={tuple(shape)}")
    channels, height, width = shape
    check_non_negative(num_downsamplings=num_downsamplings)
    if height % 2**num_downsamplings or width % 2**num_downsamplings:
        raise ValueError(
            f"height and width must be divisible by 2**num_downsamplings = {2**num_downsamplings}; "
            f"got {height} × {width}"
        )
    return channels, height, width
