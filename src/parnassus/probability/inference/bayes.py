"""Bayes' theorem for two events and for tables of hypotheses and observations (Zhao sec. 2)."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from parnassus.probability.distributions.simplex import check_distribution


def bayes_theorem(likelihood: float, prior: float, evidence: float) -> float:
    """P(A|B) = P(B|A) P(A) / P(B), where P(B) > 0 (Zhao eq. 3)."""
    if not evidence > 0:
        raise ValueError(f"P(B) must be positive; got {evidence}")
    for name, value in (("P(B|A)", likelihood), ("P(A)", prior), ("P(B)", evidence)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must lie in [0, 1]; got {value}")
    if not likelihood * prior <= evidence * (1 + 1e-9):
        raise ValueError(f"P(A and B) must not exceed P(B); got {likelihood * prior:g} > {evidence:g}")
    return likelihood * prior / evidence


class Posterior(NamedTuple):
    """Row m of `posterior` holds P(hypothesis | observation m), `evidence` the probability of that observation.

    >>> Posterior(posterior=torch.tensor([[0.75, 0.25]]), evidence=torch.tensor([0.4])).posterior.argmax(1).tolist()
    [0]
    """

    posterior: Tensor  # (observations, hypotheses)
    evidence: Tensor  # (observations)


def posterior_table(prior: Float[Tensor, " hypotheses"], likelihood: Float[Tensor, "rows observations"]) -> Posterior:
    """Posterior and evidence from a prior P(k) and likelihood rows P(m|k) (Zhao eq. 3).

        P(k|m) = P(m|k) P(k) / P(m),   P(m) = Σ_k P(m|k) P(k)

    An observation of probability 0 has no posterior and is an error.
    """
    check_distribution(prior, "prior")
    check_distribution(likelihood, "likelihood")
    if len(prior) != len(likelihood):
        raise ValueError(
            f"likelihood must have one row per hypothesis; got {len(prior)} hypotheses, {len(likelihood)} rows"
        )
    joint = prior[:, None] * likelihood
    evidence = joint.sum(0)
    if not bool((evidence > 0).all()):
        impossible = (evidence == 0).nonzero()[:, 0].tolist()
        raise ValueError(f"P(observation) must be positive; it is 0 for observations {impossible}")
    return Posterior((joint / evidence).T, evidence)
