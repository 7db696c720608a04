"""Gaussian codes whose coordinates lean on each other: q(z|x) with a full covariance (book sec. 6.3, Diehl sec. 6)."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution, MultivariateNormal, kl_divergence

from parnassus.latent.vae import VAE, Terms


def correlated_reparametrise(
    mean: Float[Tensor, "*batch latent"], factor: Float[Tensor, "*batch latent latent"]
) -> Float[Tensor, "*batch latent"]:
    """Draw z = μ + Lε with ε ~ N(0, I), so that z ~ N(μ, LLᵀ); L need not be triangular (book sec. 6.3)."""
    return mean + (factor @ torch.randn_like(mean)[..., None])[..., 0]


def numbers_of_normal(size: int) -> int:
    """How many numbers say a Gaussian of this size: d for its mean and d (d + 1) / 2 for a triangular factor."""
    return size + size * (size + 1) // 2


def normal_from_numbers(numbers: Float[Tensor, "batch numbers"], size: int) -> MultivariateNormal:
    """N(μ, LLᵀ): the first `size` numbers are μ, the others L row by row, the diagonal as its logarithm.

    Every choice of numbers gives a covariance that is positive definite, and each covariance comes from one choice.
    """
    if numbers.shape[1] != numbers_of_normal(size):
        raise ValueError(
            f"a Gaussian in {size} dimensions takes {numbers_of_normal(size)} numbers; got shape {tuple(numbers.shape)}"
        )
    mean, lower = numbers[:, :size], numbers[:, size:]
    row, column = torch.tril_indices(size, size, device=numbers.device)
    factor = numbers.new_zeros(len(numbers), size, size)
    factor[:, row, column] = torch.where(row == column, lower.exp(), lower)
    return MultivariateNormal(mean, scale_tril=factor, validate_args=False)


class FullCovarianceVAE(VAE):
    """A VAE with q(z|x) = N(μ(x), L(x) L(x)ᵀ): a posterior may be tilted against the axes of the code (Diehl sec. 6).

    `encoder` maps rows of x to `numbers_of_normal(latent)` numbers. Of a linear decoder with Gaussian noise it can meet
    the true posterior exactly, where a diagonal covariance cannot unless the columns of W are orthogonal.
    """

    def posterior(self, x: Float[Tensor, "batch *event"]) -> Distribution:
        """q(z|x), with the correlations of the code's coordinates."""
        return normal_from_numbers(self.encoder(x), self.latent)

    def prior(self) -> Distribution:
        """p(z) = N(0, I), as a Gaussian with a full covariance, whose divergence torch knows."""
        zero = next(self.parameters()).new_zeros(self.latent)
        return MultivariateNormal(zero, scale_tril=torch.eye(self.latent).to(zero), validate_args=False)

    def terms(self, x: Float[Tensor, "batch *event"]) -> Terms:
        """Distortion by one draw of z, rate in closed form."""
        q = self.posterior(x)
        return Terms(-self.log_likelihood(x, q.rsample()), kl_divergence(q, self.prior()))

    def encode(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch latent"]:
        """μ(x), the middle of the posterior."""
        return self.posterior(x).mean
