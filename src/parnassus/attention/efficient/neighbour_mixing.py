"""Convolutional token mixing in place of attention, and the block for it (book sec. 10.1.2)."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from parnassus.attention.models.block import ResidualConnection, pre_norm
from parnassus.errors import check_at_least_one


class NeighbourMixing(nn.Module):
    """y_t = W relu(Σ_{|s| ≤ r} c_s ⊙ x_{t+s} + a) + b: a depthwise convolution, then a linear map of the features.

    The cost is O(T r d + T d²) where attention has O(T² d + T d²). The receptive field is `reach` r to each side, and
    the filter does not depend on the input (Wu et al. 2019).

    >>> NeighbourMixing(16, reach=2)(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(self, width: int, reach: int) -> None:
        super().__init__()
        check_at_least_one(reach=reach)
        self.filter = nn.Conv1d(width, width, 2 * reach + 1, padding=reach, groups=width)
        self.mix = nn.Linear(width, width)

    def forward(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "batch 1 time"] | None = None
    ) -> Float[Tensor, "batch time width"]:
        """Masked positions count as zeros, like the padding at both ends."""
        visible = x if mask is None else x.masked_fill(~mask.mT, 0.0)
        output: Tensor = self.mix(torch.relu(self.filter(visible.mT).mT))
        return output


class MetaFormerBlock(nn.Module):
    """A transformer block with a general token mixer (x, mask) → x in place of attention (book sec. 10.1.2).

    The mixer may be `NeighbourMixing` (Yu et al. 2022, MetaFormer).

    >>> block = MetaFormerBlock(NeighbourMixing(16, reach=2), feed_forward(16), norm=lambda: nn.LayerNorm(16))
    >>> block(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        mixer: nn.Module,
        dense: nn.Module,
        *,
        norm: Callable[[], nn.Module],
        residual: ResidualConnection = pre_norm,
    ) -> None:
        super().__init__()
        self.mixer, self.dense = mixer, dense
        self.norms = nn.ModuleList([norm(), norm()])
        self.residual = residual

    def forward(
        self, x: Float[Tensor, "batch time width"], mask: Bool[Tensor, "batch 1 time"] | None = None
    ) -> Float[Tensor, "batch time width"]:
        x = self.residual(x, self.norms[0], lambda h: self.mixer(h, mask))
        return self.residual(x, self.norms[1], self.dense)
