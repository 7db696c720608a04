"""Calibration of predictions: coverage of intervals, predictive densities, reliability of class probabilities."""

from dataclasses import dataclass
from math import pi
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.errors import check_positive, check_same_shape
from parnassus.kernels.infinite_width.quadrature import gauss_hermite

LEVELS = torch.linspace(0.05, 0.95, 19, dtype=torch.float64)
"""Levels of the intervals whose coverage is counted."""


def interval_coverage(
    mean: Float[Tensor, "m *outputs"],
    variance: Float[Tensor, " m"],
    t: Float[Tensor, "m *outputs"],
    levels: Float[Tensor, " levels"],
) -> Float[Tensor, " levels"]:
    """Fraction of targets inside the central interval of each level: mean ± Φ⁻¹((1 + level)/2) √variance.

    A calibrated prediction covers the level itself. `variance` is that of a target, noise included (book eq. 15.10,
    with σ²).
    """
    if not bool(((levels > 0) & (levels < 1)).all()):
        raise ValueError(f"levels must lie between 0 and 1; got {levels.tolist()}")
    half_widths: Tensor = torch.special.ndtri((1 + levels.to(mean)) / 2)
    deviations = _standardise(mean, variance, t).abs().flatten()
    return (deviations <= half_widths[:, None]).to(mean).mean(1)


def negative_log_density(
    mean: Float[Tensor, "m *outputs"], variance: Float[Tensor, " m"], t: Float[Tensor, "m *outputs"]
) -> Float[Tensor, ""]:
    """NLPD: mean over targets of ½ (t − mean)² / variance + ½ log 2π variance; lower is better."""
    squares = _standardise(mean, variance, t).square().mean() / 2
    return squares + (2 * pi * variance).log().mean() / 2


def root_mean_squared_error(mean: Float[Tensor, "m *outputs"], t: Float[Tensor, "m *outputs"]) -> Float[Tensor, ""]:
    """RMSE: the square root of the mean of (t − mean)²."""
    return (t - mean).square().mean().sqrt()


def class_probabilities(
    mean: Float[Tensor, "m classes"], variance: Float[Tensor, " m"], *, nodes: int = 40
) -> Float[Tensor, "m classes"]:
    """Class probabilities of regression on one-hot targets: P(y_c is the largest), y_c ~ N(mean_c, variance).

        P_c = E_z ∏_{d≠c} Φ(z + (mean_c − mean_d) / √variance),   z ~ N(0, 1)

    by Gauss-Hermite quadrature; for two classes this is the probit Φ((mean_1 − mean_2) / √(2 variance)).
    """
    if not bool((variance > 0).all()):
        raise ValueError(
            f"variance must be positive; got a minimum of {float(variance.min()):.3g}: add the noise variance"
        )
    gaps = (mean[:, :, None] - mean[:, None, :]) / variance.sqrt()[:, None, None]
    total = torch.zeros_like(mean)
    for z, weight in zip(*(part.tolist() for part in gauss_hermite(nodes)), strict=True):
        logs = torch.special.log_ndtr(z + gaps)
        total += weight * (logs.sum(2) - logs.diagonal(dim1=1, dim2=2)).exp()
    return total / total.sum(1, keepdim=True)


class Reliability(NamedTuple):
    """Predictions binned by confidence: mean confidence, accuracy and fraction of all predictions in each bin.

    >>> half = torch.tensor([0.5])
    >>> Reliability(confidence=half, accuracy=half, fraction=torch.ones(1)).error
    0.0
    """

    confidence: Float[Tensor, " bins"]
    accuracy: Float[Tensor, " bins"]
    fraction: Float[Tensor, " bins"]

    @property
    def error(self) -> float:
        """The expected calibration error Σ_b fraction_b |accuracy_b − confidence_b| (Naeini et al. 2015)."""
        return float((self.fraction * (self.accuracy - self.confidence).abs()).sum())


