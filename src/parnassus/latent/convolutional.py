"""Convolutional encoders and decoders for images of any channel count (book secs. 4.5, 6.3)."""

from collections.abc import Sequence

from torch import nn

from parnassus.layers import Residual


def residual_block(channels: int) -> Residual:
    """Build x + W₂ g(W₁ g(x)) of 3 × 3 convolutions; it begins as the identity, so that depth costs no trainability."""
    last = nn.Conv2d(channels, channels, 3, padding=1)
    for parameter in last.parameters():
        nn.init.zeros_(parameter)
    return Residual(nn.Sequential(nn.SiLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.SiLU(), last))


def conv_encoder(
    shape: Sequence[int], outputs: int, *, width: int = 32, halvings: int = 2, blocks: int = 1
) -> nn.Sequential:
    """An image of `shape` (channels, height, width) to `outputs` numbers, halving its sides `halvings` times.

    For a VAE `outputs` is twice the size of the code: means, then log-variances.
    """
    channels, height, wide = _image(shape, halvings)
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, padding=1)]
    for _ in range(halvings):
        layers += [residual_block(width) for _ in range(blocks)]
        layers += [nn.SiLU(), nn.Conv2d(width, 2 * width, 4, stride=2, padding=1)]
        width *= 2
    layers += [residual_block(width) for _ in range(blocks)]
    features = width * (height >> halvings) * (wide >> halvings)
    return nn.Sequential(*layers, nn.SiLU(), nn.Flatten(), nn.Linear(features, outputs))


def conv_decoder(
    latent: int, shape: Sequence[int], *, width: int = 32, halvings: int = 2, blocks: int = 1
) -> nn.Sequential:
    """A code to an image of `shape`, the mirror of `conv_encoder`; the last layer is linear (logits or means)."""
    channels, height, wide = _image(shape, halvings)
    width <<= halvings
    size = (width, height >> halvings, wide >> halvings)
    layers: list[nn.Module] = [nn.Linear(latent, size[0] * size[1] * size[2]), nn.Unflatten(1, size)]
    for _ in range(halvings):
        layers += [residual_block(width) for _ in range(blocks)]
        layers += [nn.SiLU(), nn.ConvTranspose2d(width, width // 2, 4, stride=2, padding=1)]
        width //= 2
    layers += [residual_block(width) for _ in range(blocks)]
    return nn.Sequential(*layers, nn.SiLU(), nn.Conv2d(width, channels, 3, padding=1))


def _image(shape: Sequence[int], halvings: int) -> tuple[int, int, int]:
    if len(shape) != 3:
        raise ValueError(f"an image has channels, height and width; got shape {tuple(shape)}")
    channels, height, width = shape
    if halvings < 0:
        raise ValueError(f"sides can be halved 0 times or more; got halvings={halvings}")
    if height % 2**halvings or width % 2**halvings:
        raise ValueError(f"sides must divide by 2^halvings = {2**halvings}; got {height} × {width}")
    return channels, height, width
