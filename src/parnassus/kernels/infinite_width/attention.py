"""Self-attention over the positions of an image at infinite width (Hron et al. 2020)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.layer import Shape
from parnassus.kernels.infinite_width.pooling import check_all_positions, check_image


def identity_scores(scores: Float[Tensor, "*batch to positions"]) -> Float[Tensor, "*batch to positions"]:
    """ζ(S) = S, which preserves the scale of signals best in deep limits (Hron et al. 2020)."""
    return scores


@dataclass(frozen=True)
class Attention:
    """f = ζ(Q Qᵀ / d) V with d channels, Q = √(q / c) g W_Q and V = √(v / c) g W_V, weights from N(0, 1).

        A(x) = ζ(q · Σ(x, x)),   Σ ← v · A(x) Σ(x, x') A(x')ᵀ,   Θ ← Σ + v · A(x) Θ(x, x') A(x')ᵀ

    with v = `weight_variance` and q = `query_variance`.
    Queries and keys are tied and their product is divided by d, not √d: the scores converge to a covariance, so the
    limit is Gaussian with a single head and for any row-wise ζ. W_Q adds nothing to Θ, since each of its entries moves
    the scores by O(1/d). Every position attends to every position.

    >>> network = Network((Convolution(3), Attention(), Flatten(), Dense()))
    >>> network.kernels(torch.ones(2, 1, 4, 4)).nngp.shape
    torch.Size([2, 2])
    """

    weight_variance: float = 1.0
    query_variance: float = 1.0
    score: Callable[[Tensor], Tensor] = identity_scores
    mixes_positions: ClassVar[bool] = True
    needs_variances: ClassVar[bool] = True
    has_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.weight_variance > 0 or not self.query_variance > 0:
            raise ValueError(
                "variances must be positive; "
                f"got weight_variance={self.weight_variance}, query_variance={self.query_variance}"
            )

    def kernel(self, state: KernelState) -> KernelState:
        check_all_positions(state, "attention", within_images=True)
        left, right = (self.score(self.query_variance * flatten_positions(side)) for side in (state.left, state.right))
        nngp = self._attend(left[:, None], state.nngp, right)
        ntk = None if state.ntk is None else self._attend(left[:, None], state.ntk, right).add_(nngp)
        return KernelState(nngp, ntk, self._attend(left, state.left, left), self._attend(right, state.right, right))

    def _attend(self, left: Tensor, kernel: Float[Tensor, "*rows h w h w"], right: Tensor) -> Tensor:
        """The value-weighted map K ↦ v · A K A'ᵀ."""
        return (left @ flatten_positions(kernel) @ right.mT).mul_(self.weight_variance).view(kernel.shape)

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        check_image(shape, "attention")
        module = TiedAttention(
            shape[0], width, sqrt(self.query_variance / shape[0]), sqrt(self.weight_variance / shape[0]), self.score
        )
        return module, (width, *shape[1:])


class TiedAttention(nn.Module):
    """ζ(Q Qᵀ / d) V over the positions of an image, with queries and values of the same width.

    >>> TiedAttention(3, 4, 1.0, 1.0, lambda scores: scores)(torch.zeros(2, 3, 5, 5)).shape
    torch.Size([2, 4, 5, 5])
    """

    def __init__(
        self, inputs: int, outputs: int, query_scale: float, value_scale: float, score: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.query_scale, self.value_scale, self.score = query_scale, value_scale, score
        self.to_query = nn.Parameter(torch.randn(inputs, outputs))
        self.to_value = nn.Parameter(torch.randn(inputs, outputs))

    def forward(self, x: Float[Tensor, "batch inputs h w"]) -> Float[Tensor, "batch outputs h w"]:
        g = x.flatten(2).mT
        query, value = self.query_scale * (g @ self.to_query), self.value_scale * (g @ self.to_value)
        attended = self.score(query @ query.mT / query.shape[-1]) @ value
        return attended.mT.reshape(len(x), -1, *x.shape[2:])


def flatten_positions(kernel: Float[Tensor, "*rows h w h w"]) -> Float[Tensor, "*rows positions positions"]:
    return kernel.flatten(-2).flatten(-3, -2)
