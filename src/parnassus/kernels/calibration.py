"""Does a prediction know how wrong it is? Coverage of intervals, densities of targets, reliability of classes."""

from math import pi
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.kernels.quadrature import hermite


def coverage(
    mean: Float[Tensor, "m *outputs"],
    variance: Float[Tensor, " m"],
    t: Float[Tensor, "m *outputs"],
    levels: Float[Tensor, " levels"],
) -> Float[Tensor, " levels"]:
    """The share of targets inside the central interval of each level: mean ± Φ⁻¹((1 + level)/2) √variance.

    Well calibrated, it is the level itself. The variance is that of a target, noise included (book eq. 15.10, with σ²).
    """
    if not bool(((levels > 0) & (levels < 1)).all()):
        raise ValueError(f"levels must lie between 0 and 1; got {levels.tolist()}")
    reach: Tensor = torch.special.ndtri((1 + levels.to(mean)) / 2)
    away = _standardised(mean, variance, t).abs().flatten()
    return (away <= reach[:, None]).to(mean).mean(1)


def negative_log_density(
    mean: Float[Tensor, "m *outputs"], variance: Float[Tensor, " m"], t: Float[Tensor, "m *outputs"]
) -> Float[Tensor, ""]:
    """NLPD: the mean over targets of ½ (t − mean)² / variance + ½ log 2π variance; small is good."""
    own = _standardised(mean, variance, t).square().mean() / 2
    return own + (2 * pi * variance).log().mean() / 2


def root_mean_square(mean: Float[Tensor, "m *outputs"], t: Float[Tensor, "m *outputs"]) -> Float[Tensor, ""]:
    """RMSE: the root of the mean of (t − mean)²."""
    return (t - mean).square().mean().sqrt()


def class_probabilities(
    mean: Float[Tensor, "m classes"], variance: Float[Tensor, " m"], *, nodes: int = 40
) -> Float[Tensor, "m classes"]:
    """P(y_c is the largest) for independent y_c ~ N(mean_c, variance): regression of one-hot targets names classes.

        P_c = E_z ∏_{d≠c} Φ(z + (mean_c − mean_d) / √variance),   z ~ N(0, 1)

    by Gauss and Hermite's rule; of two classes Φ((mean_1 − mean_2) / √(2 variance)), the probit.
    """
    if not bool((variance > 0).all()):
        raise ValueError(
            f"variances must be positive; the least is {float(variance.min()):.3g}: add the noise variance"
        )
    apart = (mean[:, :, None] - mean[:, None, :]) / variance.sqrt()[:, None, None]
    total = torch.zeros_like(mean)
    for z, weight in zip(*(part.tolist() for part in hermite(nodes)), strict=True):
        logs = torch.special.log_ndtr(z + apart)
        total += weight * (logs.sum(2) - logs.diagonal(dim1=1, dim2=2)).exp()
    return total / total.sum(1, keepdim=True)


class Reliability(NamedTuple):
    """Predictions sorted into bins by how sure they are: mean confidence, share right and share of all in each."""

    confidence: Float[Tensor, " bins"]
    accuracy: Float[Tensor, " bins"]
    share: Float[Tensor, " bins"]

    @property
    def error(self) -> float:
        """The expected calibration error Σ_b share_b |accuracy_b − confidence_b| (Naeini et al. 2015)."""
        return float((self.share * (self.accuracy - self.confidence).abs()).sum())


def reliability(probabilities: Float[Tensor, "m classes"], labels: Int[Tensor, " m"], *, bins: int = 15) -> Reliability:
    """Of bins of equal width, those that hold predictions. The confidence is the largest probability."""
    if bins < 1:
        raise ValueError(f"there must be bins; got bins={bins}")
    sure, named = probabilities.max(1)
    right = (named == labels).to(sure)
    place = (sure * bins).long().clamp(0, bins - 1)
    counts = torch.bincount(place, minlength=bins)
    held = counts > 0
    confidence, accuracy = (torch.bincount(place, part, bins)[held] / counts[held] for part in (sure, right))
    return Reliability(confidence, accuracy, counts[held] / len(labels))


def share_interval(
    share: Float[Tensor, " bins"], count: Float[Tensor, " bins"], *, deviations: float = 1.96
) -> tuple[Float[Tensor, " bins"], Float[Tensor, " bins"]]:
    """Ends of the interval for a probability p of which `share` was seen in `count` trials (Wilson 1927).

    All p with |share − p| ≤ deviations · √(p (1 − p) / count): never beyond 0 and 1, and wide where trials are few.
    """
    if not bool((count > 0).all()):
        raise ValueError(f"a share needs trials; got counts down to {float(count.min()):g}")
    shift = deviations**2 / count
    half = deviations * (share * (1 - share) / count + shift / (4 * count)).sqrt()
    return (share + shift / 2 - half) / (1 + shift), (share + shift / 2 + half) / (1 + shift)


def _standardised(mean: Tensor, variance: Tensor, t: Tensor) -> Tensor:
    if mean.shape != t.shape:
        raise ValueError(f"every mean needs its target; got {tuple(mean.shape)} and {tuple(t.shape)}")
    if not bool((variance > 0).all()):
        raise ValueError(
            f"variances must be positive; the least is {float(variance.min()):.3g}: add the noise variance"
        )
    return (t - mean) / variance.sqrt().view(-1, *[1] * (mean.ndim - 1))
