"""Restricted Boltzmann machines (RBM), trained by contrastive divergence (book sec. 11.1)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_positive
from parnassus.layers.dropout import all_masks

MAX_ENUMERATED_UNITS = 20
"""The largest layer whose states are enumerated: a million of them."""
STATES_PER_CHUNK = 1 << 14
"""States per matrix product."""


class RBM(nn.Module):
    """Binary visible units v and hidden units h (Smolensky 1986; Hinton 2002; book sec. 11.1).

        E(v, h) = −b·v − c·h − hᵀ W v,   p(v, h) = exp(−E(v, h)) / Z                  (book eq. 6.9, β = 1)
        F(v) = −log Σ_h exp(−E(v, h)) = −b·v − Σ_j softplus(c_j + W_j v)
        ∂ log p(v)/∂θ = −∂F(v)/∂θ + ⟨∂F/∂θ⟩_model

    `negative_sampler` draws the states of the second term: `ContrastiveDivergence(1)` by default, or
    `PersistentContrastiveDivergence`.

    >>> rbm = RBM(visible=6, hidden=3)
    >>> rbm.gibbs(torch.zeros(4, 6), steps=1).shape
    torch.Size([4, 6])
    """

    visible_bias: nn.Parameter
    hidden_bias: nn.Parameter

    def __init__(self, visible: int, hidden: int, *, negative_sampler: nn.Module | None = None) -> None:
        super().__init__()
        if visible < 1 or hidden < 1:
            raise ValueError(f"visible and hidden must be positive; got visible={visible}, hidden={hidden}")
        self.weight = nn.Parameter(0.1 * torch.randn(hidden, visible) / visible**0.5)
        self.visible_bias = nn.Parameter(torch.zeros(visible))
        self.hidden_bias = nn.Parameter(torch.zeros(hidden))
        self.negative_sampler = ContrastiveDivergence(1) if negative_sampler is None else negative_sampler

    def energy(self, v: Float[Tensor, "*batch visible"], h: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch"]:
        """E(v, h) = −b·v − c·h − hᵀ W v."""
        return -(v @ self.visible_bias) - h @ self.hidden_bias - ((v @ self.weight.mT) * h).sum(-1)

    def free_energy(self, v: Float[Tensor, "*batch visible"]) -> Float[Tensor, "*batch"]:
        """F(v) = −b·v − Σ_j softplus(c_j + W_j v): the energy with h marginalised."""
        return -(v @ self.visible_bias) - softplus(self.hidden_logits(v)).sum(-1)

    def hidden_logits(self, v: Float[Tensor, "*batch visible"]) -> Float[Tensor, "*batch hidden"]:
        """W v + c, the logits of p(h = 1 | v)."""
        return v @ self.weight.mT + self.hidden_bias

    def visible_logits(self, h: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch visible"]:
        """Wᵀ h + b, the logits of p(v = 1 | h)."""
        return h @ self.weight + self.visible_bias

    @torch.no_grad()
    def gibbs(self, v: Float[Tensor, "batch visible"], steps: int) -> Float[Tensor, "batch visible"]:
        """Block Gibbs sampling: h given v, then v given h, `steps` times."""
        for _ in range(steps):
            h = self.hidden_logits(v).sigmoid().bernoulli()
            v = self.visible_logits(h).sigmoid().bernoulli()
        return v

    @accepts_arrays
    def loss(self, x: Float[Tensor, "batch visible"]) -> Float[Tensor, ""]:
        """⟨F⟩_data − ⟨F⟩_negatives: its gradient estimates that of −log p; its value is not an estimate of −log p.

        With negatives sampled from the model the gradient would be unbiased; short chains bias it. Values between
        0 and 1 are taken as probabilities of a 1.
        """
        negatives: Tensor = self.negative_sampler(self, x)
        return self.free_energy(x).mean() - self.free_energy(negatives).mean()

    def log_partition(self) -> Float[Tensor, ""]:
        """The exact log Z, enumerating the states of the smaller layer and summing over the larger in closed form.

        log Z = log Σ_h exp(c·h + Σ_i softplus(b_i + (Wᵀh)_i)),   or with the layers exchanged
        """
        hidden, visible = self.weight.shape
        if hidden <= visible:
            parts = [self.hidden_log_weight(h).logsumexp(0) for h in self._states(hidden)]
        else:
            parts = [(-self.free_energy(v)).logsumexp(0) for v in self._states(visible)]
        return torch.stack(parts).logsumexp(0)

    def hidden_log_weight(self, h: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch"]:
        """Minus the free energy of h, c·h + Σ_i softplus(b_i + (Wᵀh)_i) = log p(h) + log Z."""
        return h @ self.hidden_bias + softplus(self.visible_logits(h)).sum(-1)

    @accepts_arrays
    def log_prob(self, v: Float[Tensor, "*batch visible"]) -> Float[Tensor, "*batch"]:
        """The exact log p(v) = −F(v) − log Z; its cost is exponential in the size of the smaller layer."""
        check_binary(v)
        return -self.free_energy(v) - self.log_partition()

    def sample(self, count: int, *, steps: int = 1_000) -> Float[Tensor, "count visible"]:
        """States after `steps` Gibbs steps from uniform states; approximate samples of the model if the chain mixes."""
        start = torch.rand(count, self.weight.shape[1], device=self.weight.device, dtype=self.weight.dtype)
        return self.gibbs(start.round(), steps)

    @torch.no_grad()
    def exact_sample(self, count: int) -> Float[Tensor, "count visible"]:
        """Independent exact samples: h from its enumerated distribution, then v given h."""
        states = torch.cat(self._states(self.weight.shape[0]))
        chosen = torch.multinomial(self.hidden_log_weight(states).softmax(0), count, replacement=True)
        return self.visible_logits(states[chosen]).sigmoid().bernoulli()

    def _states(self, units: int) -> tuple[Tensor, ...]:
        """All binary states of a layer, in chunks."""
        if units > MAX_ENUMERATED_UNITS:
            raise ValueError(
                f"states are enumerated for layers of at most {MAX_ENUMERATED_UNITS} units; got {units}: "
                "estimate log Z with `ais_log_partition`"
            )
        states = all_masks(units, device=self.weight.device).to(self.weight)
        chunks: tuple[Tensor, ...] = states.split(STATES_PER_CHUNK)
        return chunks


class ContrastiveDivergence(nn.Module):
    """CD-k: negatives by k Gibbs steps from the data (Hinton 2002).

    >>> RBM(6, 3, negative_sampler=ContrastiveDivergence(steps=5)).loss(torch.ones(4, 6)).shape
    torch.Size([])
    """

    def __init__(self, steps: int) -> None:
        super().__init__()
        check_positive(steps=steps)
        self.steps = steps

    def forward(self, rbm: RBM, x: Float[Tensor, "batch visible"]) -> Float[Tensor, "batch visible"]:
        return rbm.gibbs(x, self.steps)


class PersistentContrastiveDivergence(nn.Module):
    """PCD: negatives from chains that persist between updates (Tieleman 2008).

    >>> sampler = PersistentContrastiveDivergence(chains=8, visible=6)
    >>> RBM(6, 3, negative_sampler=sampler).loss(torch.ones(4, 6)).shape
    torch.Size([])
    """

    particles: Tensor

    def __init__(self, chains: int, visible: int, *, steps: int = 1) -> None:
        super().__init__()
        check_positive(steps=steps)
        self.steps = steps
        self.register_buffer("particles", torch.rand(chains, visible).round())

    def forward(self, rbm: RBM, _x: Float[Tensor, "batch visible"]) -> Float[Tensor, "chains visible"]:
        self.particles = rbm.gibbs(self.particles, self.steps)
        return self.particles


def check_binary(states: Float[Tensor, "*shape"]) -> None:
    """Raise a ValueError unless every state is 0 or 1."""
    if not bool(((states == 0) | (states == 1)).all()):
        low, high = float(states.amin()), float(states.amax())
        raise ValueError(f"binary states must be 0 or 1; got values from {low:g} to {high:g}")
