"""Mixtures of isotropic Gaussians under noise: density, score and posterior in closed form."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.diffusion.scores.score_matching import NoiseConditionalScore


@dataclass(frozen=True, eq=False)
class IsotropicMixture:
    """x_0 ~ Σ_k w_k N(m_k, s_k² I), and the distribution of a x_0 + b ε for any scale a and noise b.

        q(x) = Σ_k w_k N(x; a m_k, v_k I),   v_k = a² s_k² + b²
        ∇ log q(x) = Σ_k P(k | x) (a m_k − x) / v_k

    a and b are floats or columns with one value per example. Weights are positive and are normalised.
    """

    means: Float[Tensor, "components d"]
    stds: Float[Tensor, " components"]
    weights: Float[Tensor, " components"]

    @staticmethod
    def from_components(
        means: Float[Tensor, "components d"],
        stds: Float[Tensor, " components"],
        weights: Float[Tensor, " components"] | None = None,
    ) -> "IsotropicMixture":
        """The mixture with these components; equal weights by default."""
        given_weights = torch.ones_like(stds) if weights is None else weights
        if len(means) != len(stds) or len(stds) != len(given_weights):
            raise ValueError(
                f"means, stds and weights must have equal lengths; got {len(means)}, {len(stds)}, {len(given_weights)}"
            )
        if not bool((stds >= 0).all()) or not bool((given_weights > 0).all()):
            raise ValueError(f"stds must be ≥ 0 and weights > 0; got {stds.tolist()} and {given_weights.tolist()}")
        return IsotropicMixture(means, stds, given_weights / given_weights.sum())

    def log_joint(
        self, x: Float[Tensor, "batch d"], scale: float | Tensor = 1.0, noise: float | Tensor = 0.0
    ) -> Float[Tensor, "batch components"]:
        """The logarithm of w_k N(x; a m_k, v_k I)."""
        shift, variance = self._shift(x, scale, noise)
        d = x.shape[1]
        return self.weights.log() - 0.5 * (shift.square().sum(-1) / variance + d * (2 * torch.pi * variance).log())

    def log_prob(
        self, x: Float[Tensor, "batch d"], scale: float | Tensor = 1.0, noise: float | Tensor = 0.0
    ) -> Float[Tensor, " batch"]:
        """The logarithm of q(x)."""
        return self.log_joint(x, scale, noise).logsumexp(1)

    def log_posterior(
        self, x: Float[Tensor, "batch d"], scale: float | Tensor = 1.0, noise: float | Tensor = 0.0
    ) -> Float[Tensor, "batch components"]:
        """Log P(k | x), the exact classifier at this noise level."""
        return self.log_joint(x, scale, noise).log_softmax(1)

    def scores(
        self, x: Float[Tensor, "batch d"], scale: float | Tensor = 1.0, noise: float | Tensor = 0.0
    ) -> Float[Tensor, "batch components d"]:
        """∇ log N(x; a m_k, v_k I), the score of each component."""
        shift, variance = self._shift(x, scale, noise)
        return shift / variance[..., None]

    def score(
        self, x: Float[Tensor, "batch d"], scale: float | Tensor = 1.0, noise: float | Tensor = 0.0
    ) -> Float[Tensor, "batch d"]:
        """∇ log q(x)."""
        posterior = self.log_posterior(x, scale, noise).exp()
        return (posterior[..., None] * self.scores(x, scale, noise)).sum(1)

    def noise_conditional_score(self, levels: Float[Tensor, " levels"]) -> NoiseConditionalScore:
        """(x, t) ↦ ∇ log q_t(x) of x_0 + σ_t ε, for indices t of the noise levels."""
        return lambda x, t: self.score(x, 1.0, levels.to(x)[t][:, None])

    def sample(self, count: int) -> tuple[Float[Tensor, "count d"], Int[Tensor, " count"]]:
        """Samples x_0 and the indices of their components."""
        label = torch.multinomial(self.weights, count, replacement=True)
        return self.means[label] + self.stds[label, None] * torch.randn_like(self.means[label]), label

    def _shift(self, x: Tensor, scale: float | Tensor, noise: float | Tensor) -> tuple[Tensor, Tensor]:
        """Vectors a m_k − x and variances v_k, for every example and component."""
        a, b = (torch.as_tensor(value, dtype=x.dtype, device=x.device) for value in (scale, noise))
        variance = (a * self.stds).square() + b.square()
        return a[..., None] * self.means - x[:, None], variance.expand(len(x), len(self.stds))


def upper_mode_fraction(x: Float[Tensor, "count d"]) -> float:
    """The fraction of points with a positive sum: of two modes at ±m, those on the side of the positive one."""
    return float((x.sum(1) > 0).double().mean())
