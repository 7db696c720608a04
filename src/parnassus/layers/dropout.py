"""Dropout, and exact averages over all dropout masks (book sec. 2.2).

With n units to drop there are 2ⁿ thinned networks. One pass without dropout equals their average exactly for a linear
map, their geometric mean for a single softmax layer, and approximates it for deeper networks.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.losses.classification import log_softmax, softmax


def sample_keep_mask(x: Float[Tensor, "*shape"], rate: float) -> Float[Tensor, "*shape"]:
    """Independent Bernoulli entries: 0 with probability `rate`, else 1."""
    return torch.bernoulli(torch.full_like(x, 1 - rate))


def drop_units(x: Float[Tensor, "*shape"], rate: float) -> Float[Tensor, "*shape"]:
    """Inverted dropout, m ⊙ x / (1 − p), scaled to keep the expectation (book sec. 2.2).

        P[m_i = 0] = p,   E[y] = x,   Var[y_i] = x_i² p / (1 − p)

    As in torch and Keras (Diehl sec. 1.6, Zhao sec. 5).
    """
    _check_rate(rate)
    return sample_keep_mask(x, rate) * x / (1 - rate)


class _DropoutLayer(nn.Module):
    """A layer with the probability p of dropping a unit."""

    def __init__(self, rate: float = 0.5) -> None:
        super().__init__()
        _check_rate(rate)
        self.rate = rate

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class Dropout(_DropoutLayer):
    """Inverted dropout: `drop_units` in training mode, the identity in evaluation mode (book sec. 2.2).

    >>> _ = torch.manual_seed(0)
    >>> Dropout(0.5)(torch.ones(8)).unique().tolist()
    [0.0, 2.0]
    """

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return drop_units(x, self.rate) if self.training else x


class ClassicalDropout(_DropoutLayer):
    """Dropout as first published: m ⊙ x in training mode, (1 − p) x in evaluation mode (book sec. 2.2).

    Scaling the input of the next layer by 1 − p is scaling its weights. In both modes this is 1 − p times `Dropout`.

    >>> ClassicalDropout(0.25).eval()(torch.ones(3)).tolist()
    [0.75, 0.75, 0.75]
    """

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return sample_keep_mask(x, self.rate) * x if self.training else (1 - self.rate) * x


def all_masks(units: int, *, device: torch.device | None = None) -> Float[Tensor, "masks units"]:
    """All 2ⁿ masks of n units, 1 where a unit is kept."""
    if not 1 <= units <= 20:
        raise ValueError(f"units must be from 1 to 20; got units={units}")
    indices, bits = torch.arange(2**units, device=device), torch.arange(units, device=device)
    return (indices[:, None] >> bits & 1).to(torch.get_default_dtype())


def mask_probabilities(masks: Float[Tensor, "masks units"], rate: float) -> Float[Tensor, " masks"]:
    """(1 − p)ᵏ pⁿ⁻ᵏ for a mask that keeps k of n units."""
    _check_rate(rate)
    kept = masks.sum(-1)
    return (1 - rate) ** kept * rate ** (masks.shape[-1] - kept)


def average_over_masks(
    network: Callable[[Tensor], Tensor], x: Float[Tensor, " units"], rate: float
) -> Float[Tensor, "*output"]:
    """Σ_m P(m) network(m ⊙ x): the exact mean over all thinned networks (book sec. 2.2)."""
    masks = all_masks(len(x), device=x.device).to(x)
    average: Tensor = torch.tensordot(mask_probabilities(masks, rate), network(masks * x), dims=1)
    return average


def geometric_average_over_masks(
    logits: Callable[[Tensor], Tensor], x: Float[Tensor, " units"], rate: float
) -> Float[Tensor, " classes"]:
    """∏_m softmax(logits(m ⊙ x))^P(m), normalised: the geometric mean of all predictions (book sec. 2.2).

    If `logits` is affine, this is softmax(logits((1 − p) x)). At p = ½ all masks have the same weight.
    """
    return softmax(average_over_masks(lambda masked: log_softmax(logits(masked)), x, rate))


def _check_rate(rate: float) -> None:
    if not 0 <= rate < 1:
        raise ValueError(f"rate must satisfy 0 ≤ rate < 1; got rate={rate}")
