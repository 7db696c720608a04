"""A hidden cause and an observation, both finite: evidence, posterior and the evidence bound in full (book sec. 6.1).

What a variational autoencoder can only estimate is here a sum over a table, so every identity can be held to rounding.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.bayes import posterior_table
from parnassus.probability.divergences import cross_entropy_between, entropy, kl_divergence
from parnassus.probability.simplex import require_distribution


class BoundTerms(NamedTuple):
    """The parts of the evidence bound, one number an observation x; E is over the guess q(z|x)."""

    log_likelihood: Tensor  # E_q[log p(x|z)]: how well the causes that q proposes explain x
    divergence_from_prior: Tensor  # KL(q(z|x) ‖ p(z)): what it costs to say which
    log_joint: Tensor  # E_q[log p(x, z)]
    entropy: Tensor  # H(q(z|x))
    gap: Tensor  # KL(q(z|x) ‖ p(z|x))

    @property
    def elbo(self) -> Tensor:
        """E_q[log p(x|z)] − KL(q(z|x) ‖ p(z)) ≤ log p(x) (book eq. 6.12)."""
        return self.log_likelihood - self.divergence_from_prior


@dataclass(frozen=True)
class LatentTable:
    """A cause z drawn from a prior, then an observation x drawn given the cause (Diehl sec. 6).

        p(x, z) = p(z) p(x|z),   p(x) = Σ_z p(x, z),   p(z|x) = p(x, z) / p(x)

    Row k of the likelihood is p(x | z = k). Every observation must be possible.
    """

    prior: Float[Tensor, " causes"]
    likelihood: Float[Tensor, "causes observations"]

    def __post_init__(self) -> None:
        posterior_table(self.prior, self.likelihood)  # says what is wrong with either

    @property
    def joint(self) -> Float[Tensor, "observations causes"]:
        """p(x, z), a row an observation."""
        return (self.prior[:, None] * self.likelihood).T

    @property
    def evidence(self) -> Float[Tensor, " observations"]:
        """p(x), the sum over causes that larger models cannot do (Diehl sec. 6)."""
        return posterior_table(self.prior, self.likelihood).evidence

    @property
    def posterior(self) -> Float[Tensor, "observations causes"]:
        """p(z|x), a row an observation (Diehl sec. 6)."""
        return posterior_table(self.prior, self.likelihood).posterior

    def terms(self, guess: Float[Tensor, "observations causes"]) -> BoundTerms:
        """What the identities below are made of, for a guess q(z|x), a row an observation (book eqs. 6.6-6.12).

        KL(q ‖ p(z|x)) = KL(q ‖ p(x,z)) + log p(x)                                     (book eq. 6.6)
        KL(q ‖ p(x,z)) = KL(q ‖ p(z)) − E_q[log p(x|z)]                                (book eq. 6.7)
                       = −E_q[log p(x,z)] − H(q)                                       (book eq. 6.8, its sign mended)
        log p(x) = KL(q ‖ p(z|x)) − KL(q ‖ p(z)) + E_q[log p(x|z)]                     (book eq. 6.10)
                 = KL(q ‖ p(z|x)) + E_q[log p(x,z)] + H(q)                             (book eq. 6.11, its sign mended)
        """
        require_guess(guess, self)
        given_cause = torch.xlogy(guess, self.likelihood.T)
        return BoundTerms(
            log_likelihood=given_cause.sum(-1),
            divergence_from_prior=kl_divergence(guess, self.prior),
            log_joint=given_cause.sum(-1) - cross_entropy_between(guess, self.prior),
            entropy=entropy(guess),
            gap=kl_divergence(guess, self.posterior),
        )


def divergence_from_joint(
    guess: Float[Tensor, "observations causes"], joint: Float[Tensor, "observations causes"]
) -> Float[Tensor, " observations"]:
    """KL(q(z|x) ‖ p(x, z)) = Σ_z q log(q / p(x, z)) against a row that sums to p(x), not to one (book eq. 6.6).

    So it may be negative: it is KL(q(z|x) ‖ p(z|x)) − log p(x), the negative evidence bound.
    """
    require_distribution(guess, "the guess")
    return (torch.xlogy(guess, guess) - torch.xlogy(guess, joint)).sum(-1)


def require_guess(guess: Tensor, model: LatentTable) -> None:
    """Raise a ValueError unless `guess` has a law over the model's causes for each of its observations."""
    require_distribution(guess, "the guess q(z|x)")
    causes, observations = model.likelihood.shape
    if guess.shape != (observations, causes):
        raise ValueError(
            f"a guess q(z|x) has a row for each of {observations} observations and a column for each of {causes} "
            f"causes; got shape {tuple(guess.shape)}"
        )
