"""Networks that are told a noise level as a number, for points in the plane (book sec. 13.2.7)."""

from math import pi

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import silu

from parnassus.layers import mlp


class LevelMLP(nn.Module):
    """h ← h + W silu((1 + V e(γ)) ⊙ h), some times, where e(γ) are sines and cosines of a level γ.

    A level is a number of moderate size, such as a log signal-to-noise ratio; the slowest wave of e is four times as
    long as `reach`, the largest |γ|, and tells all levels apart.
    """

    frequencies: Tensor

    def __init__(self, features: int, width: int = 128, *, layers: int = 3, reach: float = 15.0) -> None:
        super().__init__()
        if width % 2 or layers < 1 or not reach > 0:
            raise ValueError(f"need an even width, layers ≥ 1, reach > 0; got {width}, {layers}, {reach}")
        longest = pi / (2 * reach)
        self.register_buffer("frequencies", longest * torch.logspace(0, 5, width // 2, base=2.0))
        self.enter = nn.Linear(features, width)
        self.levels = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.leave = nn.Linear(width, features)

    def forward(self, x: Float[Tensor, "batch d"], level: Float[Tensor, " batch"]) -> Float[Tensor, "batch d"]:
        angle = level[:, None] * self.frequencies
        code = torch.cat([angle.sin(), angle.cos()], 1)
        h = self.enter(x)
        for tell, layer in zip(self.levels, self.layers, strict=True):
            h = h + layer(silu((1 + tell(code)) * h))
        out: Tensor = self.leave(silu(h))
        return out


def plain_score(features: int, width: int = 64, *, layers: int = 2) -> nn.Sequential:
    """A free vector field s(x) for one density: smooth, so that its divergence can be trained (book eq. 13.83)."""
    return mlp((features, *[width] * layers, features), activation=silu)


def plain_energy(features: int, width: int = 64, *, layers: int = 2) -> nn.Sequential:
    """A smooth energy f(x), one number an example, for `EnergyScore` (book eq. 13.79)."""
    return mlp((features, *[width] * layers, 1), activation=silu)
