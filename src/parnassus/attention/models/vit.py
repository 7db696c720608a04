"""Vision Transformer: an image as a sequence of patches (book sec. 10.1.2, Dosovitskiy et al. 2020)."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.arrays import accepts_arrays
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.models.block import Block, feed_forward

Pool: TypeAlias = Callable[[Tensor], Tensor]
"""Pooling of all tokens (batch, 1 + patches, width) to one vector: `class_token_pool` or `mean_pool`."""


def class_token_pool(tokens: Float[Tensor, "batch tokens width"]) -> Float[Tensor, "batch width"]:
    """The output at the class token, which is the first."""
    return tokens[:, 0]


def mean_pool(tokens: Float[Tensor, "batch tokens width"]) -> Float[Tensor, "batch width"]:
    """The mean over all tokens except the class token."""
    return tokens[:, 1:].mean(1)


def patch_grid(rows: int, columns: int, patch: int) -> tuple[int, int]:
    """The numbers of patches of p × p pixels below and beside each other in an image."""
    if patch < 1 or rows % patch or columns % patch:
        raise ValueError(f"patch must divide height and width; got patch={patch}, image {rows} × {columns}")
    return rows // patch, columns // patch


class PatchEmbedding(nn.Module):
    """tokens = patches(x) W_E + positions, with a learned class token in front (book sec. 10.1.2).

    A linear map of all patches of p × p pixels is a convolution with stride p. The positions are learned, one vector
    per patch, without prior knowledge of rows and columns.
    """

    def __init__(self, shape: Sequence[int], width: int, *, patch: int) -> None:
        super().__init__()
        channels, rows, columns = shape
        self.shape, self.patch, self.grid = tuple(shape), patch, patch_grid(rows, columns, patch)
        self.embed = nn.Conv2d(channels, width, patch, stride=patch)
        self.class_token = nn.Parameter(torch.zeros(width))
        self.positions = nn.Parameter(0.02 * torch.randn(1 + self.grid[0] * self.grid[1], width))

    def forward(self, x: Float[Tensor, "batch channels rows columns"]) -> Float[Tensor, "batch tokens width"]:
        if tuple(x.shape[1:]) != self.shape:
            raise ValueError(f"images must have the shape {self.shape}; got {tuple(x.shape[1:])}")
        patches = self.embed(x).flatten(2).mT
        return torch.cat([self.class_token.expand(len(x), 1, -1), patches], 1) + self.positions

    @property
    def filters(self) -> Float[Tensor, "width channels patch patch"]:
        """The filters of the patch embedding as images, one per feature (book sec. 10.1.2)."""
        return self.embed.weight.detach()


class VisionTransformer(nn.Module):
    """Patch embedding, bidirectional blocks, pooling and a linear classifier (book sec. 10.1.2)."""

    def __init__(
        self, patches: PatchEmbedding, blocks: Sequence[Block], *, classes: int, pool: Pool = class_token_pool
    ) -> None:
        super().__init__()
        if any(block.attention.causal for block in blocks):
            raise ValueError("a vision transformer is bidirectional: no block may be causal")
        width = patches.embed.out_channels
        self.patches, self.blocks, self.pool = patches, nn.ModuleList(blocks), pool
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Float[Tensor, "batch channels rows columns"]) -> Float[Tensor, "batch classes"]:
        logits: Tensor = self.head(self.pool(self.tokens(x)))
        return logits

    def tokens(self, x: Float[Tensor, "batch channels rows columns"]) -> Float[Tensor, "batch tokens width"]:
        """The normalised output of the last block, the class token first."""
        h: Tensor = self.patches(x)
        for block in self.blocks:
            h = block(h)
        normed: Tensor = self.norm(h)
        return normed

    def loss(self, x: Float[Tensor, "batch channels rows columns"], y: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
        return cross_entropy(self(x), y)

    @accepts_arrays
    @torch.no_grad()
    def predict(self, x: Float[Tensor, "batch channels rows columns"]) -> Int[Tensor, " batch"]:
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
    pool: Pool = class_token_pool,
    dropout: float = 0.0,
) -> VisionTransformer:
    """A vision transformer with `depth` pre-norm blocks (Dosovitskiy et al. 2020)."""
    blocks = [
        Block(
            SelfAttention(width, heads, dropout=dropout),
            feed_forward(width, activation=nn.GELU, dropout=dropout),
            norm=lambda: nn.LayerNorm(width),
        )
        for _ in range(depth)
    ]
    return VisionTransformer(PatchEmbedding(shape, width, patch=patch), blocks, classes=classes, pool=pool)


def patch_centres(patches: PatchEmbedding) -> Float[Tensor, "count 2"]:
    """The centre of each patch in pixels, row by row, for `attention_distance`."""
    rows, columns = patches.grid
    index = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
    return patches.patch * (index.to(torch.get_default_dtype()) + 0.5)


def receptive_field(kernel: int, layers: int) -> int:
    """1 + L(k − 1): the receptive field of L convolutions of size k, in pixels per side (book sec. 10.1.2)."""
    _check_layers(kernel, layers)
    return 1 + layers * (kernel - 1)


def dilated_receptive_field(kernel: int, layers: int) -> int:
    """1 + (k − 1)(2^L − 1): the receptive field with dilation 2^l in layer l = 0 … L − 1 (book sec. 10.1.2)."""
    _check_layers(kernel, layers)
    return 1 + (kernel - 1) * ((1 << layers) - 1)


def _check_layers(kernel: int, layers: int) -> None:
    if kernel < 1 or layers < 0:
        raise ValueError(f"kernel must be at least 1 and layers at least 0; got {kernel=}, {layers=}")
