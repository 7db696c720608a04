"""Hierarchical VAEs: the ladder VAE, with codes on several levels (book sec. 6.3)."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_positive
from parnassus.latent.variational.reparametrisation import GaussianParameters, independent_normal, reparametrise
from parnassus.probability import diagonal_gaussian_kl


class LevelSample(NamedTuple):
    """Prior, approximate posterior and sample of one level, given the level above."""

    prior: GaussianParameters
    posterior: GaussianParameters
    z: Float[Tensor, "batch latent"]


class LadderVAETerms(NamedTuple):
    """The terms of the negative ELBO for each row of x, with one rate per level (book eqs. 6.19-6.20).

    >>> LadderVAETerms(torch.tensor([3.0]), torch.tensor([[1.0], [0.5]])).negative_elbo.tolist()
    [4.5]
    """

    distortion: Float[Tensor, " batch"]
    rates: Float[Tensor, "levels batch"]
    """KL(q(z_l | x, z_{l+1}) ‖ p(z_l | z_{l+1})), the lowest level first."""

    @property
    def negative_elbo(self) -> Float[Tensor, " batch"]:
        return self.distortion + self.rates.sum(0)


@runtime_checkable
class PosteriorRule(Protocol):
    """The approximate posterior of z_l from the encoder's output and the prior given the level above."""

    def __call__(self, encoded: GaussianParameters, prior: GaussianParameters, /) -> GaussianParameters: ...


def precision_weighted_posterior(encoded: GaussianParameters, prior: GaussianParameters) -> GaussianParameters:
    """N(μ̂, σ̂²) · N(μ_p, σ_p²), normalised: a precision-weighted mean (Sønderby et al. 2016).

        1/σ² = 1/σ̂² + 1/σ_p²,   μ = σ² (μ̂/σ̂² + μ_p/σ_p²)

    It is the exact posterior for a Gaussian likelihood N(μ̂, σ̂²) of z_l and the prior N(μ_p, σ_p²).
    """
    log_precision = torch.logaddexp(-encoded.log_variance, -prior.log_variance)
    fraction = (-encoded.log_variance - log_precision).exp()
    return GaussianParameters(fraction * encoded.mean + (1 - fraction) * prior.mean, -log_precision)


def encoder_only_posterior(encoded: GaussianParameters, prior: GaussianParameters) -> GaussianParameters:  # noqa: ARG001 - a PosteriorRule
    """The encoder's output, as in a plain hierarchical VAE, whose upper levels tend to collapse."""
    return encoded


