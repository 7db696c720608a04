"""Dense encoders and decoders for examples of any shape (book sec. 6.3)."""

from collections.abc import Sequence
from math import prod

from torch import nn

from parnassus.layers import mlp


def flat_encoder(shape: Sequence[int], outputs: int, *, width: int = 128, layers: int = 1) -> nn.Sequential:
    """An example of `shape`, as one row of numbers, through `layers` hidden ReLU layers to `outputs` numbers."""
    return nn.Sequential(nn.Flatten(), mlp((prod(shape), *_hidden(width, layers), outputs)))


def flat_decoder(latent: int, shape: Sequence[int], *, width: int = 128, layers: int = 1) -> nn.Sequential:
    """A code to an example of `shape`, the mirror of `flat_encoder`; the last layer is linear (logits or means)."""
    return nn.Sequential(mlp((latent, *_hidden(width, layers), prod(shape))), nn.Unflatten(1, tuple(shape)))


def _hidden(width: int, layers: int) -> tuple[int, ...]:
    if width < 1 or layers < 0:
        raise ValueError(f"width must be positive and layers not negative; got width={width}, layers={layers}")
    return (width,) * layers
