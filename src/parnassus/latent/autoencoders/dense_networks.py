"""Fully connected encoders and decoders for examples of any shape (book secs. 4.5, 6.3)."""

from collections.abc import Callable, Sequence
from math import prod

from torch import nn

from parnassus.layers import mlp


def mlp_encoder(shape: Sequence[int], outputs: int, *, width: int = 128, num_layers: int = 1) -> nn.Sequential:
    """Flatten an example of `shape` and apply `num_layers` hidden ReLU layers and a linear one with `outputs` units."""
    return nn.Sequential(nn.Flatten(), mlp((prod(shape), *_hidden_sizes(width, num_layers), outputs)))


def mlp_decoder(latent_dim: int, shape: Sequence[int], *, width: int = 128, num_layers: int = 1) -> nn.Sequential:
    """A network from a code to an example of `shape`, mirroring `mlp_encoder`; its last layer is linear."""
    layers = mlp((latent_dim, *_hidden_sizes(width, num_layers), prod(shape)))
    return nn.Sequential(layers, nn.Unflatten(1, tuple(shape)))


def dense_encoder(
    shape: Sequence[int], latent_dim: int, *, width: int = 512, norm: Callable[[int], nn.Module] = nn.BatchNorm1d
) -> nn.Sequential:
    """Flatten → Linear → norm → ReLU → Linear, from one example's `shape` to a code (book sec. 4.5)."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(prod(shape), width), norm(width), nn.ReLU(), nn.Linear(width, latent_dim)
    )


def dense_decoder(
    latent_dim: int, shape: Sequence[int], *, width: int = 512, norm: Callable[[int], nn.Module] = nn.BatchNorm1d
) -> nn.Sequential:
    """Linear → norm → ReLU → Linear → sigmoid, from a code to an example in (0, 1) (book sec. 4.5)."""
    return nn.Sequential(
        nn.Linear(latent_dim, width),
        norm(width),
        nn.ReLU(),
        nn.Linear(width, prod(shape)),
        nn.Sigmoid(),
        nn.Unflatten(1, tuple(shape)),
    )


def _hidden_sizes(width: int, num_layers: int) -> tuple[int, ...]:
    if width < 1 or num_layers < 0:
        raise ValueError(
            f"width must be positive and num_layers not negative; got width={width}, num_layers={num_layers}"
        )
    return (width,) * num_layers
