"""The reparametrisation trick and the KL divergence of diagonal Gaussians (book sec. 6.3)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution, Independent, Normal


class GaussianParameters(NamedTuple):
    """μ and log σ² of N(μ, diag σ²) for each row, or gradients with respect to them.

    >>> GaussianParameters(torch.zeros(3, 2), torch.ones(3, 2)).log_variance.shape
    torch.Size([3, 2])
    """

    mean: Float[Tensor, "*batch latent"]
    log_variance: Float[Tensor, "*batch latent"]


def reparametrise(
    mean: Float[Tensor, "batch latent"], log_variance: Float[Tensor, "batch latent"]
) -> Float[Tensor, "batch latent"]:
    """Sample z = μ + σ ε with ε ~ N(0, I), differentiable with respect to μ and σ (book sec. 6.3, fig. 6.1).

    The text multiplies by σ² in words and by σ in its listing; only σ gives z the variance σ².
    """
    return torch.addcmul(mean, (log_variance / 2).exp(), torch.randn_like(mean))


def standard_normal_kl(
    mean: Float[Tensor, "*batch latent"], log_variance: Float[Tensor, "*batch latent"]
) -> Float[Tensor, "*batch"]:
    """KL(N(μ, diag σ²) ‖ N(0, I)) = ½ Σ_j (σ_j² + μ_j² − 1 − log σ_j²) (book eq. 6.14, corrected; Diehl sec. 6)."""
    return (log_variance.exp() + mean.square() - 1 - log_variance).sum(-1) / 2


def independent_normal(
    mean: Float[Tensor, "batch *event"], std: Float[Tensor, "*#event"] | Float[Tensor, "batch *event"]
) -> Distribution:
    """N(mean, diag std²) with one log-density per row."""
    return Independent(Normal(mean, std.expand_as(mean), validate_args=False), mean.dim() - 1, validate_args=False)
