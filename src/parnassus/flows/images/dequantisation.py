"""Uniform dequantisation, the logit transform and bits per dimension (book sec. 13.1).

The density of a continuous model on discrete grey values is unbounded. Uniform noise of the width of a grey level turns
them into continuous values in the unit cube, where the density bounds the discrete likelihood (Theis et al. 2016).
"""

from math import log, prod

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_at_least_one, check_positive
from parnassus.flows.flow import Flow

BYTE_LEVELS = 256
"""The number of grey levels of a byte."""


class Logit(nn.Module):
    """Maps real values to the unit interval with a margin: x = (σ(z) − λ)/(1 − 2λ) (Dinh et al. 2017).

        z = logit(λ + (1 − 2λ) x)
        log |det J| = Σ_i log σ(z_i) + log σ(−z_i) − log(1 − 2λ)

    The margin λ > 0 keeps the latents of x = 0 and x = 1 finite.
    """

    def __init__(self, margin: float = 0.05) -> None:
        super().__init__()
        if not 0 < margin < 0.5:
            raise ValueError(f"margin must lie between 0 and ½; got margin={margin}")
        self.margin = margin

    def forward(
        self, z: Float[Tensor, "batch *event"]
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        return (z.sigmoid() - self.margin) / (1 - 2 * self.margin), self._log_det(z)

    def inverse(
        self, x: Float[Tensor, "batch *event"]
    ) -> tuple[Float[Tensor, "batch *event"], Float[Tensor, " batch"]]:
        z = (self.margin + (1 - 2 * self.margin) * x).logit()
        return z, -self._log_det(z)

    def _log_det(self, z: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
        return (logsigmoid(z) + logsigmoid(-z) - log(1 - 2 * self.margin)).flatten(1).sum(1)


def dequantise(
    x: Float[Tensor, "batch *event"], noise: Float[Tensor, "batch *event"], *, levels: int
) -> Float[Tensor, "batch *event"]:
    """(k + u)/levels for pixels x = k/(levels − 1) and noise u in [0, 1)."""
    return (quantise(x, levels=levels) * (levels - 1) + noise) / levels


def quantise(x: Float[Tensor, "batch *event"], *, levels: int) -> Float[Tensor, "batch *event"]:
    """Round to the nearest of the grey values 0, 1/(levels − 1), …, 1."""
    _check_levels(levels)
    return (x * (levels - 1)).round().clamp(0, levels - 1) / (levels - 1)


def count_grey_levels(x: Float[Tensor, "*shape"]) -> int:
    """The smallest number of equidistant levels, at most 256, that contain all pixel values; 256 if there is none."""
    values = x.unique()
    for levels in range(max(2, min(len(values), BYTE_LEVELS)), BYTE_LEVELS):
        steps = values * (levels - 1)
        if bool(((steps - steps.round()).abs() < 1e-3).all()):
            return levels
    return BYTE_LEVELS


def bits_per_dimension(log_prob: Float[Tensor, " batch"], dimensions: int, *, levels: int) -> Float[Tensor, " batch"]:
    """−log₂ P(x)/D of every example, from its log-density on the unit cube divided into levelsᴰ cells.

        bits = (−log p(y) + D log levels)/(D log 2)

    NaN log-densities raise an error, since a mean over the other examples would be misleading.
    """
    _check_levels(levels)
    check_at_least_one(dimensions=dimensions)
    if bool(log_prob.isnan().any()):
        raise ValueError(f"log-densities must not be NaN; got {int(log_prob.isnan().sum())} NaN of {len(log_prob)}")
    return (log(levels) - log_prob / dimensions) / log(2)


def independent_bits(
    train: Float[Tensor, "count *event"], test: Float[Tensor, "others *event"], *, levels: int
) -> float:
    """Mean bits per dimension of test images under independent pixels with add-one-smoothed training frequencies."""
    train_levels, test_levels = (
        (quantise(x, levels=levels) * (levels - 1)).round().long().flatten(1).mT for x in (train, test)
    )
    counts = torch.ones(len(train_levels), levels, device=train.device)
    counts.scatter_add_(1, train_levels, torch.ones_like(train_levels, dtype=counts.dtype))
    log_probs = (counts / counts.sum(1, keepdim=True)).log2()
    return -float(log_probs.gather(1, test_levels).mean())


class DequantisedFlow(nn.Module):
    """A distribution of images with discrete grey values by a flow on the unit cube (Theis et al. 2016).

        log P(x) = log E_u p((k + u)/levels) − D log levels ≥ E_u log p((k + u)/levels) − D log levels

    P integrates the density of the flow over the cell of the image; `log_prob` is an unbiased estimate, with one u per
    example, of the bound on the right. Pixels are k/(levels − 1) with k = 0 … levels − 1.
    """

    def __init__(self, flow: Flow, shape: tuple[int, ...], *, levels: int = BYTE_LEVELS) -> None:
        super().__init__()
        _check_levels(levels)
        self.flow = flow
        self.shape = shape
        self.levels = levels

    def log_density(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
        """The log-density log p(y) of the flow at a uniformly sampled point y of the cell of each image."""
        return self.flow.log_prob(dequantise(x, torch.rand_like(x), levels=self.levels))

    @accepts_arrays
    def log_prob(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
        """An estimate of a lower bound of log P(x), in nats, with one noise sample per image."""
        return self.log_density(x) - prod(self.shape) * log(self.levels)

    def bits(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
        """Bits per dimension; in expectation over the noise an upper bound of −log₂ P(x)/D."""
        return bits_per_dimension(self.log_density(x), prod(self.shape), levels=self.levels)

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        """Mean bits per dimension; NaN if any log-density is."""
        return -self.log_prob(x).mean() / (prod(self.shape) * log(2))

    @accepts_arrays
    def encode(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch latent"]:
        """The latents of the centres of the cells."""
        return self.flow.transform.inverse(dequantise(x, torch.full_like(x, 0.5), levels=self.levels))[0]

    @accepts_arrays
    def decode(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch *event"]:
        """The images of the cells to which the latents are mapped; points outside the unit cube are clamped."""
        cube, _ = self.flow.transform(z)
        return (cube * self.levels).floor().clamp(0, self.levels - 1) / (self.levels - 1)

    @torch.no_grad()
    def sample(self, count: int, *, temperature: float = 1.0) -> Float[Tensor, "{count} *event"]:
        """Samples with latents z ~ N(0, τ² I) for the temperature τ."""
        check_positive(temperature=temperature)
        z: Tensor = self.flow.base().sample((count,))
        return self.decode(temperature * z)


def _check_levels(levels: int) -> None:
    if levels < 2:
        raise ValueError(f"levels must be at least 2; got levels={levels}")
