"""The variational autoencoder: a code with a price, and a bound on the likelihood (book ch. 6, Diehl sec. 6)."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution, Independent, Normal

from parnassus.latent.decoders import independent_normal
from parnassus.latent.likelihood import importance_likelihood
from parnassus.latent.objectives import NegativeELBO, Objective


class Terms(NamedTuple):
    """The two costs of describing each row of x by a code (book eqs. 6.19-6.20)."""

    distortion: Float[Tensor, " batch"]
    """−E_q[log p(x|z)], in nats: what is left to say of x once z is known."""
    rate: Float[Tensor, " batch"]
    """KL(q(z|x) ‖ p(z)), in nats: what the code itself says of x."""

    @property
    def negative_elbo(self) -> Float[Tensor, " batch"]:
        """The sum: distortion + rate ≥ −log p(x) (book eq. 6.21)."""
        return self.distortion + self.rate


class VAE(nn.Module):
    """p(z) = N(0, I), p(x|z) = decoder(z), q(z|x) = N(μ(x), diag σ²(x)) with (μ, log σ²) = encoder(x) (book sec. 6.3).

        log p(x) ≥ E_q[log p(x|z)] − KL(q(z|x) ‖ p(z)) = −(distortion + rate)       (book eq. 6.13)
        z = μ + σ ε,   ε ~ N(0, I)                                                  (book sec. 6.3)

    `encoder` maps rows of x to 2·`latent` numbers; `decoder` maps codes to a distribution over x, such as
    `BernoulliDecoder(network)`. `objective` is what `loss` averages: the negative ELBO unless told.
    """

    def __init__(
        self, encoder: nn.Module, decoder: nn.Module, latent: int, *, objective: Objective | None = None
    ) -> None:
        super().__init__()
        if latent < 1:
            raise ValueError(f"a code needs at least one number; got latent={latent}")
        self.encoder = encoder
        self.decoder = decoder
        self.latent = latent
        self.objective: Objective = objective or NegativeELBO()

    def moments(
        self, x: Float[Tensor, "batch *event"]
    ) -> tuple[Float[Tensor, "batch latent"], Float[Tensor, "batch latent"]]:
        """μ(x) and log σ²(x)."""
        numbers: Tensor = self.encoder(x)
        if numbers.shape != (len(x), 2 * self.latent):
            raise ValueError(
                f"the encoder must give 2·latent = {2 * self.latent} numbers a row; got shape {tuple(numbers.shape)}"
            )
        mean, log_variance = numbers.chunk(2, dim=-1)
        return mean, log_variance

    def posterior(self, x: Float[Tensor, "batch *event"]) -> Distribution:
        """q(z|x), the encoder's guess at where the code lies."""
        mean, log_variance = self.moments(x)
        return independent_normal(mean, (log_variance / 2).exp())

    def prior(self) -> Distribution:
        """p(z) = N(0, I)."""
        zero = next(self.parameters()).new_zeros(self.latent)
        return Independent(Normal(zero, zero + 1, validate_args=False), 1, validate_args=False)

    def terms(self, x: Float[Tensor, "batch *event"]) -> Terms:
        """Distortion by one draw of z, rate in closed form (book eqs. 6.13, 6.14)."""
        mean, log_variance = self.moments(x)
        z = reparametrise(mean, log_variance)
        return Terms(-self.log_likelihood(x, z), standard_normal_kl(mean, log_variance))

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        return self.objective(self, x).mean()

    def log_likelihood(
        self, x: Float[Tensor, "batch *event"], z: Float[Tensor, "*samples batch latent"]
    ) -> Float[Tensor, "*samples batch"]:
        """The log-likelihood log p(x|z) for every code drawn for each row of x."""
        repeated = x.expand(*z.shape[:-2], *x.shape).flatten(0, z.dim() - 2)
        decoded: Distribution = self.decoder(z.flatten(0, -2))
        return decoded.log_prob(repeated).view(z.shape[:-1])

    def log_joint(
        self, x: Float[Tensor, "batch *event"], z: Float[Tensor, "*samples batch latent"]
    ) -> Float[Tensor, "*samples batch"]:
        """What is known exactly where log p(x) is not: log p(x, z) = log p(x|z) + log p(z)."""
        log_prior: Tensor = self.prior().log_prob(z)
        return self.log_likelihood(x, z) + log_prior

    def log_weights(self, x: Float[Tensor, "batch *event"], samples: int) -> Float[Tensor, "samples batch"]:
        """The logarithms of p(x, z) / q(z|x) for z ~ q(z|x): their mean is the ELBO, the mean weight estimates p(x)."""
        q = self.posterior(x)
        z = q.rsample((samples,))
        log_q: Tensor = q.log_prob(z)
        return self.log_joint(x, z) - log_q

    def encode(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch latent"]:
        """μ(x), the middle of the posterior."""
        return self.moments(x)[0]

    def decode(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch *event"]:
        """The mean of p(x|z)."""
        decoded: Distribution = self.decoder(z)
        return decoded.mean

    def reconstruct(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch *event"]:
        """x̂: the image decoded from the middle of its posterior."""
        return self.decode(self.encode(x))

    @torch.no_grad()
    def sample(self, count: int) -> Float[Tensor, "count *event"]:
        """Draws of the model: z from the prior, x from p(x|z) (book fig. 5.1). `decode` shows means instead."""
        decoded: Distribution = self.decoder(self.prior().sample((count,)))
        return decoded.sample()

    @torch.no_grad()
    def log_prob(self, x: Float[Tensor, "batch *event"], *, samples: int = 500) -> Float[Tensor, " batch"]:
        """An estimate of log p(x) by importance sampling: a lower bound in expectation that rises with `samples`.

        `importance_likelihood` says how far it can be trusted.
        """
        return importance_likelihood(self, x, samples=samples).log_evidence


def reparametrise(
    mean: Float[Tensor, "batch latent"], log_variance: Float[Tensor, "batch latent"]
) -> Float[Tensor, "batch latent"]:
    """Draw z = μ + σ ε with ε ~ N(0, I): chance moved out of the way of the gradient (book sec. 6.3, fig. 6.1).

    The text multiplies by σ² in words and by σ in its listing; only σ gives z the variance σ².
    """
    return torch.addcmul(mean, (log_variance / 2).exp(), torch.randn_like(mean))


def standard_normal_kl(
    mean: Float[Tensor, "*batch latent"], log_variance: Float[Tensor, "*batch latent"]
) -> Float[Tensor, "*batch"]:
    """KL(N(μ, diag σ²) ‖ N(0, I)) = ½ Σ_j (σ_j² + μ_j² − 1 − log σ_j²) (book eq. 6.14, corrected; Diehl sec. 6)."""
    return (log_variance.exp() + mean.square() - 1 - log_variance).sum(-1) / 2
