"""Predictions judged: how sure they said they were, how right they were, and how surprised by the truth."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.kernels.calibration import coverage, negative_log_density, reliability, share_interval

LEVELS = torch.linspace(0.05, 0.95, 19, dtype=torch.float64)
"""Of the intervals whose coverage is counted."""


@dataclass(frozen=True)
class Judgement:
    """The two axes of a calibration plot, their mean distance, and the mean of −log p(truth)."""

    stated: Float[Tensor, " points"]
    observed: Float[Tensor, " points"]
    counts: Float[Tensor, " points"]
    """Of the predictions that each point stands for."""
    error: float
    surprise: float

    @classmethod
    def of_classes(
        cls, probabilities: Float[Tensor, "m classes"], labels: Int[Tensor, " m"], *, bins: int = 10
    ) -> "Judgement":
        """Confidence against accuracy in bins (`reliability`), and the log probability of the true class."""
        binned = reliability(probabilities, labels, bins=bins)
        given = probabilities.gather(1, labels[:, None]).clamp(min=1e-12)
        stated, observed, share = (part.cpu() for part in binned)
        return cls(stated, observed, share * len(labels), binned.error, abs(float(given.log().mean())))

    @classmethod
    def of_numbers(
        cls, mean: Float[Tensor, "m *outputs"], variance: Float[Tensor, " m"], t: Float[Tensor, "m *outputs"]
    ) -> "Judgement":
        """Levels of intervals against the shares inside (`coverage`), and the log density of the target."""
        observed = coverage(mean, variance, t, LEVELS.to(mean)).cpu()
        error = float((observed - LEVELS).abs().mean())
        surprise = float(negative_log_density(mean, variance, t))
        return cls(LEVELS, observed, torch.full_like(LEVELS, t.numel()), error, surprise)

    def interval(self) -> tuple[Float[Tensor, " points"], Float[Tensor, " points"]]:
        """Where 95 % of all counts would leave the observed share."""
        return share_interval(self.observed, self.counts)
