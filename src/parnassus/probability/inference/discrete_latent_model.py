"""A discrete latent-variable model: exact evidence, posterior and evidence lower bound (book sec. 6.1).

The quantities that a variational autoencoder estimates are finite sums here, so identities hold up to rounding.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.distributions.seeded_samples import random_distributions
from parnassus.probability.distributions.simplex import check_distribution
from parnassus.probability.divergences.entropy import cross_entropy_between, entropy
from parnassus.probability.divergences.kl_divergence import kl_divergence
from parnassus.probability.inference.bayes import posterior_table


class ElboTerms(NamedTuple):
    """Terms of the evidence lower bound, one value per observation x; E_q is over q(z|x).

    >>> one = torch.ones(1)
    >>> ElboTerms(log_likelihood=-2 * one, kl_to_prior=one, log_joint=-4 * one, entropy=one, gap=one).elbo.tolist()
    [-3.0]
    """

    log_likelihood: Tensor  # E_q[log p(x|z)]
    kl_to_prior: Tensor  # KL(q(z|x) ‖ p(z))
    log_joint: Tensor  # E_q[log p(x, z)]
    entropy: Tensor  # H(q(z|x))
    gap: Tensor  # KL(q(z|x) ‖ p(z|x))

    @property
    def elbo(self) -> Tensor:
        """E_q[log p(x|z)] − KL(q(z|x) ‖ p(z)) ≤ log p(x) (book eq. 6.12)."""
        return self.log_likelihood - self.kl_to_prior


@dataclass(frozen=True)
class DiscreteLatentModel:
    """A prior over latent states z and a likelihood of observations x given z (Diehl sec. 6).

        p(x, z) = p(z) p(x|z),   p(x) = Σ_z p(x, z),   p(z|x) = p(x, z) / p(x)

    Row k of the likelihood is p(x | z = k). Every observation must have positive probability.

    >>> model = DiscreteLatentModel(torch.tensor([0.5, 0.5]), torch.tensor([[0.9, 0.1], [0.3, 0.7]]))
    >>> model.evidence
    tensor([0.6000, 0.4000])
    """

    prior: Float[Tensor, " states"]
    likelihood: Float[Tensor, "states observations"]

    def __post_init__(self) -> None:
        posterior_table(self.prior, self.likelihood)  # validates both

    @property
    def joint(self) -> Float[Tensor, "observations states"]:
        """p(x, z), one row per observation."""
        return (self.prior[:, None] * self.likelihood).T

    @property
    def evidence(self) -> Float[Tensor, " observations"]:
        """p(x) = Σ_z p(x, z), intractable in larger models (Diehl sec. 6)."""
        return posterior_table(self.prior, self.likelihood).evidence

    @property
    def posterior(self) -> Float[Tensor, "observations states"]:
        """p(z|x), one row per observation (Diehl sec. 6)."""
        return posterior_table(self.prior, self.likelihood).posterior

    def terms(self, q: Float[Tensor, "observations states"]) -> ElboTerms:
        """Terms of the ELBO for a variational posterior q(z|x), one row per observation (book eqs. 6.6-6.12).

        KL(q ‖ p(z|x)) = KL(q ‖ p(x,z)) + log p(x)                                     (book eq. 6.6)
        KL(q ‖ p(x,z)) = KL(q ‖ p(z)) − E_q[log p(x|z)]                                (book eq. 6.7)
                       = −E_q[log p(x,z)] − H(q)                                       (book eq. 6.8, sign corrected)
        log p(x) = KL(q ‖ p(z|x)) − KL(q ‖ p(z)) + E_q[log p(x|z)]                     (book eq. 6.10)
                 = KL(q ‖ p(z|x)) + E_q[log p(x,z)] + H(q)                             (book eq. 6.11, sign corrected)
        """
        check_posterior_table(q, self)
        log_likelihood = torch.xlogy(q, self.likelihood.T).sum(-1)
        return ElboTerms(
            log_likelihood=log_likelihood,
            kl_to_prior=kl_divergence(q, self.prior),
            log_joint=log_likelihood - cross_entropy_between(q, self.prior),
            entropy=entropy(q),
            gap=kl_divergence(q, self.posterior),
        )


def random_latent_model(states: int, observations: int, *, seed: int = 0) -> DiscreteLatentModel:
    """A model whose prior and likelihood are sampled from the uniform distribution on the simplex."""
    prior = random_distributions(1, states, seed=seed)[0]
    return DiscreteLatentModel(prior, random_distributions(states, observations, seed=seed + 1))


def kl_to_joint(
    q: Float[Tensor, "observations states"], joint: Float[Tensor, "observations states"]
) -> Float[Tensor, " observations"]:
    """KL(q(z|x) ‖ p(x, z)) = Σ_z q log(q / p(x, z)) where p(x, ·) sums to p(x), not to one (book eq. 6.6).

    It equals KL(q(z|x) ‖ p(z|x)) − log p(x), the negative ELBO, and may be negative.
    """
    check_distribution(q, "q(z|x)")
    return (torch.xlogy(q, q) - torch.xlogy(q, joint)).sum(-1)


def check_posterior_table(q: Tensor, model: DiscreteLatentModel) -> None:
    """Raise a ValueError unless `q` holds a distribution over the latent states for each observation."""
    check_distribution(q, "q(z|x)")
    states, observations = model.likelihood.shape
    if q.shape != (observations, states):
        raise ValueError(
            f"q(z|x) must have one row per observation and one column per latent state, {observations} × {states}; "
            f"got shape {tuple(q.shape)}"
        )
