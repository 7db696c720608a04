"""Exact denoisers E[ε | x_t] for Gaussian mixtures, for tests of samplers without training.

For x_0 ~ Σ_k w_k N(m_k, s_k² I) every noised marginal is a mixture too, and E[ε | x_t] has a closed form.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.chain.forward_process import extract
from parnassus.diffusion.chain.predictions import noise_from_score
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture


class MixtureDenoiser:
    """The exact denoiser for a mixture of isotropic Gaussians, with one class per component.

        q(x_t)           = Σ_k w_k N(√ᾱ_t m_k, v_k I),   v_k = ᾱ_t s_k² + 1 − ᾱ_t
        E[ε | x_t]       = −√(1 − ᾱ_t) ∇ log q(x_t)
        E[ε | x_t, y=k]  = −√(1 − ᾱ_t) ∇ log N(x_t; √ᾱ_t m_k, v_k I)

    Calls with (x, t) are unconditional, calls with (x, t, label) conditional.
    """

    def __init__(
        self,
        schedule: Schedule,
        means: Float[Tensor, "components d"],
        stds: Float[Tensor, " components"],
        weights: Float[Tensor, " components"] | None = None,
    ) -> None:
        self.schedule = schedule
        self.mixture = IsotropicMixture.from_components(means, stds, weights)

    def __call__(
        self,
        x: Float[Tensor, "batch d"],
        t: Int[Tensor, " batch"],
        label: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch d"]:
        return noise_from_score(self.schedule, t, self.score(x, t, label))

    def score(
        self,
        x: Float[Tensor, "batch d"],
        t: Int[Tensor, " batch"],
        label: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch d"]:
        """∇ log q(x_t), or ∇ log q(x_t | y) with a label."""
        if label is None:
            return self.mixture.score(x, *self._level(x, t))
        return self.mixture.scores(x, *self._level(x, t))[torch.arange(len(x)), label]

    def log_prob(self, x: Float[Tensor, "batch d"], t: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """The log-density of the noised data, log q(x_t)."""
        return self.mixture.log_prob(x, *self._level(x, t))

    def log_posterior(self, x: Float[Tensor, "batch d"], t: Int[Tensor, " batch"]) -> Float[Tensor, "batch components"]:
        """The exact classifier at every noise level, log p(y | x_t)."""
        return self.mixture.log_posterior(x, *self._level(x, t))

    def sample(self, count: int) -> tuple[Float[Tensor, "count d"], Int[Tensor, " count"]]:
        """Clean points x_0 and their components."""
        return self.mixture.sample(count)

    def _level(self, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """√ᾱ_t and √(1 − ᾱ_t) as columns."""
        alpha_bar = self.schedule.alpha_bar
        return extract(alpha_bar.sqrt(), t, x), extract((1 - alpha_bar).sqrt(), t, x)


def gaussian_denoiser(schedule: Schedule, mean: Float[Tensor, " d"], std: float) -> MixtureDenoiser:
    """The exact denoiser for x_0 ~ N(mean, std² I): √(1 − ᾱ_t) (x_t − √ᾱ_t mean) / (ᾱ_t std² + 1 − ᾱ_t)."""
    return MixtureDenoiser(schedule, mean[None], mean.new_full((1,), std))


def gaussian_reverse_variance(schedule: Schedule, std: float) -> Float[Tensor, " steps"]:
    """Var[x_{t−1} | x_t] for x_0 ~ N(mean, std² I): the exact reverse kernel, unlike Σ_q(t).

    (1 − α_t) v_{t−1} / v_t,   v_t = ᾱ_t std² + 1 − ᾱ_t
    """
    after = schedule.alpha_bar * std**2 + 1 - schedule.alpha_bar
    before = schedule.alpha_bar_before * std**2 + 1 - schedule.alpha_bar_before
    return (1 - schedule.alpha) * before / after
