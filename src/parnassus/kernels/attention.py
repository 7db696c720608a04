"""Self-attention over the places of an image at infinite width (Hron et al. 2020)."""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.kernels.layer import Shape
from parnassus.kernels.pair import Pair
from parnassus.kernels.pooling import require_every_place, require_image


def scores_alone(scores: Float[Tensor, "*batch to places"]) -> Float[Tensor, "*batch to places"]:
    """ζ(S) = S, for which deep limits keep the size of signals best (Hron et al. 2020)."""
    return scores


@dataclass(frozen=True)
class Attention:
    """f = ζ(Q Qᵀ / d) V with d channels, Q = √(query / c) g W_Q and V = √(weight / c) g W_V, weights from N(0, 1).

        A(x) = ζ(query · Σ(x, x)),   Σ ← weight · A(x) Σ(x, x') A(x')ᵀ,   Θ ← Σ + weight · A(x) Θ(x, x') A(x')ᵀ

    Queries and keys are the same and their product is divided by d, not √d: then the scores tend to a covariance and
    no longer fluctuate, so the limit is Gaussian with a single head and for any ζ of a row of scores; W_Q adds
    nothing to Θ, for each of its entries moves the scores by 1/d. Every place looks at every place.
    """

    weight: float = 1.0
    query: float = 1.0
    score: Callable[[Tensor], Tensor] = scores_alone
    mixes_places: ClassVar[bool] = True
    needs_variances: ClassVar[bool] = True
    has_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.weight > 0 or not self.query > 0:
            raise ValueError(f"variances must be positive; got weight={self.weight}, query={self.query}")

    def kernel(self, pair: Pair) -> Pair:
        require_every_place(pair, "attention", within=True)
        left, right = (self.score(self.query * _square(side)) for side in (pair.left, pair.right))
        nngp = self._seen(left[:, None], pair.nngp, right)
        ntk = None if pair.ntk is None else self._seen(left[:, None], pair.ntk, right).add_(nngp)
        return Pair(nngp, ntk, self._seen(left, pair.left, left), self._seen(right, pair.right, right))

    def _seen(self, left: Tensor, kernel: Float[Tensor, "*rows h w h w"], right: Tensor) -> Tensor:
        """A K A'ᵀ, times the variance of the values' weights."""
        return (left @ _square(kernel) @ right.mT).mul_(self.weight).view(kernel.shape)

    def module(self, shape: Shape, width: int) -> tuple[nn.Module, Shape]:
        require_image(shape, "attention")
        module = TiedAttention(shape[0], width, sqrt(self.query / shape[0]), sqrt(self.weight / shape[0]), self.score)
        return module, (width, *shape[1:])


class TiedAttention(nn.Module):
    """ζ(Q Qᵀ / d) V over the places of an image, with as many queries as values."""

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
        seen = self.score(query @ query.mT / query.shape[-1]) @ value
        return seen.mT.reshape(len(x), -1, *x.shape[2:])


def _square(kernel: Float[Tensor, "*rows h w h w"]) -> Float[Tensor, "*rows places places"]:
    return kernel.flatten(-2).flatten(-3, -2)
