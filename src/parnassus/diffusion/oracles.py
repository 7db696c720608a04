"""Exact denoisers for data whose density is known, so that a sampler can be judged without training.

For x_0 ~ Σ_k w_k N(m_k, s_k² I) every noised marginal is again a mixture, and E[ε | x_t] has a closed form.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.process import noise_from_score, spread
from parnassus.diffusion.schedules import Schedule


class MixtureOracle:
    """The exact ε for a mixture of round Gaussians, one class a component.

        q(x_t)           = Σ_k w_k N(√ᾱ_t m_k, v_k I),   v_k = ᾱ_t s_k² + 1 − ᾱ_t
        E[ε | x_t]       = −√(1 − ᾱ_t) ∇ log q(x_t)
        E[ε | x_t, y=k]  = −√(1 − ᾱ_t) ∇ log N(x_t; √ᾱ_t m_k, v_k I)

    Called with (x, t) it knows no class, with (x, t, label) it does.
    """

    def __init__(
        self,
        schedule: Schedule,
        means: Float[Tensor, "components d"],
        stds: Float[Tensor, " components"],
        weights: Float[Tensor, " components"] | None = None,
    ) -> None:
        self.schedule = schedule
        self.means = means
        self.stds = stds
        shares = torch.ones_like(stds) if weights is None else weights
        self.weights = shares / shares.sum()

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
        shift, variance = self._shift(x, t)
        scores = shift / variance[..., None]
        if label is not None:
            return scores[torch.arange(len(x)), label]
        return (self.log_posterior(x, t).exp()[..., None] * scores).sum(1)

    def log_prob(self, x: Float[Tensor, "batch d"], t: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        """The log-density of the noised data, log q(x_t)."""
        return self._log_joint(x, t).logsumexp(1)

    def log_posterior(self, x: Float[Tensor, "batch d"], t: Int[Tensor, " batch"]) -> Float[Tensor, "batch components"]:
        """The exact classifier at every noise level, log p(y | x_t)."""
        return self._log_joint(x, t).log_softmax(1)

    def draw(self, count: int) -> tuple[Float[Tensor, "count d"], Int[Tensor, " count"]]:
        """Clean points x_0 and their components."""
        label = torch.multinomial(self.weights, count, replacement=True)
        noise = torch.randn(count, self.means.shape[1], dtype=self.means.dtype)
        return self.means[label] + self.stds[label, None] * noise, label

    def _shift(self, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """√ᾱ_t m_k − x_t and v_k for every example and component."""
        alpha_bar = spread(self.schedule.alpha_bar, t, x)
        shift = alpha_bar.sqrt()[..., None] * self.means - x[:, None]
        return shift, alpha_bar * self.stds.square() + spread(1 - self.schedule.alpha_bar, t, x)

    def _log_joint(self, x: Tensor, t: Tensor) -> Tensor:
        shift, variance = self._shift(x, t)
        d = x.shape[1]
        return self.weights.log() - 0.5 * (shift.square().sum(-1) / variance + d * (2 * torch.pi * variance).log())


def gaussian_oracle(schedule: Schedule, mean: Float[Tensor, " d"], std: float) -> MixtureOracle:
    """The exact ε for x_0 ~ N(mean, std² I): √(1 − ᾱ_t) (x_t − √ᾱ_t mean) / (ᾱ_t std² + 1 − ᾱ_t)."""
    return MixtureOracle(schedule, mean[None], mean.new_full((1,), std))


def gaussian_reverse_variance(schedule: Schedule, std: float) -> Float[Tensor, " steps"]:
    """Var[x_{t−1} | x_t] for x_0 ~ N(mean, std² I): the exact reverse kernel, which the posterior's Σ_q(t) is not.

    (1 − α_t) v_{t−1} / v_t,   v_t = ᾱ_t std² + 1 − ᾱ_t
    """
    after = schedule.alpha_bar * std**2 + 1 - schedule.alpha_bar
    before = schedule.alpha_bar_before * std**2 + 1 - schedule.alpha_bar_before
    return (1 - schedule.alpha) * before / after
