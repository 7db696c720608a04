"""A transformer that finds the noise in pictures: patches as tokens, the condition in every norm (book sec. 13.2.4).

The book leaves the denoiser's shape free. This one is DiT (Peebles & Xie 2023), and stands wherever a U-Net stands.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pixel_shuffle, silu

from parnassus.diffusion.conditioning import attend_in_heads, zeroed
from parnassus.diffusion.denoisers import Condition, sinusoidal_embedding


class ModulatedBlock(nn.Module):
    """Attention, then two dense layers, each on a norm that the condition modulates and behind a gate it opens.

        h ← h + α₁ attention((1 + γ₁) norm(h) + β₁)
        h ← h + α₂ dense((1 + γ₂) norm(h) + β₂)

    α, β and γ come from the condition and begin at zero (adaLN-zero): the block begins as the identity.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.modulation = zeroed(nn.Linear(width, 6 * width))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.ask = nn.Linear(width, 3 * width)
        self.answer = nn.Linear(width, width)
        self.dense = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(
        self, h: Float[Tensor, "batch tokens width"], code: Float[Tensor, "batch width"]
    ) -> Float[Tensor, "batch tokens width"]:
        gamma_1, beta_1, alpha_1, gamma_2, beta_2, alpha_2 = self.modulation(code)[:, None].chunk(6, dim=2)
        query, key, value = self.ask((1 + gamma_1) * self.norm(h) + beta_1).chunk(3, dim=2)
        h = h + alpha_1 * self.answer(attend_in_heads(query, key, value, self.heads))
        update: Tensor = alpha_2 * self.dense((1 + gamma_2) * self.norm(h) + beta_2)
        return h + update


def position_code(rows: int, columns: int, width: int) -> Float[Tensor, "{rows}*{columns} {width}"]:
    """Sines for the row in the first half of the width, for the column in the second, places counted row by row."""
    if width % 4:
        raise ValueError(f"width must be a multiple of 4, sines and cosines for both directions; got width={width}")
    row, column = (sinusoidal_embedding(torch.arange(count), width // 2) for count in (rows, columns))
    both = torch.cat([row[:, None].expand(-1, columns, -1), column.expand(rows, -1, -1)], dim=2)
    return both.flatten(0, 1)


class DiffusionTransformer(nn.Module):
    """ε(x_t, t, label) for pictures: patches of `patch` × `patch` pixels that attend to each other (book sec. 13.2.4).

    Patches become tokens, sines tell each its place, and `blocks` modulated blocks follow. The layer that turns tokens
    into pixels again begins at zero: an untrained network finds no noise at all.
    """

    place: Tensor

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
        channels, height, across = shape
        if patch < 1 or height % patch or across % patch:
            raise ValueError(f"patch must divide height and width; got patch={patch}, a picture {height} × {across}")
        if heads < 1 or width % heads:
            raise ValueError(f"width must be a multiple of heads; got width={width}, heads={heads}")
        self.shape, self.patch = tuple(shape), patch
        self.condition = Condition(width, classes)
        self.enter = nn.Conv2d(channels, width, patch, stride=patch)
        self.register_buffer("place", position_code(height // patch, across // patch, width), persistent=False)
        self.blocks = nn.ModuleList(ModulatedBlock(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulation = zeroed(nn.Linear(width, 2 * width))
        self.leave = zeroed(nn.Linear(width, channels * patch**2))

    def forward(
        self,
        x: Float[Tensor, "batch channels height width"],
        t: Int[Tensor, " batch"],
        label: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch channels height width"]:
        code = silu(self.condition(t, label))
        patches = self.enter(x)
        h = patches.flatten(2).mT + self.place
        for block in self.blocks:
            h = block(h, code)
        gamma, beta = self.modulation(code)[:, None].chunk(2, dim=2)
        pixels: Tensor = self.leave((1 + gamma) * self.norm(h) + beta)
        return pixel_shuffle(pixels.mT.unflatten(2, patches.shape[2:]), self.patch)
