"""Restricted Boltzmann machines: visible and hidden units with no bonds inside either layer (book sec. 11.1)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from parnassus.layers.dropout import every_mask

ENUMERABLE = 20
"""A layer of so many units still has its states listed one by one: a million of them."""
PART = 1 << 14
"""States summed at a time."""


class RBM(nn.Module):
    """Binary units v and h, joined only across the layers (Smolensky 1986; Hinton 2002; book sec. 11.1).

        E(v, h) = −b·v − c·h − hᵀ W v,   p(v, h) = exp(−E(v, h)) / Z                  (book eq. 6.9, β = 1)
        F(v) = −log Σ_h exp(−E(v, h)) = −b·v − Σ_j softplus(c_j + W_j v)
        ∂ log p(v)/∂θ = −∂F(v)/∂θ + ⟨∂F/∂θ⟩_model

    `negatives` says where the states of the second term come from: `FromData(1)` is contrastive divergence,
    `Persistent` keeps chains of its own.
    """

    visible_bias: nn.Parameter
    hidden_bias: nn.Parameter

    def __init__(self, visible: int, hidden: int, *, negatives: nn.Module | None = None) -> None:
        super().__init__()
        if visible < 1 or hidden < 1:
            raise ValueError(f"a machine needs units in both layers; got visible={visible}, hidden={hidden}")
        self.weight = nn.Parameter(0.1 * torch.randn(hidden, visible) / visible**0.5)
        self.visible_bias = nn.Parameter(torch.zeros(visible))
        self.hidden_bias = nn.Parameter(torch.zeros(hidden))
        self.negatives = FromData(1) if negatives is None else negatives

    def energy(self, v: Float[Tensor, "*batch visible"], h: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch"]:
        """E(v, h) = −b·v − c·h − hᵀ W v."""
        return -(v @ self.visible_bias) - h @ self.hidden_bias - ((v @ self.weight.mT) * h).sum(-1)

    def free_energy(self, v: Float[Tensor, "*batch visible"]) -> Float[Tensor, "*batch"]:
        """F(v) = −b·v − Σ_j softplus(c_j + W_j v): the energy with h summed out."""
        return -(v @ self.visible_bias) - softplus(self.hidden_input(v)).sum(-1)

    def hidden_input(self, v: Float[Tensor, "*batch visible"]) -> Float[Tensor, "*batch hidden"]:
        """W v + c, the logits of p(h = 1 | v)."""
        return v @ self.weight.mT + self.hidden_bias

    def visible_input(self, h: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch visible"]:
        """Wᵀ h + b, the logits of p(v = 1 | h)."""
        return h @ self.weight + self.visible_bias

    @torch.no_grad()
    def gibbs(self, v: Float[Tensor, "batch visible"], steps: int) -> Float[Tensor, "batch visible"]:
        """Draw h given v, then v given h, `steps` times: a whole layer at once."""
        for _ in range(steps):
            h = self.hidden_input(v).sigmoid().bernoulli()
            v = self.visible_input(h).sigmoid().bernoulli()
        return v

    def loss(self, x: Float[Tensor, "batch visible"]) -> Float[Tensor, ""]:
        """⟨F⟩_data − ⟨F⟩_negatives: its gradient is the estimate of that of −log p; its value means little.

        With negatives drawn from the model itself the gradient would be exact; chains too short for that bias it.
        Shades between 0 and 1 are taken as probabilities of a 1.
        """
        negatives: Tensor = self.negatives(self, x)
        return self.free_energy(x).mean() - self.free_energy(negatives).mean()

    def log_partition(self) -> Float[Tensor, ""]:
        """The log Z by listing the states of the smaller layer, the larger being summed in closed form.

        log Z = log Σ_h exp(c·h + Σ_i softplus(b_i + (Wᵀh)_i)),   or the same with the layers exchanged
        """
        hidden, visible = self.weight.shape
        if hidden <= visible:
            parts = [self.hidden_log_weight(h).logsumexp(0) for h in self._states(hidden)]
        else:
            parts = [(-self.free_energy(v)).logsumexp(0) for v in self._states(visible)]
        return torch.stack(parts).logsumexp(0)

    def hidden_log_weight(self, h: Float[Tensor, "*batch hidden"]) -> Float[Tensor, "*batch"]:
        """Minus the free energy of h, c·h + Σ_i softplus(b_i + (Wᵀh)_i) = log p(h) + log Z."""
        return h @ self.hidden_bias + softplus(self.visible_input(h)).sum(-1)

    def log_prob(self, v: Float[Tensor, "*batch visible"]) -> Float[Tensor, "*batch"]:
        """Exactly log p(v) = −F(v) − log Z; takes 2 to the number of units of the smaller layer."""
        require_binary(v)
        return -self.free_energy(v) - self.log_partition()

    def sample(self, count: int, *, steps: int = 1_000) -> Float[Tensor, "count visible"]:
        """States after `steps` rounds of Gibbs sampling from fair coins; nearly those of the model if it mixes."""
        start = torch.rand(count, self.weight.shape[1], device=self.weight.device, dtype=self.weight.dtype)
        return self.gibbs(start.round(), steps)

    @torch.no_grad()
    def exact_sample(self, count: int) -> Float[Tensor, "count visible"]:
        """Independent draws without any chain: h from its listed distribution, then v given h."""
        states = torch.cat(self._states(self.weight.shape[0]))
        chosen = torch.multinomial(self.hidden_log_weight(states).softmax(0), count, replacement=True)
        return self.visible_input(states[chosen]).sigmoid().bernoulli()

    def _states(self, units: int) -> tuple[Tensor, ...]:
        """All binary states of a layer, in parts that a matrix product takes at once."""
        if units > ENUMERABLE:
            raise ValueError(
                f"states can be listed for a layer of at most {ENUMERABLE} units; this has {units}: "
                "estimate log Z with `annealed_log_partition`"
            )
        parts: tuple[Tensor, ...] = every_mask(units).to(self.weight).split(PART)
        return parts


class FromData(nn.Module):
    """CD-k: negatives are k steps of Gibbs sampling away from the data (Hinton 2002)."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        _require_steps(steps)
        self.steps = steps

    def forward(self, rbm: RBM, x: Float[Tensor, "batch visible"]) -> Float[Tensor, "batch visible"]:
        return rbm.gibbs(x, self.steps)


class Persistent(nn.Module):
    """Persistent CD: chains that go on from update to update and never see the data (Tieleman 2008)."""

    particles: Tensor

    def __init__(self, chains: int, visible: int, *, steps: int = 1) -> None:
        super().__init__()
        _require_steps(steps)
        self.steps = steps
        self.register_buffer("particles", torch.rand(chains, visible).round())

    def forward(self, rbm: RBM, _x: Float[Tensor, "batch visible"]) -> Float[Tensor, "chains visible"]:
        self.particles = rbm.gibbs(self.particles, self.steps)
        return self.particles


def require_binary(states: Float[Tensor, "*shape"]) -> None:
    """Raise a ValueError unless every state is 0 or 1."""
    if not bool(((states == 0) | (states == 1)).all()):
        low, high = float(states.amin()), float(states.amax())
        raise ValueError(f"binary states must be 0 or 1; got values from {low:g} to {high:g}")


def _require_steps(steps: int) -> None:
    if steps < 1:
        raise ValueError(f"negatives need at least one Gibbs step; got steps={steps}")
