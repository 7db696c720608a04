"""The rate-distortion curve of a Gaussian source, which a linear β-VAE draws exactly (book sec. 6.4)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class WaterFilling(NamedTuple):
    """How much to say of each direction, and what error to leave in it."""

    rates: Float[Tensor, " dim"]
    """½ log(λ_j / D_j), in nats."""
    errors: Float[Tensor, " dim"]
    """D_j = min(θ, λ_j), the squared error left."""


def water_filling(variances: Float[Tensor, " dim"], level: float | Float[Tensor, ""]) -> WaterFilling:
    """The least rate for a squared error Σ D_j of a Gaussian with these variances along its axes (Shannon 1959).

        D_j = min(θ, λ_j),   R_j = ½ log(λ_j / D_j)                              (book sec. 6.4)

    Every direction above the water level θ is told down to an error of θ; those below are not mentioned at all. A
    linear VAE with decoder variance s² and weight β ends here with θ = β s², so its collapsed coordinates are the
    directions with λ_j ≤ β s² (Lucas et al. 2019).
    """
    if not bool((variances >= 0).all()):
        raise ValueError(f"variances must not be negative; the least is {float(variances.min()):g}")
    height = torch.as_tensor(level).to(variances)
    if not bool(height > 0):
        raise ValueError(f"the water level must be positive: an error of 0 needs an infinite rate; got {float(height)}")
    errors = torch.minimum(variances, height)
    told = variances > height
    return WaterFilling(torch.where(told, (variances.clamp(min=height) / height).log() / 2, 0), errors)
