"""Laws of actions: what a policy says in a state, to draw from, to score and to compare (book sec. 18.4)."""

from math import log, pi
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor


@runtime_checkable
class Law(Protocol):
    """π(·|s) for many states at once."""

    def draw(self) -> Shaped[Tensor, "*batch"]: ...

    def best(self) -> Shaped[Tensor, "*batch"]: ...

    def log_prob(self, action: Shaped[Tensor, "*batch"]) -> Float[Tensor, "*states"]: ...

    def entropy(self) -> Float[Tensor, "*states"]: ...


class Choice(NamedTuple):
    """One of finitely many actions: π(a|s) = softmax(logits)_a."""

    logits: Float[Tensor, "*states actions"]

    def draw(self) -> Int[Tensor, "*states"]:
        """argmax_a (logits_a − log E_a) with E_a exponential, which has the law π (Gumbel's trick)."""
        return (self.logits - torch.empty_like(self.logits).exponential_().log()).argmax(-1)

    def best(self) -> Int[Tensor, "*states"]:
        return self.logits.argmax(-1)

    def log_prob(self, action: Int[Tensor, "*states"]) -> Float[Tensor, "*states"]:
        return self.logits.log_softmax(-1).gather(-1, action.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Float[Tensor, "*states"]:
        logs = self.logits.log_softmax(-1)
        return -(logs.exp() * logs).sum(-1)

    def kl(self, other: "Choice") -> Float[Tensor, "*states"]:
        """KL(π ‖ π') in every state."""
        logs = self.logits.log_softmax(-1)
        return (logs.exp() * (logs - other.logits.log_softmax(-1))).sum(-1)


class Spread(NamedTuple):
    """A vector, normal around a mean with independent directions: N(mean, diag e^{2 log_std})."""

    mean: Float[Tensor, "*states directions"]
    log_std: Float[Tensor, "*#states directions"]

    def draw(self) -> Float[Tensor, "*states directions"]:
        return self.mean + self.log_std.exp() * torch.randn_like(self.mean)

    def best(self) -> Float[Tensor, "*states directions"]:
        return self.mean

    def log_prob(self, action: Float[Tensor, "*states directions"]) -> Float[Tensor, "*states"]:
        off = (action - self.mean) * (-self.log_std).exp()
        return -(off.square() / 2 + self.log_std + log(2 * pi) / 2).sum(-1)

    def entropy(self) -> Float[Tensor, "*states"]:
        return (self.log_std + (1 + log(2 * pi)) / 2).sum(-1).expand(self.mean.shape[:-1])

    def kl(self, other: "Spread") -> Float[Tensor, "*states"]:
        """KL(N ‖ N') in every state."""
        shift = (self.mean - other.mean).square() + (2 * self.log_std).exp()
        return (other.log_std - self.log_std + shift * (-2 * other.log_std).exp() / 2 - 0.5).sum(-1)


ActionLaw: TypeAlias = Choice | Spread
