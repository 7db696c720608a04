"""A hierarchy of codes: coarse causes above fine ones, read upwards and drawn downwards (book sec. 6.3)."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution

from parnassus.latent.decoders import independent_normal
from parnassus.latent.vae import reparametrise
from parnassus.probability import diagonal_gaussian_kl


class Moments(NamedTuple):
    """The mean and log-variance of a normal law of each row."""

    mean: Float[Tensor, "batch latent"]
    log_variance: Float[Tensor, "batch latent"]


class Step(NamedTuple):
    """What happens at one level on the way down: what was expected, what is believed, what was drawn."""

    prior: Moments
    posterior: Moments
    z: Float[Tensor, "batch latent"]


class LadderTerms(NamedTuple):
    """The costs of describing each row of x level by level (book eqs. 6.19-6.20)."""

    distortion: Float[Tensor, " batch"]
    rates: Float[Tensor, "levels batch"]
    """KL(q(z_l | x, z_{l+1}) ‖ p(z_l | z_{l+1})), the lowest level first."""

    @property
    def negative_elbo(self) -> Float[Tensor, " batch"]:
        return self.distortion + self.rates.sum(0)


@runtime_checkable
class Belief(Protocol):
    """What to believe of z_l, from what the image says and what the level above expects."""

    def __call__(self, reading: Moments, prior: Moments, /) -> Moments: ...


def precision_weighted(reading: Moments, prior: Moments) -> Moments:
    """N(μ̂, σ̂²) · N(μ_p, σ_p²), normalised: each counts with its precision (Sønderby et al. 2016).

        1/σ² = 1/σ̂² + 1/σ_p²,   μ = σ² (μ̂/σ̂² + μ_p/σ_p²)

    It is the exact posterior where the image says N(μ̂, σ̂²) of z_l and the level above N(μ_p, σ_p²).
    """
    log_precision = torch.logaddexp(-reading.log_variance, -prior.log_variance)
    share = (-reading.log_variance - log_precision).exp()
    return Moments(share * reading.mean + (1 - share) * prior.mean, -log_precision)


def reading_alone(reading: Moments, prior: Moments) -> Moments:  # noqa: ARG001 - a belief that does not listen
    """The image alone: the plain hierarchical VAE, whose upper levels tend to fall silent."""
    return reading


class LadderVAE(nn.Module):
    """z_L → … → z_1 → x, with one normal law a level (Sønderby et al. 2016).

        p(x, z) = p(x|z_1) Π_{l<L} p(z_l|z_{l+1}) p(z_L),   p(z_L) = N(0, I)
        q(z|x) = q(z_L|x) Π_{l<L} q(z_l|x, z_{l+1})
        −ELBO = −E_q log p(x|z_1) + Σ_l E_q KL(q(z_l|x, z_{l+1}) ‖ p(z_l|z_{l+1}))

    Lists begin at the lowest level. `climbs[l]` turns the features of the level below (x at first) into those of its
    own, `readers[l]` turns these into 2·size numbers, `expectations[l]` turns z_{l+1} into 2·size numbers for z_l, so
    there is one fewer of them. `belief` joins the two.
    """

    def __init__(
        self,
        climbs: Sequence[nn.Module],
        readers: Sequence[nn.Module],
        expectations: Sequence[nn.Module],
        decoder: nn.Module,
        top: int,
        *,
        belief: Belief = precision_weighted,
    ) -> None:
        super().__init__()
        if not len(climbs) == len(readers) == len(expectations) + 1:
            raise ValueError(
                "every level has a climb and a reader, every level but the highest an expectation; "
                f"got {len(climbs)}, {len(readers)} and {len(expectations)}"
            )
        if top < 1:
            raise ValueError(f"a code needs at least one number; got top={top}")
        self.climbs = nn.ModuleList(climbs)
        self.readers = nn.ModuleList(readers)
        self.expectations = nn.ModuleList(expectations)
        self.decoder = decoder
        self.top = top
        self.belief = belief

    def readings(self, x: Float[Tensor, "batch *event"]) -> list[Moments]:
        """What the image says of every level, the lowest first."""
        found, features = [], x
        for climb, reader in zip(self.climbs, self.readers, strict=True):
            features = climb(features)
            found.append(Moments(*reader(features).chunk(2, dim=-1)))
        return found

    def way_down(self, readings: Sequence[Moments]) -> list[Step]:
        """Codes drawn from q(z|x) from the highest level down; the lowest comes first in the list."""
        steps: list[Step] = []
        for level in reversed(range(len(readings))):
            prior = self._prior(level, steps[0].z) if steps else _standard_like(readings[level])
            posterior = self.belief(readings[level], prior)
            steps.insert(0, Step(prior, posterior, reparametrise(*posterior)))
        return steps

    def terms(self, x: Float[Tensor, "batch *event"]) -> LadderTerms:
        """Distortion and the rate of every level by one way down; each rate in closed form given the code above."""
        steps = self.way_down(self.readings(x))
        rates = [diagonal_gaussian_kl(q.mean, q.log_variance.exp(), p.mean, p.log_variance.exp()) for p, q, _ in steps]
        decoded: Distribution = self.decoder(steps[0].z)
        return LadderTerms(-decoded.log_prob(x), torch.stack(rates))

    def loss(self, x: Float[Tensor, "batch *event"], beta: Float[Tensor, ""] | float = 1.0) -> Float[Tensor, ""]:
        """−ELBO, or with the rates at a weight β: below 1 while they warm up (Sønderby et al. 2016)."""
        terms = self.terms(x)
        return (terms.distortion + beta * terms.rates.sum(0)).mean()

    def log_weights(self, x: Float[Tensor, "batch *event"], samples: int) -> Float[Tensor, "samples batch"]:
        """The logarithms of p(x, z) / q(z|x) for ways down z ~ q(z|x); see `parnassus.latent.likelihood`."""
        readings = [Moments(*(part.repeat(samples, 1) for part in level)) for level in self.readings(x)]
        steps = self.way_down(readings)
        decoded: Distribution = self.decoder(steps[0].z)
        log_weights: Tensor = decoded.log_prob(x.repeat(samples, *(1 for _ in x.shape[1:])))
        for prior, posterior, z in steps:
            log_weights = log_weights + _law(prior).log_prob(z) - _law(posterior).log_prob(z)
        return log_weights.view(samples, len(x))

    @torch.no_grad()
    def reconstruct(
        self, x: Float[Tensor, "batch *event"], *, kept: int | None = None
    ) -> Float[Tensor, "batch *event"]:
        """The image decoded from its highest `kept` levels, all unless told; the others follow from those above.

        Every level is put at the middle of its law: what a few coarse numbers already say of the image.
        """
        readings = self.readings(x)
        z: Tensor | None = None
        for level in reversed(range(len(readings))):
            prior = _standard_like(readings[level]) if z is None else self._prior(level, z)
            heard = kept is None or len(readings) - level <= kept
            z = self.belief(readings[level], prior).mean if heard else prior.mean
        decoded: Distribution = self.decoder(z)
        return decoded.mean

    @torch.no_grad()
    def sample(self, count: int) -> Float[Tensor, "count *event"]:
        """Means of p(x|z_1) for codes drawn from the top down."""
        z = torch.randn(count, self.top, device=next(self.parameters()).device)
        for level in reversed(range(len(self.expectations))):
            z = reparametrise(*self._prior(level, z))
        decoded: Distribution = self.decoder(z)
        return decoded.mean

    def _prior(self, level: int, above: Tensor) -> Moments:
        """The law p(z_l|z_{l+1}) of each row."""
        return Moments(*self.expectations[level](above).chunk(2, dim=-1))


def _standard_like(reading: Moments) -> Moments:
    return Moments(torch.zeros_like(reading.mean), torch.zeros_like(reading.mean))


def _law(moments: Moments) -> Distribution:
    return independent_normal(moments.mean, (moments.log_variance / 2).exp())
