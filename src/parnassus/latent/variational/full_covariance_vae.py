"""A VAE whose approximate posterior has a full covariance matrix (book sec. 6.3, Diehl sec. 6)."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution, MultivariateNormal, kl_divergence

from parnassus.arrays import accepts_arrays
from parnassus.latent.variational.elbo import VAETerms
from parnassus.latent.variational.vae import VAE


def reparametrise_full_covariance(
    mean: Float[Tensor, "*batch latent"], factor: Float[Tensor, "*batch latent latent"]
) -> Float[Tensor, "*batch latent"]:
    """Sample z = μ + Lε with ε ~ N(0, I), so that z ~ N(μ, LLᵀ); L need not be triangular (book sec. 6.3)."""
    return mean + (factor @ torch.randn_like(mean)[..., None])[..., 0]


def num_gaussian_parameters(size: int) -> int:
    """Parameters of a Gaussian in d = `size` dimensions: d for the mean and d (d + 1) / 2 for a triangular factor."""
    return size + size * (size + 1) // 2


def gaussian_from_parameters(parameters: Float[Tensor, "batch parameters"], size: int) -> MultivariateNormal:
    """N(μ, LLᵀ): the first `size` parameters are μ, the others L row by row, with the logarithms of its diagonal.

    Every parameter vector gives a positive definite covariance, and each covariance belongs to exactly one.
    """
    if parameters.shape[1] != num_gaussian_parameters(size):
        raise ValueError(
            f"a Gaussian in {size} dimensions has {num_gaussian_parameters(size)} parameters; "
            f"got shape {tuple(parameters.shape)}"
        )
    mean, lower = parameters[:, :size], parameters[:, size:]
    row, column = torch.tril_indices(size, size, device=parameters.device)
    factor = parameters.new_zeros(len(parameters), size, size)
    factor[:, row, column] = torch.where(row == column, lower.exp(), lower)
    return MultivariateNormal(mean, scale_tril=factor, validate_args=False)


class FullCovarianceVAE(VAE):
    """A VAE with q(z|x) = N(μ(x), L(x) L(x)ᵀ), which models correlations of the code's coordinates (Diehl sec. 6).

    `encoder` maps rows of x to `num_gaussian_parameters(latent_dim)` values. For a linear decoder with Gaussian noise
    it can represent the exact posterior, which a diagonal covariance cannot unless the columns of W are orthogonal.

    >>> vae = FullCovarianceVAE(nn.Linear(5, 2 + 3), BernoulliDecoder(nn.Linear(2, 5)), 2)
    >>> vae.encode(torch.zeros(3, 5)).shape
    torch.Size([3, 2])
    """

    def posterior(self, x: Float[Tensor, "batch *event"]) -> Distribution:
        """q(z|x), the approximate posterior."""
        return gaussian_from_parameters(self.encoder(x), self.latent_dim)

    def prior(self) -> Distribution:
        """p(z) = N(0, I), as a MultivariateNormal, for which torch implements the KL divergence."""
        zero = next(self.parameters()).new_zeros(self.latent_dim)
        return MultivariateNormal(
            zero, scale_tril=torch.eye(self.latent_dim, dtype=zero.dtype, device=zero.device), validate_args=False
        )

    def terms(self, x: Float[Tensor, "batch *event"]) -> VAETerms:
        """Distortion from one sample of z, rate in closed form."""
        q = self.posterior(x)
        return VAETerms(-self.log_likelihood(x, q.rsample()), kl_divergence(q, self.prior()))

    @accepts_arrays
    def encode(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch latent"]:
        """μ(x), the posterior mean."""
        return self.posterior(x).mean
