"""Jensen's inequality: a convex function of a mean is at most the mean of the function (Diehl lem. 1.9)."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.expectation import expectation
from parnassus.probability.simplex import require_distribution

PointFunction: TypeAlias = Callable[[Tensor], Tensor]
"""Points along the first axis in, one number for each out."""


class Jensen(NamedTuple):
    """Both sides of the inequality; the gap is not negative for a convex function."""

    of_mean: Tensor  # φ(Σ p_i x_i)
    mean_of: Tensor  # Σ p_i φ(x_i)

    @property
    def gap(self) -> Tensor:
        return self.mean_of - self.of_mean


def jensen(function: PointFunction, points: Float[Tensor, " count *event"], weights: Float[Tensor, " count"]) -> Jensen:
    """φ(Σ_i p_i x_i) ≤ Σ_i p_i φ(x_i) for convex φ and weights p_i ≥ 0 that sum to one (Diehl lem. 1.9)."""
    mean = expectation(points, weights)
    return Jensen(of_mean=function(mean[None])[0], mean_of=expectation(function(points), weights))


def jensen_by_merging(
    function: PointFunction, points: Float[Tensor, " count *event"], weights: Float[Tensor, " count"]
) -> Float[Tensor, " count"]:
    """The induction of the proof, step by step: merge the first two points into their mean, again and again.

        x₁, x₂ with weights p₁, p₂  ↦  (p₁ x₁ + p₂ x₂) / (p₁ + p₂) with weight p₁ + p₂

    What comes back is Σ p φ(x) after 0, 1, …, count − 1 merges. For a convex φ no merge raises it; the first number is
    the right side of the inequality, the last the left (Diehl lem. 1.9; Zhao sec. 12).
    """
    require_distribution(weights, "weights")
    sums = [expectation(function(points), weights)]
    while len(points) > 1:
        weight = weights[0] + weights[1]
        share = weights[1] / weight if weight > 0 else 0.0
        merged = torch.lerp(points[0], points[1], share)
        points = torch.cat([merged[None], points[2:]])
        weights = torch.cat([weight[None], weights[2:]])
        sums.append(weights @ function(points))
    return torch.stack(sums)


class LatentBound(NamedTuple):
    """An average surprise over causes, and the surprise itself, which it is never below."""

    bound: Tensor  # E_Y[−log P(X|Y)]
    surprise: Tensor  # −log P(X)


def latent_bound(log_likelihood: Float[Tensor, "*batch causes"], prior: Float[Tensor, " causes"]) -> LatentBound:
    """E_Y[−log P(X|Y)] ≥ −log E_Y[P(X|Y)] = −log P(X), from log P(x|y) for every cause y (Zhao sec. 12).

    Jensen with φ = −log. It is the evidence bound with the prior as guess for Y, so it is tight only where all causes
    explain x equally well.
    """
    require_distribution(prior, "prior")
    return LatentBound(
        bound=-(torch.where(prior > 0, prior * log_likelihood, 0)).sum(-1),
        surprise=-(log_likelihood + prior.log()).logsumexp(-1),
    )
