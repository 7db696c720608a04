"""Vision Transformer: a picture cut into patches, read like a sentence (book sec. 10.1.2, Dosovitskiy et al. 2020)."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.attention.block import Block, feed_forward
from parnassus.attention.self_attention import SelfAttention

Pool: TypeAlias = Callable[[Tensor], Tensor]
"""How one vector is made of all tokens (batch, 1 + patches, width): `class_token` or `mean_of_patches`."""


def class_token(tokens: Float[Tensor, "batch tokens width"]) -> Float[Tensor, "batch width"]:
    """What the learned token in front has gathered."""
    return tokens[:, 0]


def mean_of_patches(tokens: Float[Tensor, "batch tokens width"]) -> Float[Tensor, "batch width"]:
    """The mean over all tokens but the one in front."""
    return tokens[:, 1:].mean(1)


class Patches(nn.Module):
    """tokens = patches(x) W_E + positions, with a learned token in front (book sec. 10.1.2).

    Cutting into patches of p × p pixels and mapping each by the same matrix is a convolution with stride p. The
    positions are learned, one for each patch, and know nothing of rows and columns until they have learned it.
    """

    def __init__(self, shape: Sequence[int], width: int, *, patch: int) -> None:
        super().__init__()
        channels, height, across = shape
        if patch < 1 or height % patch or across % patch:
            raise ValueError(f"patch must divide height and width; got patch={patch}, a picture {height} × {across}")
        self.shape, self.patch = tuple(shape), patch
        self.grid = (height // patch, across // patch)
        self.embed = nn.Conv2d(channels, width, patch, stride=patch)
        self.front = nn.Parameter(torch.zeros(width))
        self.places = nn.Parameter(0.02 * torch.randn(1 + self.grid[0] * self.grid[1], width))

    def forward(self, x: Float[Tensor, "batch channels height across"]) -> Float[Tensor, "batch tokens width"]:
        if tuple(x.shape[1:]) != self.shape:
            raise ValueError(f"pictures must have the shape {self.shape} it was made for; got {tuple(x.shape[1:])}")
        patches = self.embed(x).flatten(2).mT
        return torch.cat([self.front.expand(len(x), 1, -1), patches], 1) + self.places

    @property
    def filters(self) -> Float[Tensor, "width channels patch patch"]:
        """What each number of a token looks for in its patch: the first layer, as pictures (book sec. 10.1.2)."""
        return self.embed.weight.detach()


class VisionTransformer(nn.Module):
    """Patches, blocks in which every patch sees every other, and a linear map from one vector to the classes."""

    def __init__(self, patches: Patches, blocks: Sequence[Block], *, classes: int, pool: Pool = class_token) -> None:
        super().__init__()
        if any(block.attention.causal for block in blocks):
            raise ValueError("a picture has no past and no future: no block may be causal")
        width = patches.embed.out_channels
        self.patches, self.blocks, self.pool = patches, nn.ModuleList(blocks), pool
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Float[Tensor, "batch channels height across"]) -> Float[Tensor, "batch classes"]:
        logits: Tensor = self.head(self.pool(self.tokens(x)))
        return logits

    def tokens(self, x: Float[Tensor, "batch channels height across"]) -> Float[Tensor, "batch tokens width"]:
        """What the last block makes of each patch, the token in front first."""
        h: Tensor = self.patches(x)
        for block in self.blocks:
            h = block(h)
        normed: Tensor = self.norm(h)
        return normed

    def loss(self, x: Float[Tensor, "batch channels height across"], y: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        return cross_entropy(self(x), y)

    def predict(self, x: Float[Tensor, "batch channels height across"]) -> Int[Tensor, " batch"]:
        """The class of the largest logit."""
        logits: Tensor = self(x)
        return logits.argmax(-1)


def vit(
    shape: Sequence[int],
    classes: int,
    *,
    patch: int = 4,
    width: int = 64,
    heads: int = 4,
    depth: int = 4,
    pool: Pool = class_token,
    dropout: float = 0.0,
) -> VisionTransformer:
    """`depth` pre-norm blocks over patches of `patch` × `patch` pixels (Dosovitskiy et al. 2020)."""
    blocks = [
        Block(
            SelfAttention(width, heads, dropout=dropout),
            feed_forward(width, activation=nn.GELU, dropout=dropout),
            norm=lambda: nn.LayerNorm(width),
        )
        for _ in range(depth)
    ]
    return VisionTransformer(Patches(shape, width, patch=patch), blocks, classes=classes, pool=pool)


def patch_places(patches: Patches) -> Float[Tensor, "count 2"]:
    """The middle of each patch in pixels, row by row: places for `attention_distance`."""
    rows, columns = patches.grid
    place = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
    return patches.patch * (place.to(torch.get_default_dtype()) + 0.5)


def receptive_field(kernel: int, layers: int) -> int:
    """1 + L(k − 1): pixels in a row that L plain convolutions of size k see (book sec. 10.1.2)."""
    _require_layers(kernel, layers)
    return 1 + layers * (kernel - 1)


def dilated_receptive_field(kernel: int, layers: int) -> int:
    """1 + (k − 1)(2^L − 1): the same when layer l skips with dilation 2^l, l = 0 … L − 1 (book sec. 10.1.2)."""
    _require_layers(kernel, layers)
    return 1 + (kernel - 1) * ((1 << layers) - 1)


def _require_layers(kernel: int, layers: int) -> None:
    if kernel < 1 or layers < 0:
        raise ValueError(f"need a kernel of at least one pixel and no fewer than 0 layers; got {kernel=}, {layers=}")
