"""Distributions over actions, categorical and diagonal Gaussian, for many states (book sec. 18.4)."""

from math import log, pi
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor


class Categorical(NamedTuple):
    """One of finitely many actions: π(a|s) = softmax(logits)_a.

    >>> Categorical(torch.tensor([[0.0, 2.0]])).mode().tolist()
    [1]
    """

    logits: Float[Tensor, "*states actions"]

    def sample(self) -> Int[Tensor, "*states"]:
        """argmax_a (logits_a − log E_a) with E_a exponential, which has the distribution π (Gumbel-max trick)."""
        return (self.logits - torch.empty_like(self.logits).exponential_().log()).argmax(-1)

    def mode(self) -> Int[Tensor, "*states"]:
        """The most probable action."""
        return self.logits.argmax(-1)

    def log_prob(self, action: Int[Tensor, "*states"]) -> Float[Tensor, "*states"]:
        return self.logits.log_softmax(-1).gather(-1, action.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Float[Tensor, "*states"]:
        log_probs = self.logits.log_softmax(-1)
        return -(log_probs.exp() * log_probs).sum(-1)

    def kl(self, other: "Categorical") -> Float[Tensor, "*states"]:
        """KL(π ‖ π') in every state."""
        log_probs = self.logits.log_softmax(-1)
        return (log_probs.exp() * (log_probs - other.logits.log_softmax(-1))).sum(-1)


class DiagonalGaussian(NamedTuple):
    """Action vectors with independent Gaussian components: N(mean, diag e^{2 log_std}).

    >>> DiagonalGaussian(torch.tensor([[1.0, 2.0]]), torch.zeros(1, 2)).mode().tolist()
    [[1.0, 2.0]]
    """

    mean: Float[Tensor, "*states directions"]
    log_std: Float[Tensor, "*#states directions"]

    def sample(self) -> Float[Tensor, "*states directions"]:
        return self.mean + self.log_std.exp() * torch.randn_like(self.mean)

    def mode(self) -> Float[Tensor, "*states directions"]:
        """The most probable action, which is the mean."""
        return self.mean

    def log_prob(self, action: Float[Tensor, "*states directions"]) -> Float[Tensor, "*states"]:
        standardised = (action - self.mean) * (-self.log_std).exp()
        return -(standardised.square() / 2 + self.log_std + log(2 * pi) / 2).sum(-1)

    def entropy(self) -> Float[Tensor, "*states"]:
        return (self.log_std + (1 + log(2 * pi)) / 2).sum(-1).expand(self.mean.shape[:-1])

    def kl(self, other: "DiagonalGaussian") -> Float[Tensor, "*states"]:
        """KL(N ‖ N') in every state."""
        second_moment = (self.mean - other.mean).square() + (2 * self.log_std).exp()
        return (other.log_std - self.log_std + second_moment * (-2 * other.log_std).exp() / 2 - 0.5).sum(-1)


ActionDistribution: TypeAlias = Categorical | DiagonalGaussian