def reliability(probabilities: Float[Tensor, "m classes"], labels: Int[Tensor, " m"], *, bins: int = 15) -> Reliability:
    """Non-empty bins of equal width in confidence, the largest class probability."""
    check_positive(bins=bins)
    confidences, predicted = probabilities.max(1)
    check_same_shape(predictions=predicted, labels=labels)
    correct = (predicted == labels).to(confidences)
    bin_of = (confidences * bins).long().clamp(0, bins - 1)
    counts = torch.bincount(bin_of, minlength=bins)
    filled = counts > 0
    confidence, accuracy = (
        torch.bincount(bin_of, part, bins)[filled] / counts[filled] for part in (confidences, correct)
    )
    return Reliability(confidence, accuracy, counts[filled] / len(labels))


def wilson_interval(
    fraction: Float[Tensor, " bins"], count: Float[Tensor, " bins"], *, deviations: float = 1.96
) -> tuple[Float[Tensor, " bins"], Float[Tensor, " bins"]]:
    """Wilson interval for a probability p observed as `fraction` of `count` trials (Wilson 1927).

    All p with |fraction − p| ≤ deviations · √(p (1 − p) / count); it never leaves [0, 1].
    """
    if not bool((count > 0).all()):
        raise ValueError(f"count must be positive; got a minimum of {float(count.min()):g}")
    shift = deviations**2 / count
    half = deviations * (fraction * (1 - fraction) / count + shift / (4 * count)).sqrt()
    return (fraction + shift / 2 - half) / (1 + shift), (fraction + shift / 2 + half) / (1 + shift)


@dataclass(frozen=True)
class CalibrationCurve:
    """A calibration curve, the mean distance of its two axes, and the mean negative log-likelihood.

    >>> half = torch.tensor([0.5])
    >>> CalibrationCurve(half, half, torch.ones(1), error=0.0, negative_log_likelihood=0.7).error
    0.0
    """

    predicted: Float[Tensor, " points"]
    observed: Float[Tensor, " points"]
    counts: Float[Tensor, " points"]
    """Number of predictions behind each point."""
    error: float
    negative_log_likelihood: float

    @classmethod
    def from_classification(
        cls, probabilities: Float[Tensor, "m classes"], labels: Int[Tensor, " m"], *, bins: int = 10
    ) -> "CalibrationCurve":
        """Confidence and accuracy in bins (`reliability`), and the log-probability of the true class."""
        binned = reliability(probabilities, labels, bins=bins)
        true_class = probabilities.gather(1, labels[:, None]).clamp(min=1e-12)
        predicted, observed, fraction = (part.cpu() for part in binned)
        return cls(predicted, observed, fraction * len(labels), binned.error, abs(float(true_class.log().mean())))

    @classmethod
    def from_regression(
        cls, mean: Float[Tensor, "m *outputs"], variance: Float[Tensor, " m"], t: Float[Tensor, "m *outputs"]
    ) -> "CalibrationCurve":
        """Levels of central intervals and their `coverage`, and the log-density of the target."""
        observed = interval_coverage(mean, variance, t, LEVELS.to(mean)).cpu()
        error = float((observed - LEVELS).abs().mean())
        nlpd = float(negative_log_density(mean, variance, t))
        return cls(LEVELS, observed, torch.full_like(LEVELS, t.numel()), error, nlpd)

    def interval(self) -> tuple[Float[Tensor, " points"], Float[Tensor, " points"]]:
        """95 % confidence interval of the observed fractions (`wilson_interval`)."""
        return wilson_interval(self.observed, self.counts)


def _standardise(mean: Tensor, variance: Tensor, t: Tensor) -> Tensor:
    if mean.shape != t.shape:
        raise ValueError(f"mean and t must have the same shape; got {tuple(mean.shape)} and {tuple(t.shape)}")
    if not bool((variance > 0).all()):
        raise ValueError(
            f"variance must be positive; got a minimum of {float(variance.min()):.3g}: add the noise variance"
        )
    return (t - mean) / variance.sqrt().view(-1, *[1] * (mean.ndim - 1))
