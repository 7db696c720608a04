"""Whole grey values for a flow: noise that fills their cells, the logit, and bits a dimension (book sec. 13.1).

On a grid of grey values a density can be as high as it likes, and a likelihood means nothing. Noise as wide as a cell
spreads them over the unit cube, where the density bounds the likelihood of the cells (Theis et al. 2016).
"""

from math import log, prod

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from parnassus.flows.flow import Flow

MOST = 256
"""Grey values of a byte."""


class Logit(nn.Module):
    """From the line to the unit interval and a little beyond: x = (σ(z) − λ)/(1 − 2λ) (Dinh et al. 2017).

        z = logit(λ + (1 − 2λ) x)
        log |det J| = Σ_i log σ(z_i) + log σ(−z_i) − log(1 − 2λ)

    The margin λ keeps the images of 0 and 1 finite.
    """

    def __init__(self, margin: float = 0.05) -> None:
        super().__init__()
        if not 0 < margin < 0.5:
            raise ValueError(f"the margin must lie between 0 and ½; got margin={margin}")
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
    """(k + u)/levels for pixels x = k/(levels − 1) and noise u from [0, 1): each grey value becomes a cell."""
    return (quantise(x, levels=levels) * (levels - 1) + noise) / levels


def quantise(x: Float[Tensor, "batch *event"], *, levels: int) -> Float[Tensor, "batch *event"]:
    """The nearest of the grey values 0, 1/(levels − 1), …, 1."""
    _require_levels(levels)
    return (x * (levels - 1)).round().clamp(0, levels - 1) / (levels - 1)


def grey_levels(x: Float[Tensor, "*shape"]) -> int:
    """The least number of levels, at most 256, on which all these pixels lie; 256 where they lie on none."""
    values = x.unique()
    for levels in range(max(2, min(len(values), MOST)), MOST):
        steps = values * (levels - 1)
        if bool(((steps - steps.round()).abs() < 1e-3).all()):
            return levels
    return MOST


def bits_per_dimension(log_prob: Float[Tensor, " batch"], dimensions: int, *, levels: int) -> Float[Tensor, " batch"]:
    """−log₂ P(x)/D of every example, from its log-density on the unit cube divided in levelsᴰ cells.

        bits = (−log p(y) + D log levels)/(D log 2)

    No example is left out of account: where one has no number, the answer is a sentence and not a mean over the rest.
    """
    _require_levels(levels)
    if dimensions < 1:
        raise ValueError(f"an example needs at least one dimension; got dimensions={dimensions}")
    if bool(log_prob.isnan().any()):
        raise ValueError(
            f"every log-density must be a number; {int(log_prob.isnan().sum())} of {len(log_prob)} are not"
        )
    return (log(levels) - log_prob / dimensions) / log(2)


def independent_bits(
    seen: Float[Tensor, "count *event"], unseen: Float[Tensor, "others *event"], *, levels: int
) -> float:
    """Mean bits a dimension of unseen pictures if each place has a law of its own: its counts in the seen, plus one."""
    values, asked = ((quantise(x, levels=levels) * (levels - 1)).round().long().flatten(1).mT for x in (seen, unseen))
    counts = torch.ones(len(values), levels, device=seen.device)
    counts.scatter_add_(1, values, torch.ones_like(values, dtype=counts.dtype))
    law = (counts / counts.sum(1, keepdim=True)).log2()
    return -float(law.gather(1, asked).mean())


class Dequantised(nn.Module):
    """A law over pictures with whole grey values, by a flow over the unit cube (Theis et al. 2016).

        log P(x) = log E_u p((k + u)/levels) − D log levels ≥ E_u log p((k + u)/levels) − D log levels

    P integrates the flow's density over the cell of the picture; with one u for each example, `log_prob` is an
    unbiased estimate of the bound on the right. Pixels are k/(levels − 1) with k = 0 … levels − 1.
    """

    def __init__(self, flow: Flow, shape: tuple[int, ...], *, levels: int = MOST) -> None:
        super().__init__()
        _require_levels(levels)
        self.flow = flow
        self.shape = shape
        self.levels = levels

    def log_density(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
        """The flow's log-density log p(y) at one place y in the cell of each picture, drawn uniformly."""
        return self.flow.log_prob(dequantise(x, torch.rand_like(x), levels=self.levels))

    def log_prob(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
        """An estimate of a lower bound on log P(x), in nats, with one draw of noise for each picture."""
        return self.log_density(x) - prod(self.shape) * log(self.levels)

    def bits(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
        """Bits a dimension, at least as many as −log₂ P(x)/D on average over the noise."""
        return bits_per_dimension(self.log_density(x), prod(self.shape), levels=self.levels)

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        """Mean bits a dimension; a NaN stays one, for the run to find."""
        return -self.log_prob(x).mean() / (prod(self.shape) * log(2))

    def encode(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, "batch latent"]:
        """The latents of the middles of the cells."""
        return self.flow.transform.inverse(dequantise(x, torch.full_like(x, 0.5), levels=self.levels))[0]

    def decode(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch *event"]:
        """The pictures in whose cells the latents land; what falls beside the cube goes to its nearest cell."""
        cube, _ = self.flow.transform(z)
        return (cube * self.levels).floor().clamp(0, self.levels - 1) / (self.levels - 1)

    @torch.no_grad()
    def sample(self, count: int, *, temperature: float = 1.0) -> Float[Tensor, "{count} *event"]:
        """New pictures from z ~ N(0, τ² I): below 1 the typical, at 1 the flow's own law."""
        if not temperature > 0:
            raise ValueError(f"the temperature must be positive; got temperature={temperature}")
        z: Tensor = self.flow.base().sample((count,))
        return self.decode(temperature * z)


def _require_levels(levels: int) -> None:
    if levels < 2:
        raise ValueError(f"pixels need at least two grey values; got levels={levels}")