class LadderVAE(nn.Module):
    """z_L → … → z_1 → x, with one Gaussian code per level (Sønderby et al. 2016).

        p(x, z) = p(x|z_1) Π_{l<L} p(z_l|z_{l+1}) p(z_L),   p(z_L) = N(0, I)
        q(z|x) = q(z_L|x) Π_{l<L} q(z_l|x, z_{l+1})
        −ELBO = −E_q log p(x|z_1) + Σ_l E_q KL(q(z_l|x, z_{l+1}) ‖ p(z_l|z_{l+1}))

    Lists begin at the lowest level. `bottom_up[l]` maps the features of the level below (x at first) to those of
    level l, `encoder_heads[l]` maps these to 2·size values, `prior_heads[l]` maps z_{l+1} to 2·size values for z_l, so
    there is one fewer of them. `posterior_rule` combines the two. `top_dim` is the size of z_L.

    >>> heads = [nn.Linear(8, 2 * 4), nn.Linear(8, 2 * 2)]
    >>> decoder = BernoulliDecoder(nn.Linear(4, 5))
    >>> model = LadderVAE([nn.Linear(5, 8), nn.Linear(8, 8)], heads, [nn.Linear(2, 2 * 4)], decoder, top_dim=2)
    >>> model.sample(10).shape
    torch.Size([10, 5])
    """

    def __init__(
        self,
        bottom_up: Sequence[nn.Module],
        encoder_heads: Sequence[nn.Module],
        prior_heads: Sequence[nn.Module],
        decoder: nn.Module,
        top_dim: int,
        *,
        posterior_rule: PosteriorRule = precision_weighted_posterior,
    ) -> None:
        super().__init__()
        if not len(bottom_up) == len(encoder_heads) == len(prior_heads) + 1:
            raise ValueError(
                "there must be as many encoder_heads as bottom_up networks and one prior head fewer; "
                f"got {len(bottom_up)} bottom_up, {len(encoder_heads)} encoder_heads, {len(prior_heads)} prior_heads"
            )
        check_positive(top_dim=top_dim)
        self.bottom_up = nn.ModuleList(bottom_up)
        self.encoder_heads = nn.ModuleList(encoder_heads)
        self.prior_heads = nn.ModuleList(prior_heads)
        self.decoder = decoder
        self.top_dim = top_dim
        self.posterior_rule = posterior_rule

    def encode_levels(self, x: Float[Tensor, "batch *event"]) -> list[GaussianParameters]:
        """The encoder's output for every level, the lowest first."""
        encoded, features = [], x
        for network, head in zip(self.bottom_up, self.encoder_heads, strict=True):
            features = network(features)
            encoded.append(GaussianParameters(*head(features).chunk(2, dim=-1)))
        return encoded

    def sample_posterior(self, encoded: Sequence[GaussianParameters]) -> list[LevelSample]:
        """Codes sampled from q(z|x), from the highest level down; the lowest comes first in the list."""
        levels: list[LevelSample] = []
        for level in reversed(range(len(encoded))):
            prior = self._prior(level, levels[0].z) if levels else _standard_normal_like(encoded[level])
            posterior = self.posterior_rule(encoded[level], prior)
            levels.insert(0, LevelSample(prior, posterior, reparametrise(*posterior)))
        return levels

    def terms(self, x: Float[Tensor, "batch *event"]) -> LadderVAETerms:
        """Distortion and rates from one sample of the codes; each rate in closed form given the code above."""
        levels = self.sample_posterior(self.encode_levels(x))
        rates = [diagonal_gaussian_kl(q.mean, q.log_variance.exp(), p.mean, p.log_variance.exp()) for p, q, _ in levels]
        decoded: Distribution = self.decoder(levels[0].z)
        return LadderVAETerms(-decoded.log_prob(x), torch.stack(rates))

    @accepts_arrays
    def loss(self, x: Float[Tensor, "batch *event"], beta: Float[Tensor, ""] | float = 1.0) -> Float[Tensor, ""]:
        """−ELBO with the rates weighted by β, which is below 1 during warm-up (Sønderby et al. 2016)."""
        terms = self.terms(x)
        return (terms.distortion + beta * terms.rates.sum(0)).mean()

    def log_weights(self, x: Float[Tensor, "batch *event"], samples: int) -> Float[Tensor, "samples batch"]:
        """The logarithms of p(x, z) / q(z|x) for codes z ~ q(z|x) of all levels, for `importance_likelihood`."""
        encoded = [GaussianParameters(*(part.repeat(samples, 1) for part in level)) for level in self.encode_levels(x)]
        levels = self.sample_posterior(encoded)
        decoded: Distribution = self.decoder(levels[0].z)
        log_weights: Tensor = decoded.log_prob(x.repeat(samples, *(1 for _ in x.shape[1:])))
        for prior, posterior, z in levels:
            log_weights = log_weights + _distribution(prior).log_prob(z) - _distribution(posterior).log_prob(z)
        return log_weights.view(samples, len(x))

    @torch.no_grad()
    @accepts_arrays
    def reconstruct(
        self, x: Float[Tensor, "batch *event"], *, num_levels: int | None = None
    ) -> Float[Tensor, "batch *event"]:
        """x̂ decoded from the posterior means of the highest `num_levels` levels, by default all.

        Lower levels are set to the mean of their prior.
        """
        encoded = self.encode_levels(x)
        z: Tensor | None = None
        for level in reversed(range(len(encoded))):
            prior = _standard_normal_like(encoded[level]) if z is None else self._prior(level, z)
            is_encoded = num_levels is None or len(encoded) - level <= num_levels
            z = self.posterior_rule(encoded[level], prior).mean if is_encoded else prior.mean
        decoded: Distribution = self.decoder(z)
        return decoded.mean

    @torch.no_grad()
    def sample(self, count: int) -> Float[Tensor, "count *event"]:
        """Means of p(x|z_1) for codes sampled from the prior, from the top down."""
        weight = next(self.parameters())
        z = torch.randn(count, self.top_dim, dtype=weight.dtype, device=weight.device)
        for level in reversed(range(len(self.prior_heads))):
            z = reparametrise(*self._prior(level, z))
        decoded: Distribution = self.decoder(z)
        return decoded.mean

    def _prior(self, level: int, above: Tensor) -> GaussianParameters:
        """p(z_l|z_{l+1}) for each row."""
        return GaussianParameters(*self.prior_heads[level](above).chunk(2, dim=-1))


def _standard_normal_like(parameters: GaussianParameters) -> GaussianParameters:
    return GaussianParameters(torch.zeros_like(parameters.mean), torch.zeros_like(parameters.mean))


def _distribution(parameters: GaussianParameters) -> Distribution:
    return independent_normal(parameters.mean, (parameters.log_variance / 2).exp())
