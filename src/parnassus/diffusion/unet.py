"""A U-Net that finds the noise in pictures: down to few pixels, up again, with bridges between (book sec. 13.2.4).

The book names the U-Net for its gift for denoising and leaves the rest open. This is the shape in common use since
Ho et al. 2020 and Dhariwal & Nichol 2021: residual blocks told the step and the class, attention where pixels are few.
"""

from collections.abc import Collection, Sequence
from math import gcd

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import interpolate, pad, silu

from parnassus.diffusion.conditioning import FiLM, SelfAttention, zeroed
from parnassus.diffusion.denoisers import Condition

GROUPS = 32
"""Channels are normalised in so many groups, or in as many as divide them."""
HEAD = 64
"""Channels of an attention head, in layers that have as many."""


class Stage(nn.Module):
    """s(h) + C silu(FiLM(norm(C silu(norm(h))))), then attention where `attends` (book secs. 13.2.4, 13.3).

    s is the identity, or a 1 × 1 convolution where the number of channels changes. It begins as s alone.
    """

    def __init__(self, inputs: int, outputs: int, code: int, *, attends: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.before = nn.GroupNorm(gcd(GROUPS, inputs), inputs)
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.between = nn.GroupNorm(gcd(GROUPS, outputs), outputs)
        self.film = FiLM(outputs, code)
        self.dropout = nn.Dropout(dropout)
        self.second = zeroed(nn.Conv2d(outputs, outputs, 3, padding=1))
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)
        self.attention = SelfAttention(outputs, heads=max(1, outputs // HEAD)) if attends else nn.Identity()

    def forward(
        self, h: Float[Tensor, "batch inputs height width"], code: Float[Tensor, "batch code"]
    ) -> Float[Tensor, "batch outputs height width"]:
        inside = self.film(self.between(self.first(silu(self.before(h)))), code[:, None])
        update: Tensor = self.second(self.dropout(silu(inside)))
        out: Tensor = self.attention(self.shortcut(h) + update)
        return out


class Halve(nn.Module):
    """Every second pixel of a 3 × 3 convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, stride=2, padding=1)

    def forward(
        self, h: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels height//2 width//2"]:
        half: Tensor = self.convolution(h)
        return half


class Double(nn.Module):
    """Each pixel four times, then a 3 × 3 convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(
        self, h: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch channels 2*height 2*width"]:
        twice: Tensor = self.convolution(interpolate(h, scale_factor=2.0, mode="nearest"))
        return twice


class UNet(nn.Module):
    """ε(x_t, t, label) for pictures of any size: a way down, a way up, and bridges between them (book sec. 13.2.4).

    Level l has `width · multipliers[l]` channels and 2⁻ˡ of the height and width; `blocks` stages go down at each level
    and blocks + 1 come up, every one of them beside what the way down had at that place. `attention` names the levels
    at which all pixels see each other. A picture whose sides do not divide is padded on the inside with zeros. The last
    convolution begins at zero: an untrained network finds no noise at all.
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
        _require(width, multipliers, blocks, attention)
        sizes, code = [width * multiplier for multiplier in multipliers], 4 * width
        last = len(sizes) - 1
        self.shape = tuple(shape)
        self.condition = Condition(code, classes)
        self.enter = nn.Conv2d(shape[0], width, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        here, bridges = width, [width]
        for level, size in enumerate(sizes):
            for _ in range(blocks):
                self.down.append(Stage(here, size, code, attends=level in attention, dropout=dropout))
                bridges.append(here := size)
            if level < last:
                self.down.append(Halve(here))
                bridges.append(here)
        self.middle = nn.ModuleList(
            Stage(here, here, code, attends=attends, dropout=dropout) for attends in (bool(attention), False)
        )
        for level in reversed(range(len(sizes))):
            for _ in range(blocks + 1):
                inputs, here = here + bridges.pop(), sizes[level]
                self.up.append(Stage(inputs, here, code, attends=level in attention, dropout=dropout))
            if level > 0:
                self.up.append(Double(here))
        self.norm = nn.GroupNorm(gcd(GROUPS, here), here)
        self.leave = zeroed(nn.Conv2d(here, shape[0], 3, padding=1))
        multiple = 2**last
        self.margin = (0, -shape[2] % multiple, 0, -shape[1] % multiple)  # right and below

    def forward(
        self,
        x: Float[Tensor, "batch channels height width"],
        t: Int[Tensor, " batch"],
        label: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch channels height width"]:
        code = silu(self.condition(t, label))
        h = self.enter(pad(x, self.margin))
        bridges = [h]
        for part in self.down:
            h = part(h) if isinstance(part, Halve) else part(h, code)
            bridges.append(h)
        for stage in self.middle:
            h = stage(h, code)
        for part in self.up:
            h = part(h) if isinstance(part, Double) else part(torch.cat([h, bridges.pop()], dim=1), code)
        noise: Tensor = self.leave(silu(self.norm(h)))
        return noise[..., : x.shape[2], : x.shape[3]]


def _require(width: int, multipliers: Sequence[int], blocks: int, attention: Collection[int]) -> None:
    if width < 1 or blocks < 1 or not multipliers or min(multipliers) < 1:
        raise ValueError(
            "width, blocks and every multiplier must be positive; "
            f"got width={width}, blocks={blocks}, multipliers={tuple(multipliers)}"
        )
    if not set(attention) <= set(range(len(multipliers))):
        raise ValueError(
            f"attention names levels from 0 to {len(multipliers) - 1}, one a multiplier; got {sorted(attention)}"
        )
