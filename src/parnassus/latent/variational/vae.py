"""The variational autoencoder (VAE) with a Gaussian encoder (book ch. 6, Diehl sec. 6)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, Normal

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_positive
from parnassus.latent.likelihood_estimation.importance_sampling import importance_likelihood
from parnassus.latent.variational.elbo import NegativeELBO, Objective, VAETerms
from parnassus.latent.variational.reparametrisation import (
    GaussianParameters,
    independent_normal,
    reparametrise,
    standard_normal_kl,
)


class VAE(nn.Module):
    """p(z) = N(0, I), p(x|z) = decoder(z), q(z|x) = N(μ(x), diag σ²(x)) with (μ, log σ²) = encoder(x) (book sec. 6.3).

        log p(x) ≥ E_q[log p(x|z)] − KL(q(z|x) ‖ p(z)) = −(distortion + rate)       (book eq. 6.13)
        z = μ + σ ε,   ε ~ N(0, I)                                                  (book sec. 6.3)

    `encoder` maps rows of x to 2·`latent_dim` values; `decoder` maps codes to a distribution over x, such as
    `BernoulliDecoder(network)`. `objective` is the loss of each row, by default the negative ELBO.
    """

    def __init__(
        self, encoder: nn.Module, decoder: nn.Module, latent_dim: int, *, objective: Objective | None = None
    ) -> None:
        super().__init__()
        check_positive(latent_dim=latent_dim)
        self.encoder = encoder
        self.decoder = decoder
        self.latent_dim = latent_dim
        self.objective: Objective = objective or NegativeELBO()

    def posterior_parameters(self, x: Float[Tensor, "batch *event"]) -> GaussianParameters:
        """μ(x) and log σ²(x), the output of the encoder."""
        values: Tensor = self.encoder(x)
        if values.shape != (len(x), 2 * self.latent_dim):
            raise ValueError(
                f"the encoder must return 2·latent_dim = {2 * self.latent_dim} values per row; "
                f"got shape {tuple(values.shape)}"
            )
        return GaussianParameters(*values.chunk(2, dim=-1))

    def posterior(self, x: Float[Tensor, "batch *event"]) -> Distribution:
        """q(z|x), the approximate posterior."""
        mean, log_variance = self.posterior_parameters(x)
        return independent_normal(mean, (log_variance / 2).exp())

    def prior(self) -> Distribution:
        """p(z) = N(0, I)."""
        zero = next(self.parameters()).new_zeros(self.latent_dim)
        return Independent(Normal(zero, zero + 1, validate_args=False), 1, validate_args=False)

    def terms(self, x: Float[Tensor, "batch *event"]) -> VAETerms:
        """Distortion from one sample of z, rate in closed form (book eqs. 6.13, 6.14)."""
        mean, log_variance = self.posterior_parameters(x)
        z = reparametrise(mean, log_variance)
        return VAETerms(-self.log_likelihood(x, z), standard_normal_kl(mean, log_variance))

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        return self.objective(self, x).mean()

    def log_likelihood(
        self, x: Float[Tensor, "batch *event"], z: Float[Tensor, "*samples batch latent"]
    ) -> Float[Tensor, "*samples batch"]:
        """The log-likelihood log p(x|z) of each row of x for each of its codes."""
        repeated = x.expand(*z.shape[:-2], *x.shape).flatten(0, z.dim() - 2)
        decoded: Distribution = self.decoder(z.flatten(0, -2))
        return decoded.log_prob(repeated).view(z.shape[:-1])

    def log_joint(
        self, x: Float[Tensor, "batch *event"], z: Float[Tensor, "*samples batch latent"]
    ) -> Float[Tensor, "*samples batch"]:
        """The joint log-density log p(x, z) = log p(x|z) + log p(z), known exactly."""
        log_prior: Tensor = self.prior().log_prob(z)
        return self.log_likelihood(x, z) + log_prior

    def log_weights(self, x: Float[Tensor, "batch *event"], samples: int) -> Float[Tensor, "samples batch"]:
        """The logarithms of p(x, z) / q(z|x) for z ~ q(z|x); their mean is an estimate of the ELBO."""
        q = self.posterior(x)
        z = q.rsample((samples,))
        log_q: Tensor = q.log_prob(z)
        return self.log_joint(x, z) - log_q

    @accepts_arrays
    def encode(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch latent"]:
        """μ(x), the posterior mean."""
        return self.posterior_parameters(x).mean

    @accepts_arrays
    def decode(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch *event"]:
        """The mean of p(x|z)."""
        decoded: Distribution = self.decoder(z)
        return decoded.mean

    @accepts_arrays
    def reconstruct(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch *event"]:
        """x̂, decoded from the posterior mean."""
        return self.decode(self.encode(x))

    @torch.no_grad()
    def sample(self, count: int) -> Float[Tensor, "count *event"]:
        """Samples of p(x): z from the prior, x from p(x|z) (book fig. 5.1); `decode` returns means."""
        decoded: Distribution = self.decoder(self.prior().sample((count,)))
        return decoded.sample()

    @accepts_arrays
    @torch.no_grad()
    def log_prob(self, x: Float[Tensor, "batch *event"], *, samples: int = 500) -> Float[Tensor, " batch"]:
        """An importance-sampling estimate of log p(x), in expectation a lower bound.

        It increases with `samples`; `importance_likelihood` also returns its standard error.
        """
        return importance_likelihood(self, x, samples=samples).log_evidence
