"""The diffusion transformer (DiT) for images (Peebles & Xie 2023; book sec. 13.2.4)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pixel_shuffle, silu

from parnassus.attention.models.vit import patch_grid
from parnassus.diffusion.networks.conditioning import multi_head_attention, zero_initialise
from parnassus.diffusion.networks.timestep_embedding import ConditionEmbedding, sinusoidal_embedding


class DiTBlock(nn.Module):
    """Attention and an MLP with modulated layer norms and gates (adaLN-zero).

        h ← h + α₁ attention((1 + γ₁) norm(h) + β₁)
        h ← h + α₂ dense((1 + γ₂) norm(h) + β₂)

    α, β and γ are functions of the condition, initialised to zero, so the block is initially the identity.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.modulation = zero_initialise(nn.Linear(width, 6 * width))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.dense = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(
        self, h: Float[Tensor, "batch tokens width"], embedding: Float[Tensor, "batch width"]
    ) -> Float[Tensor, "batch tokens width"]:
        gamma_1, beta_1, alpha_1, gamma_2, beta_2, alpha_2 = self.modulation(embedding)[:, None].chunk(6, dim=2)
        query, key, value = self.qkv((1 + gamma_1) * self.norm(h) + beta_1).chunk(3, dim=2)
        h = h + alpha_1 * self.proj(multi_head_attention(query, key, value, self.heads))
        update: Tensor = alpha_2 * self.dense((1 + gamma_2) * self.norm(h) + beta_2)
        return h + update


def grid_position_embedding(rows: int, columns: int, width: int) -> Float[Tensor, "{rows}*{columns} {width}"]:
    """Sinusoidal embedding of the row in the first half of the width, of the column in the second."""
    if width % 4:
        raise ValueError(f"width must be divisible by 4, for sines and cosines in two directions; got width={width}")
    row, column = (sinusoidal_embedding(torch.arange(count), width // 2) for count in (rows, columns))
    both = torch.cat([row[:, None].expand(-1, columns, -1), column.expand(rows, -1, -1)], dim=2)
    return both.flatten(0, 1)


class DiffusionTransformer(nn.Module):
    """ε(x_t, t, label) for images as sequences of `patch` × `patch` patches (book sec. 13.2.4).

    Patches are embedded as tokens with sinusoidal positions, followed by `blocks` DiT blocks. The output layer is
    initialised to zero, so an untrained network outputs 0.

    >>> model = DiffusionTransformer((1, 8, 8), 32, blocks=1)
    >>> model(torch.zeros(2, 1, 8, 8), torch.tensor([0, 9])).shape
    torch.Size([2, 1, 8, 8])
    """

    position_embedding: Tensor

    def __init__(
        self,
        shape: tuple[int, int, int],
        width: int = 128,
        *,
        patch: int = 2,
        blocks: int = 6,
        heads: int = 4,
        classes: int = 0,
    ) -> None:
        super().__init__()
        channels, height, image_width = shape
        grid = patch_grid(height, image_width, patch)
        if heads < 1 or width % heads:
            raise ValueError(f"width must be divisible by heads; got width={width}, heads={heads}")
        self.shape, self.patch = tuple(shape), patch
        self.condition = ConditionEmbedding(width, classes)
        self.proj_in = nn.Conv2d(channels, width, patch, stride=patch)
        self.register_buffer(
            "position_embedding",
            grid_position_embedding(*grid, width),
            persistent=False,
        )
        self.blocks = nn.ModuleList(DiTBlock(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulation = zero_initialise(nn.Linear(width, 2 * width))
        self.proj_out = zero_initialise(nn.Linear(width, channels * patch**2))

    def forward(
        self,
        x: Float[Tensor, "batch channels height width"],
        t: Int[Tensor, " batch"],
        label: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch channels height width"]:
        embedding = silu(self.condition(t, label))
        patches = self.proj_in(x)
        h = patches.flatten(2).mT + self.position_embedding
        for block in self.blocks:
            h = block(h, embedding)
        gamma, beta = self.modulation(embedding)[:, None].chunk(2, dim=2)
        pixels: Tensor = self.proj_out((1 + gamma) * self.norm(h) + beta)
        return pixel_shuffle(pixels.mT.unflatten(2, patches.shape[2:]), self.patch)
