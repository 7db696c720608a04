"""Jensen's inequality: φ(E X) ≤ E φ(X) for convex φ (Diehl lem. 1.9)."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.distributions.simplex import check_distribution
from parnassus.probability.expectations.expectation import expectation

PointFunction: TypeAlias = Callable[[Tensor], Tensor]
"""A function that maps points along the first axis to one value each."""


class JensenInequality(NamedTuple):
    """Both sides of the inequality; the gap is non-negative for convex functions.

    >>> JensenInequality(function_of_mean=torch.tensor(1.0), mean_of_function=torch.tensor(1.5)).gap.item()
    0.5
    """

    function_of_mean: Tensor  # φ(Σ p_i x_i)
    mean_of_function: Tensor  # Σ p_i φ(x_i)

    @property
    def gap(self) -> Tensor:
        return self.mean_of_function - self.function_of_mean


def jensen_inequality(
    function: PointFunction, points: Float[Tensor, " count *event"], weights: Float[Tensor, " count"]
) -> JensenInequality:
    """φ(Σ_i p_i x_i) ≤ Σ_i p_i φ(x_i) for convex φ and weights p_i ≥ 0 that sum to one (Diehl lem. 1.9)."""
    mean = expectation(points, weights)
    return JensenInequality(
        function_of_mean=function(mean[None])[0], mean_of_function=expectation(function(points), weights)
    )


def jensen_merge_path(
    function: PointFunction, points: Float[Tensor, " count *event"], weights: Float[Tensor, " count"]
) -> Float[Tensor, " count"]:
    """The induction of the proof: repeatedly merge the first two points into their weighted mean.

        x₁, x₂ with weights p₁, p₂  ↦  (p₁ x₁ + p₂ x₂) / (p₁ + p₂) with weight p₁ + p₂

    Returns Σ p φ(x) after 0, 1, …, count − 1 merges. For convex φ no merge increases it; the first value is the right
    side of the inequality, the last the left (Diehl lem. 1.9; Zhao sec. 12).
    """
    check_distribution(weights, "weights")
    sums = [expectation(function(points), weights)]
    while len(points) > 1:
        weight = weights[0] + weights[1]
        fraction = weights[1] / weight if weight > 0 else 0.0
        merged = torch.lerp(points[0], points[1], fraction)
        points = torch.cat([merged[None], points[2:]])
        weights = torch.cat([weight[None], weights[2:]])
        sums.append(weights @ function(points))
    return torch.stack(sums)


class EvidenceBound(NamedTuple):
    """The expected negative log-likelihood over latent states, an upper bound of the negative log-evidence.

    >>> EvidenceBound(bound=torch.tensor([2.0]), nll=torch.tensor([1.5])).bound.item()
    2.0
    """

    bound: Tensor  # E_Y[−log P(X|Y)]
    nll: Tensor  # −log P(X)


def prior_evidence_bound(
    log_likelihood: Float[Tensor, "*batch states"], prior: Float[Tensor, " states"]
) -> EvidenceBound:
    """E_Y[−log P(X|Y)] ≥ −log E_Y[P(X|Y)] = −log P(X), from log P(x|y) for every latent state y (Zhao sec. 12).

    Jensen with φ = −log: the negative ELBO with the prior as variational posterior. Tight only where all latent
    states give x the same likelihood.
    """
    check_distribution(prior, "prior")
    return EvidenceBound(
        bound=-(torch.where(prior > 0, prior * log_likelihood, 0)).sum(-1),
        nll=-(log_likelihood + prior.log()).logsumexp(-1),
    )
