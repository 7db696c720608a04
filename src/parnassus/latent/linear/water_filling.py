"""Reverse water-filling: the rate-distortion function of a Gaussian source (book sec. 6.4)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class WaterFilling(NamedTuple):
    """Rate and squared error of each direction.

    >>> WaterFilling(rates=torch.tensor([1.0, 0.0]), errors=torch.tensor([0.1, 0.3])).rates.sum().item()
    1.0
    """

    rates: Float[Tensor, " dim"]
    """½ log(λ_j / D_j), in nats."""
    errors: Float[Tensor, " dim"]
    """D_j = min(θ, λ_j)."""


def water_filling(variances: Float[Tensor, " dim"], level: float | Float[Tensor, ""]) -> WaterFilling:
    """The minimum rate for a squared error Σ D_j of a Gaussian with these variances along its axes (Shannon 1959).

        D_j = min(θ, λ_j),   R_j = ½ log(λ_j / D_j)                              (book sec. 6.4)

    Directions with variance above the water level θ are coded up to an error of θ, the others not at all. A linear
    β-VAE with decoder variance s² converges to this solution with θ = β s²: its collapsed coordinates are the
    directions with λ_j ≤ β s² (Lucas et al. 2019).
    """
    if not bool((variances >= 0).all()):
        raise ValueError(f"variances must not be negative; the smallest is {float(variances.min()):g}")
    height = torch.as_tensor(level).to(variances)
    if not bool(height > 0):
        raise ValueError(f"level must be positive: an error of 0 needs an infinite rate; got level={float(height)}")
    errors = torch.minimum(variances, height)
    coded = variances > height
    return WaterFilling(torch.where(coded, (variances.clamp(min=height) / height).log() / 2, 0), errors)
