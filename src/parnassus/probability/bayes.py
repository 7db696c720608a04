"""Bayes' theorem for two events and for whole tables (Zhao sec. 2)."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from parnassus.probability.simplex import require_distribution


def bayes(likelihood: float, prior: float, evidence: float) -> float:
    """P(A|B) = P(B|A) P(A) / P(B), where P(B) > 0 (Zhao eq. 3)."""
    if not evidence > 0:
        raise ValueError(f"nothing follows from an event that cannot happen: P(B) must be positive; got {evidence}")
    for name, value in (("P(B|A)", likelihood), ("P(A)", prior), ("P(B)", evidence)):
        if not 0 <= value <= 1:
            raise ValueError(f"a probability lies in [0, 1]; got {name} = {value}")
    if not likelihood * prior <= evidence * (1 + 1e-9):
        raise ValueError(f"P(A and B) must not exceed P(B); got {likelihood * prior:g} > {evidence:g}")
    return likelihood * prior / evidence


class Posterior(NamedTuple):
    """What the observations say: row m holds P(cause | observation m), `evidence` how likely that observation is."""

    posterior: Tensor  # (observations, causes)
    evidence: Tensor  # (observations)


def posterior_table(prior: Float[Tensor, " causes"], likelihood: Float[Tensor, "rows observations"]) -> Posterior:
    """Posterior and evidence from a prior P(k) and rows of likelihoods P(m|k) (Zhao eq. 3).

        P(k|m) = P(m|k) P(k) / P(m),   P(m) = Σ_k P(m|k) P(k)

    Rows of the posterior sum to one. An observation that no cause allows has no posterior, and is an error.
    """
    require_distribution(prior, "prior")
    require_distribution(likelihood, "likelihood")
    if len(prior) != len(likelihood):
        raise ValueError(f"need a row of likelihoods for every cause; got {len(prior)} causes, {len(likelihood)} rows")
    joint = prior[:, None] * likelihood
    evidence = joint.sum(0)
    if not bool((evidence > 0).all()):
        impossible = (evidence == 0).nonzero()[:, 0].tolist()
        raise ValueError(f"nothing follows from what cannot happen: P(observation) is 0 for observations {impossible}")
    return Posterior((joint / evidence).T, evidence)
