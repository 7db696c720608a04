"""The normal density in one dimension (Zhao sec. 3)."""

from math import pi

import torch
from jaxtyping import Float
from torch import Tensor


def normal_log_density(
    x: Float[Tensor, "*#shape"], *, mean: float | Float[Tensor, "*#shape"], variance: float | Float[Tensor, "*#shape"]
) -> Float[Tensor, "*#shape"]:
    """The logarithm −½ log(2πσ²) − (x − μ)² / (2σ²) of the density (Zhao sec. 3).

    The argument is the variance σ²; that of `torch.distributions.Normal` is σ.
    """
    sigma_squared = torch.as_tensor(variance, dtype=x.dtype, device=x.device)
    if not bool((sigma_squared > 0).all()):
        raise ValueError(f"the variance must be positive; the smallest is {float(sigma_squared.min()):g}")
    return -(2 * pi * sigma_squared).log() / 2 - (x - mean).square() / (2 * sigma_squared)


def normal_density(
    x: Float[Tensor, "*#shape"], *, mean: float | Float[Tensor, "*#shape"], variance: float | Float[Tensor, "*#shape"]
) -> Float[Tensor, "*#shape"]:
    """p(x) = (2πσ²)^(−1/2) exp(−(x − μ)² / (2σ²)) (Zhao sec. 3)."""
    return normal_log_density(x, mean=mean, variance=variance).exp()
