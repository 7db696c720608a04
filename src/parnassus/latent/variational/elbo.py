"""The evidence lower bound (ELBO) as a loss: distortion + β · rate (book secs. 6.2, 6.4)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

if TYPE_CHECKING:
    from parnassus.latent.variational.vae import VAE


class VAETerms(NamedTuple):
    """The two terms of the negative ELBO for each row of x (book eqs. 6.19-6.20).

    >>> VAETerms(distortion=torch.tensor([3.0]), rate=torch.tensor([1.0])).negative_elbo.tolist()
    [4.0]
    """

    distortion: Float[Tensor, " batch"]
    """−E_q[log p(x|z)], in nats: the cost of x given its code."""
    rate: Float[Tensor, " batch"]
    """KL(q(z|x) ‖ p(z)), in nats: the cost of the code."""

    @property
    def negative_elbo(self) -> Float[Tensor, " batch"]:
        """The negative ELBO, distortion + rate ≥ −log p(x) (book eq. 6.21)."""
        return self.distortion + self.rate


@runtime_checkable
class Objective(Protocol):
    """A loss for each row of x."""

    def __call__(self, model: "VAE", x: Float[Tensor, "batch *event"], /) -> Float[Tensor, " batch"]: ...


@dataclass(frozen=True)
class NegativeELBO:
    """distortion + β · rate, an upper bound of −log p(x) at β = 1 (book eqs. 6.13, 6.21).

    β = 0 gives a stochastic autoencoder, β = 1 the VAE, β > 1 the β-VAE with a lower rate and a higher distortion.

    >>> decoder = BernoulliDecoder(nn.Linear(2, 5))
    >>> vae = VAE(nn.Linear(5, 4), decoder, latent_dim=2, objective=NegativeELBO(beta=4.0))
    >>> vae.loss(torch.ones(3, 5)).shape
    torch.Size([])
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        if not self.beta >= 0:
            raise ValueError(f"beta, the weight of the rate, must not be negative; got beta={self.beta}")

    def __call__(self, model: "VAE", x: Float[Tensor, "batch *event"], /) -> Float[Tensor, " batch"]:
        terms = model.terms(x)
        return terms.distortion.add(terms.rate, alpha=self.beta)


@torch.no_grad()
def mean_rate_and_distortion(
    model: "VAE", x: Float[Tensor, "batch *event"], *, num_draws: int = 10
) -> tuple[float, float]:
    """Rate and distortion in nats, averaged over the rows and `num_draws` codes per row."""
    terms = [model.terms(x) for _ in range(num_draws)]
    return float(terms[0].rate.mean()), float(torch.stack([each.distortion for each in terms]).mean())
