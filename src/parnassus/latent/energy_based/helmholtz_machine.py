"""The Helmholtz machine, trained by the wake-sleep algorithm (book sec. 11.1)."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from parnassus.arrays import accepts_arrays
from parnassus.latent.energy_based.restricted_boltzmann_machine import check_binary
from parnassus.layers.dropout import all_masks

MAX_ENUMERATED_HIDDEN_UNITS = 16
"""The largest total number of hidden units whose states are enumerated."""


class HelmholtzMachine(nn.Module):
    """Two sigmoid belief networks over the same binary layers x = s₀, s₁, …, s_L (Dayan et al. 1995; book sec. 11.1).

        p(x, z) = p(s_L) ∏_l p(s_{l−1} | s_l),   p(s_L) from biases alone           top down, generative
        q(z | x) = ∏_l q(s_l | s_{l−1})                                             bottom up, recognition
        wake:   x from the data, z ~ q(z|x);   maximise log p(x, z) over the generative weights
        sleep:  (x, z) ~ p;                    maximise log q(z|x) over the recognition weights    (Hinton et al. 1995)

    The wake phase increases the evidence bound E_q[log p(x, z)] + H(q). The sleep phase decreases KL(p(z|x) ‖ q(z|x))
    over samples of the model; this is not the direction of KL in the bound, which may therefore decrease.

    >>> states = HelmholtzMachine((9, 4, 2)).sample_states(10)
    >>> [each.shape[1] for each in states]
    [9, 4, 2]
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        if len(sizes) < 2 or min(sizes) < 1:
            raise ValueError(
                f"sizes must hold one visible and at least one hidden layer, all positive; got sizes={sizes}"
            )
        self.sizes = tuple(sizes)
        self.top_bias = nn.Parameter(torch.zeros(sizes[-1]))
        self.up = nn.ModuleList(nn.Linear(below, above) for below, above in pairwise(sizes))
        self.down = nn.ModuleList(nn.Linear(above, below) for below, above in pairwise(sizes))

    def recognise(self, x: Float[Tensor, "*batch visible"]) -> list[Float[Tensor, "*batch _"]]:
        """States s₀ = x, s₁, …, s_L with hidden states sampled from q(z|x)."""
        states = [x]
        with torch.no_grad():
            for layer in self.up:
                states.append(layer(states[-1]).sigmoid().bernoulli())
        return states

    def sample_states(self, count: int) -> list[Float[Tensor, "count _"]]:
        """States s₀, …, s_L sampled from p(x, z), from the top layer down."""
        with torch.no_grad():
            states = [self.top_bias.sigmoid().expand(count, -1).bernoulli()]
            for layer in reversed(self.down):
                states.append(layer(states[-1]).sigmoid().bernoulli())
        return states[::-1]

    def log_joint(self, states: Sequence[Float[Tensor, "*batch _"]]) -> Float[Tensor, "*batch"]:
        """The joint log-probability log p(x, z) of the states of all layers."""
        total = bernoulli_log_prob(states[-1], self.top_bias)
        for layer, (below, above) in zip(self.down, pairwise(states), strict=True):
            total = total + bernoulli_log_prob(below, layer(above))
        return total

    def log_recognition(self, states: Sequence[Float[Tensor, "*batch _"]]) -> Float[Tensor, "*batch"]:
        """The log-probability log q(z|x) of the hidden states."""
        parts = [
            bernoulli_log_prob(above, layer(below))
            for layer, (below, above) in zip(self.up, pairwise(states), strict=True)
        ]
        return torch.stack(parts).sum(0)

    def wake_loss(self, x: Float[Tensor, "batch visible"]) -> Float[Tensor, ""]:
        """⟨−log p(x, z)⟩ with z ~ q(z|x) for data x; its gradient reaches the generative weights only."""
        return -self.log_joint(self.recognise(x)).mean()

    def sleep_loss(self, count: int) -> Float[Tensor, ""]:
        """⟨−log q(z|x)⟩ over samples of the model; its gradient reaches the recognition weights only."""
        return -self.log_recognition(self.sample_states(count)).mean()

    @accepts_arrays
    def loss(self, x: Float[Tensor, "batch visible"]) -> Float[Tensor, ""]:
        """The sum of both phases, with one model sample per example; the phases share no weights."""
        return self.wake_loss(x) + self.sleep_loss(len(x))

    def log_weights(self, x: Float[Tensor, "batch visible"], samples: int) -> Float[Tensor, "samples batch"]:
        """Samples of log p(x, z) − log q(z|x), z ~ q(z|x), for `importance_likelihood`; their mean is the bound."""
        states = self.recognise(x.expand(samples, *x.shape))
        return self.log_joint(states) - self.log_recognition(states)

    @accepts_arrays
    def log_prob(self, x: Float[Tensor, "batch visible"]) -> Float[Tensor, " batch"]:
        """The exact evidence log p(x) = log Σ_z p(x, z), over all states of the hidden units."""
        check_binary(x)
        return self._over_all_states(x, self.log_joint).logsumexp(0)

    def exact_bound(self, x: Float[Tensor, "batch visible"]) -> Float[Tensor, " batch"]:
        """Σ_z q(z|x) (log p(x, z) − log q(z|x)), exact: log p(x) − KL(q(z|x) ‖ p(z|x)) (book eq. 6.12)."""
        log_q = self._over_all_states(x, self.log_recognition)
        return (log_q.exp() * (self._over_all_states(x, self.log_joint) - log_q)).sum(0)

    def sample(self, count: int) -> Float[Tensor, "count visible"]:
        """Exact samples of the visible layer by ancestral sampling."""
        return self.sample_states(count)[0]

    def _over_all_states(self, x: Tensor, log_density: Callable[[Sequence[Tensor]], Tensor]) -> Tensor:
        """The log-density at every hidden state (states, batch)."""
        hidden = sum(self.sizes[1:])
        if hidden > MAX_ENUMERATED_HIDDEN_UNITS:
            raise ValueError(
                f"states are enumerated for at most {MAX_ENUMERATED_HIDDEN_UNITS} hidden units; got {hidden}: "
                "estimate log p(x) with `importance_likelihood`"
            )
        z = all_masks(hidden, device=x.device).to(x)[:, None].expand(-1, len(x), -1)
        return log_density([x.expand(len(z), *x.shape), *z.split(self.sizes[1:], -1)])


def bernoulli_log_prob(
    states: Float[Tensor, "*batch units"], logits: Float[Tensor, "*#batch units"]
) -> Float[Tensor, "*batch"]:
    """Σ_i log P(s_i) of independent binary units, P(s_i = 1) = σ(logit_i)."""
    return (states * logsigmoid(logits) + (1 - states) * logsigmoid(-logits)).sum(-1)
