"""A U-Net denoiser for images (Ho et al. 2020; Dhariwal & Nichol 2021; book sec. 13.2.4).

Residual blocks conditioned on the time step and the class, with attention at low resolutions. The book does not fix
the details.
"""

from collections.abc import Collection, Sequence
from math import gcd

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import interpolate, pad, silu

from parnassus.diffusion.networks.conditioning import FiLM, SpatialSelfAttention, zero_initialise
from parnassus.diffusion.networks.timestep_embedding import ConditionEmbedding

GROUPS = 32
"""Maximal number of groups of a group normalisation; gcd(GROUPS, channels) are used."""
HEAD_CHANNELS = 64
"""Channels per attention head; layers with fewer have one head."""


class UNetBlock(nn.Module):
    """s(h) + C silu(FiLM(norm(C silu(norm(h))))), then optional attention (book secs. 13.2.4, 13.3).

    s is the identity, or a 1 × 1 convolution if the number of channels changes. C is initialised to zero.
    """

    def __init__(
        self, inputs: int, outputs: int, embed_dim: int, *, attention: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.norm_in = nn.GroupNorm(gcd(GROUPS, inputs), inputs)
        self.conv_in = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm_out = nn.GroupNorm(gcd(GROUPS, outputs), outputs)
        self.film = FiLM(outputs, embed_dim)
        self.dropout = nn.Dropout(dropout)
        self.conv_out = zero_initialise(nn.Conv2d(outputs, outputs, 3, padding=1))
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)
        self.attention = (
            SpatialSelfAttention(outputs, heads=max(1, outputs // HEAD_CHANNELS)) if attention else nn.Identity()
        )

    def forward(
        self, h: Float[Tensor, "batch inputs height width"], embedding: Float[Tensor, "batch embed_dim"]
    ) -> Float[Tensor, "batch outputs height width"]:
        inner = self.film(self.norm_out(self.conv_in(silu(self.norm_in(h)))), embedding[:, None])
        update: Tensor = self.conv_out(self.dropout(silu(inner)))
        out: Tensor = self.attention(self.shortcut(h) + update)
        return out


class Downsample(nn.Module):
    """A 3 × 3 convolution with stride 2."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, stride=2, padding=1)

    def forward(
        self, h: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels height//2 width//2"]:
        out: Tensor = self.convolution(h)
        return out


class Upsample(nn.Module):
    """Nearest-neighbour upsampling by 2, then a 3 × 3 convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(
        self, h: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels 2*height 2*width"]:
        out: Tensor = self.convolution(interpolate(h, scale_factor=2.0, mode="nearest"))
        return out


class UNet(nn.Module):
    """ε(x_t, t, label) for images of any size, with skip connections (book sec. 13.2.4).

    Level l has `width · multipliers[l]` channels and 2⁻ˡ of the height and width. The encoder has `blocks` residual
    blocks per level and the decoder blocks + 1, each concatenated with an encoder output. `attention` lists the levels
    with self-attention. Inputs are zero-padded to a multiple of 2^(levels − 1). The last convolution is initialised to
    zero, so an untrained network outputs 0.

    >>> unet = UNet((1, 8, 8), 16, multipliers=(1, 2), blocks=1, attention=(1,))
    >>> unet(torch.zeros(2, 1, 8, 8), torch.tensor([0, 9])).shape
    torch.Size([2, 1, 8, 8])
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        width: int = 64,
        *,
        multipliers: Sequence[int] = (1, 2, 2),
        blocks: int = 2,
        attention: Collection[int] = (2,),
        classes: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        _check_sizes(width, multipliers, blocks, attention)
        sizes, embed_dim = [width * multiplier for multiplier in multipliers], 4 * width
        last = len(sizes) - 1
        self.shape = tuple(shape)
        self.condition = ConditionEmbedding(embed_dim, classes)
        self.conv_in = nn.Conv2d(shape[0], width, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        channels, skips = width, [width]
        for level, size in enumerate(sizes):
            for _ in range(blocks):
                self.down.append(UNetBlock(channels, size, embed_dim, attention=level in attention, dropout=dropout))
                skips.append(channels := size)
            if level < last:
                self.down.append(Downsample(channels))
                skips.append(channels)
        self.middle = nn.ModuleList(
            UNetBlock(channels, channels, embed_dim, attention=attention, dropout=dropout)
            for attention in (bool(attention), False)
        )
        for level in reversed(range(len(sizes))):
            for _ in range(blocks + 1):
                inputs, channels = channels + skips.pop(), sizes[level]
                self.up.append(UNetBlock(inputs, channels, embed_dim, attention=level in attention, dropout=dropout))
            if level > 0:
                self.up.append(Upsample(channels))
        self.norm = nn.GroupNorm(gcd(GROUPS, channels), channels)
        self.conv_out = zero_initialise(nn.Conv2d(channels, shape[0], 3, padding=1))
        multiple = 2**last
        self.margin = (0, -shape[2] % multiple, 0, -shape[1] % multiple)  # right and bottom

    def forward(
        self,
        x: Float[Tensor, "batch channels height width"],
        t: Int[Tensor, " batch"],
        label: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch channels height width"]:
        embedding = silu(self.condition(t, label))
        h = self.conv_in(pad(x, self.margin))
        skips = [h]
        for part in self.down:
            h = part(h) if isinstance(part, Downsample) else part(h, embedding)
            skips.append(h)
        for block in self.middle:
            h = block(h, embedding)
        for part in self.up:
            h = part(h) if isinstance(part, Upsample) else part(torch.cat([h, skips.pop()], dim=1), embedding)
        noise: Tensor = self.conv_out(silu(self.norm(h)))
        return noise[..., : x.shape[2], : x.shape[3]]


def _check_sizes(width: int, multipliers: Sequence[int], blocks: int, attention: Collection[int]) -> None:
    if width < 1 or blocks < 1 or not multipliers or min(multipliers) < 1:
        raise ValueError(
            "width, blocks and every multiplier must be positive; "
            f"got width={width}, blocks={blocks}, multipliers={tuple(multipliers)}"
        )
    if not set(attention) <= set(range(len(multipliers))):
        raise ValueError(
            f"attention must list levels from 0 to {len(multipliers) - 1}, one per multiplier; got {sorted(attention)}"
        )
