"""Dropout: units silenced by coin flips while training, and the average over all networks that are left.

With n units to drop there are 2ⁿ thinned networks. One pass without dropout stands for their average: exactly for a
linear map, as a geometric mean for one softmax layer, and nearly for deeper ones (book sec. 2.2).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.losses.classification import log_softmax, softmax


def keep_mask(x: Float[Tensor, "*shape"], rate: float) -> Float[Tensor, "*shape"]:
    """0 with probability `rate` and else 1, each number by its own coin: the share of zeros is `rate` on average."""
    return torch.bernoulli(torch.full_like(x, 1 - rate))


def drop_units(x: Float[Tensor, "*shape"], rate: float) -> Float[Tensor, "*shape"]:
    """Inverted dropout, m ⊙ x / (1 − p): what survives is enlarged, so that the mean stays (book sec. 2.2).

        P[m_i = 0] = p,   E[y] = x,   Var[y_i] = x_i² p / (1 − p)

    The form of torch and Keras (Diehl sec. 1.6, Zhao sec. 5).
    """
    _require(rate)
    return keep_mask(x, rate) * x / (1 - rate)


class Dropout(nn.Module):
    """Inverted dropout: `drop_units` in training, nothing in evaluation (book sec. 2.2)."""

    def __init__(self, rate: float = 0.5) -> None:
        super().__init__()
        _require(rate)
        self.rate = rate

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return drop_units(x, self.rate) if self.training else x

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class ClassicalDropout(nn.Module):
    """Dropout as first published: m ⊙ x in training, (1 − p) x in evaluation (book sec. 2.2).

    To scale what enters the next layer by 1 − p is to scale its weights. In each mode this is 1 − p times `Dropout`.
    """

    def __init__(self, rate: float = 0.5) -> None:
        super().__init__()
        _require(rate)
        self.rate = rate

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return keep_mask(x, self.rate) * x if self.training else (1 - self.rate) * x

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


def every_mask(units: int) -> Float[Tensor, "masks units"]:
    """All 2ⁿ masks of n units, 1 where a unit is kept."""
    if not 1 <= units <= 20:
        raise ValueError(f"masks can be listed for 1 to 20 units; got units={units}")
    return (torch.arange(2**units)[:, None] >> torch.arange(units) & 1).to(torch.get_default_dtype())


def mask_probabilities(masks: Float[Tensor, "masks units"], rate: float) -> Float[Tensor, " masks"]:
    """(1 − p) to the number kept, times p to the number dropped."""
    _require(rate)
    kept = masks.sum(-1)
    return (1 - rate) ** kept * rate ** (masks.shape[-1] - kept)


def average_over_masks(
    network: Callable[[Tensor], Tensor], x: Float[Tensor, " units"], rate: float
) -> Float[Tensor, "*output"]:
    """Σ_m P(m) network(m ⊙ x): the exact mean over every thinned network (book sec. 2.2)."""
    masks = every_mask(len(x)).to(x)
    average: Tensor = torch.tensordot(mask_probabilities(masks, rate), network(masks * x), dims=1)
    return average


def geometric_average_over_masks(
    logits: Callable[[Tensor], Tensor], x: Float[Tensor, " units"], rate: float
) -> Float[Tensor, " classes"]:
    """∏_m softmax(logits(m ⊙ x))^P(m), divided by its sum: the geometric mean of all predictions (book sec. 2.2).

    If `logits` is affine, this is softmax(logits((1 − p) x)). At p = ½ all masks weigh the same.
    """
    return softmax(average_over_masks(lambda masked: log_softmax(logits(masked)), x, rate))


def _require(rate: float) -> None:
    if not 0 <= rate < 1:
        raise ValueError(f"need 0 ≤ rate < 1, the probability to drop a unit; got rate={rate}")
