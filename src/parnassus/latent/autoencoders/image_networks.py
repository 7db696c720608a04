"""Encoders and decoders for images: dense, or convolutional with residual blocks (book sec. 6.3)."""

from collections.abc import Sequence

from torch import nn

from parnassus.latent.autoencoders.convolutional_networks import conv_decoder, conv_encoder
from parnassus.latent.autoencoders.dense_networks import mlp_decoder, mlp_encoder


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
