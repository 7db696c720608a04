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
    shape: Sequence[int], outputs: int, *, width: int = 32, halvings: int = 2, blocks: int = 1
) -> nn.Sequential:
    """An image of `shape` (channels, height, width) to `outputs` values, halving its sides `halvings` times.

    For a VAE `outputs` is 2·latent_dim: means, then log-variances.
    """
    channels, height, columns = _check_image_shape(shape, halvings)
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, padding=1)]
    for _ in range(halvings):
        layers += [residual_block(width) for _ in range(blocks)]
        layers += [nn.SiLU(), nn.Conv2d(width, 2 * width, 4, stride=2, padding=1)]
        width *= 2
    layers += [residual_block(width) for _ in range(blocks)]
    features = width * (height >> halvings) * (columns >> halvings)
    return nn.Sequential(*layers, nn.SiLU(), nn.Flatten(), nn.Linear(features, outputs))


def conv_decoder(
    latent_dim: int, shape: Sequence[int], *, width: int = 32, halvings: int = 2, blocks: int = 1
) -> nn.Sequential:
    """A code to an image of `shape`, mirroring `conv_encoder`; the last layer is linear (logits or means)."""
    channels, height, columns = _check_image_shape(shape, halvings)
    width <<= halvings
    size = (width, height >> halvings, columns >> halvings)
    layers: list[nn.Module] = [nn.Linear(latent_dim, size[0] * size[1] * size[2]), nn.Unflatten(1, size)]
    for _ in range(halvings):
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


def _check_image_shape(shape: Sequence[int], halvings: int) -> tuple[int, int, int]:
    if len(shape) != 3:
        raise ValueError(f"shape must be (channels, height, width); got shape={tuple(shape)}")
    channels, height, width = shape
    check_non_negative(halvings=halvings)
    if height % 2**halvings or width % 2**halvings:
        raise ValueError(f"height and width must be divisible by 2^halvings = {2**halvings}; got {height} × {width}")
    return channels, height, width
