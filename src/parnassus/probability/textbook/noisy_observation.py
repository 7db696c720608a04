"""A standard normal Z observed with noise, X = Z + ε with ε ~ N(0, s² I) and s = ½ (Diehl sec. 6)."""

from math import log, pi

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Independent, Normal

NOISE = 0.5
"""The standard deviation s of the noise."""


def prior(dim: int) -> "Independent[Normal]":
    """The distribution N(0, I) of Z."""
    return Independent(Normal(torch.zeros(dim, dtype=torch.float64), torch.ones(dim, dtype=torch.float64)), 1)


def typical_observation(dim: int) -> Float[Tensor, " dim"]:
    """An observation one standard deviation, √(1 + s²), from 0 in every coordinate."""
    return torch.full((dim,), (1 + NOISE**2) ** 0.5, dtype=torch.float64)


def log_likelihood(x: Float[Tensor, " dim"], z: Float[Tensor, "*samples dim"]) -> Float[Tensor, "*samples"]:
    """The log-likelihood log p(x|z) = log N(x; z, s² I), one value per sample of Z."""
    each: Tensor = Normal(z, NOISE).log_prob(x)
    return each.sum(-1)


def log_joint(x: Float[Tensor, " dim"], z: Float[Tensor, "*samples dim"]) -> Float[Tensor, "*samples"]:
    """The log-density log p(x, z) = log p(z) + log p(x|z)."""
    log_prior: Tensor = prior(len(x)).log_prob(z)
    return log_prior + log_likelihood(x, z)


def log_evidence(x: Float[Tensor, " dim"]) -> Float[Tensor, ""]:
    """The log-evidence log p(x) = log N(x; 0, (1 + s²) I)."""
    each: Tensor = Normal(torch.zeros_like(x), (1 + NOISE**2) ** 0.5).log_prob(x)
    return each.sum(-1)


def posterior(x: Float[Tensor, " dim"], *, std_scale: float = 1.0) -> "Independent[Normal]":
    """p(z|x) = N(x / (1 + s²), s² / (1 + s²) I), with its standard deviation multiplied by `std_scale`."""
    shrinkage = 1 / (1 + NOISE**2)
    return Independent(Normal(shrinkage * x, torch.full_like(x, std_scale * (1 - shrinkage) ** 0.5)), 1)


def relative_variance(x: Float[Tensor, " dim"]) -> Float[Tensor, ""]:
    """Var p(x|Z) / p(x)² for Z from the prior, since N(x; z, s²)² = N(x; z, s²/2) / √(4πs²)."""
    wider: Tensor = Normal(torch.zeros_like(x), (1 + NOISE**2 / 2) ** 0.5).log_prob(x)
    square = wider - log(4 * pi * NOISE**2) / 2
    return (square.sum(-1) - 2 * log_evidence(x)).expm1()
