"""A leaner way to mix a sequence: each place hears its neighbours through a short filter (book sec. 10.1.2)."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from parnassus.attention.block import Arrangement, pre_norm


class NeighbourMixing(nn.Module):
    """y_t = W (Σ_{|s| ≤ r} c_s ⊙ x_{t+s}) + b: a filter of its own for each feature, then all features mixed.

    Cost O(T r d + T d²) where attention has O(T² d + T d²): linear in the length, but a layer sees no farther than
    `reach` r to each side, and what it mixes does not depend on what stands there (Wu et al. 2019).
    """

    def __init__(self, width: int, reach: int) -> None:
        super().__init__()
        if reach < 1:
            raise ValueError(f"a place must hear a neighbour on each side at least; got reach={reach}")
        self.filter = nn.Conv1d(width, width, 2 * reach + 1, padding=reach, groups=width)
        self.mix = nn.Linear(width, width)

    def forward(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "batch 1 time"] | None = None
    ) -> Float[Tensor, "batch time width"]:
        """Hidden places are heard as zeros, as beyond the ends."""
        heard = x if mask is None else x.masked_fill(~mask.mT, 0.0)
        mixed: Tensor = self.mix(torch.relu(self.filter(heard.mT).mT))
        return mixed


class LeanBlock(nn.Module):
    """A `Block` whose attention is replaced by a map (x, mask) → x, such as `NeighbourMixing` (book sec. 10.1.2)."""

    def __init__(
        self,
        mixing: nn.Module,
        dense: nn.Module,
        *,
        norm: Callable[[], nn.Module],
        arrange: Arrangement = pre_norm,
    ) -> None:
        super().__init__()
        self.mixing, self.dense = mixing, dense
        self.norms = nn.ModuleList([norm(), norm()])
        self.arrange = arrange

    def forward(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "batch 1 time"] | None = None
    ) -> Float[Tensor, "batch time width"]:
        x = self.arrange(x, self.norms[0], lambda h: self.mixing(h, mask))
        return self.arrange(x, self.norms[1], self.dense)
