"""Networks for scores, energies and denoisers of low-dimensional data (book secs. 13.2.6-13.2.7)."""

from math import pi

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import silu

from parnassus.layers import mlp


class NoiseLevelMLP(nn.Module):
    """h ← h + W silu((1 + V e(γ)) ⊙ h) in each layer, with sines and cosines e(γ) of a noise level γ.

    The level is of moderate size, such as a log signal-to-noise ratio; the longest period of e is four times
    `max_level`, the largest |γ|.
    """

    frequencies: Tensor

    def __init__(self, features: int, width: int = 128, *, layers: int = 3, max_level: float = 15.0) -> None:
        super().__init__()
        if width % 2 or layers < 1 or not max_level > 0:
            raise ValueError(
                f"width must be even, layers ≥ 1 and max_level > 0; "
                f"got width={width}, layers={layers}, max_level={max_level}"
            )
        lowest = pi / (2 * max_level)
        self.register_buffer("frequencies", lowest * torch.logspace(0, 5, width // 2, base=2.0))
        self.proj_in = nn.Linear(features, width)
        self.levels = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.proj_out = nn.Linear(width, features)

    def forward(self, x: Float[Tensor, "batch d"], level: Float[Tensor, " batch"]) -> Float[Tensor, "batch d"]:
        angle = level[:, None] * self.frequencies
        embedding = torch.cat([angle.sin(), angle.cos()], 1)
        h = self.proj_in(x)
        for modulation, layer in zip(self.levels, self.layers, strict=True):
            h = h + layer(silu((1 + modulation(embedding)) * h))
        out: Tensor = self.proj_out(silu(h))
        return out


def mlp_score(features: int, width: int = 64, *, layers: int = 2) -> nn.Sequential:
    """An unconstrained score network s(x), smooth so that its divergence can be trained (book eq. 13.83)."""
    return mlp((features, *[width] * layers, features), activation=silu)


def mlp_energy(features: int, width: int = 64, *, layers: int = 2) -> nn.Sequential:
    """A smooth energy f(x), one value per example, for `EnergyBasedScore` (book eq. 13.79)."""
    return mlp((features, *[width] * layers, 1), activation=silu)
