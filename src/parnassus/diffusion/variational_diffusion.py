"""Variational diffusion: a bound in continuous time, and a noise schedule that is learned (Kingma et al. 2021).

The level of noise is γ = −log SNR, so that σ² = sigmoid(γ) and α² = sigmoid(−γ); a denoiser takes (z, γ).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import softplus

from parnassus.diffusion.fields import squared_length
from parnassus.diffusion.samplers import Sampler, ddpm
from parnassus.diffusion.schedules import Schedule

Curve: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""Times t in [0, 1] in; u(t), rising from 0 to 1, and u′(t) out."""


def straight_curve(t: Float[Tensor, " batch"]) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """u(t) = t: a log signal-to-noise ratio that falls on a line."""
    return t, torch.ones_like(t)


class RisingCurve(nn.Module):
    """u(t) from 0 to 1 that rises whatever its parameters, nearly straight at first.

    u(t) = (g(t) − g(0)) / (g(1) − g(0)),   g(t) = t + Σ_k h_k sigmoid(b_k (t − c_k)),   h_k, b_k > 0
    """

    def __init__(self, bends: int = 24) -> None:
        super().__init__()
        if bends < 1:
            raise ValueError(f"a curve that can be learned needs at least one bend; got bends={bends}")
        self.height = nn.Parameter(torch.full((bends,), -4.0))
        self.slope = nn.Parameter(torch.full((bends,), float(bends)))
        self.place = nn.Parameter((torch.arange(bends) + 0.5) / bends)

    def forward(self, t: Float[Tensor, " batch"]) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        height, steep = softplus(self.height), softplus(self.slope)
        times = torch.cat([t.new_tensor([0.0, 1.0]), t])
        climbed = torch.sigmoid(steep * (times[:, None] - self.place))
        g, rise = times + climbed @ height, 1 + (climbed * (1 - climbed)) @ (height * steep)
        whole = g[1] - g[0]
        return (g[2:] - g[0]) / whole, rise[2:] / whole


@dataclass(frozen=True, eq=False)
class VariationalTerms:
    """What the bound is made of, in nats for each example: −log p(x) ≤ reconstruction + prior + diffusion."""

    reconstruction: Float[Tensor, " batch"]  # E −log p(x | z_0)
    prior: Float[Tensor, " batch"]  # KL(q(z_1 | x) ‖ N(0, I))
    diffusion: Float[Tensor, " batch"]  # one draw of ½ γ′(t) ‖ε − ε_θ(z_t, γ(t))‖²

    @property
    def nats(self) -> Float[Tensor, " batch"]:
        return self.reconstruction + self.prior + self.diffusion


class VariationalDiffusion(nn.Module):
    """A diffusion model whose bound needs no number of steps (Kingma et al. 2021; book sec. 13.2.7).

        z_t = α_t x + σ_t ε,   γ(t) = γ_0 + (γ_1 − γ_0) u(t)
        −log p(x) ≤ ½ D (1 + log 2π + γ_0) + KL(q(z_1 | x) ‖ N(0, I)) + ½ E γ′(t) ‖ε − ε_θ(z_t, γ(t))‖²

    The first term is that of p(x | z_0) = N(z_0 / α_0, exp(γ_0) I). The last mean is an integral over γ: it depends on
    the ends of the schedule and not on the curve u between them, which only decides how far single draws scatter.
    """

    def __init__(
        self,
        denoiser: nn.Module,
        shape: tuple[int, ...],
        *,
        curve: Curve = straight_curve,
        low: float = -8.0,
        high: float = 6.0,
    ) -> None:
        super().__init__()
        if not low < high:
            raise ValueError(f"noise must grow from γ_0 to γ_1; got low={low}, high={high}")
        self.denoiser = denoiser
        self.shape = tuple(shape)
        self.curve = curve
        self.ends = nn.Parameter(torch.tensor([low, high]))

    def level(self, t: Float[Tensor, " batch"]) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """γ(t) and γ′(t)."""
        return _stretched(self.ends, self.curve(t))

    def terms(
        self, x: Float[Tensor, "batch *event"], t: Float[Tensor, " batch"], noise: Float[Tensor, "batch *event"]
    ) -> VariationalTerms:
        """One unbiased draw of each term, for times t uniform in [0, 1]."""
        return self._terms(x, noise, self.ends, self.curve(t))

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        """The bound in nats, at one time for each example; the times of a batch are evenly spread.

        A learned curve gets another gradient, that of the draws' second moment: their mean does not depend on it, so
        that is the gradient of their variance.
        """
        t, noise = spread_times(x), torch.randn_like(x)
        curve = self.curve(t)
        share, rise = curve
        bound = self._terms(x, noise, self.ends, (share.detach(), rise.detach())).nats.mean()
        if not rise.requires_grad:
            return bound
        frozen = {name: weight.detach() for name, weight in self.denoiser.named_parameters()}
        gamma, slope = _stretched(self.ends.detach(), curve)
        guess = functional_call(self.denoiser, frozen, (_noised(x, gamma, noise), gamma))
        scatter = (slope * squared_length(noise - guess) / 2).square().mean()
        return bound + scatter - scatter.detach()

    @torch.no_grad()
    def sample(self, count: int, *, steps: int = 200, sampler: Sampler = ddpm) -> Float[Tensor, "count *event"]:
        """`count` new examples, through `steps` of the times from 1 to 0."""
        if steps < 2:
            raise ValueError(f"the two ends are two steps at least; got steps={steps}")
        gamma, _ = self.level(torch.linspace(0, 1, steps, device=self.ends.device))
        alpha_bar = torch.sigmoid(-gamma.double())
        before = torch.cat([alpha_bar.new_ones(1), alpha_bar[:-1]])
        start = torch.randn(count, *self.shape, device=self.ends.device)
        schedule = Schedule(alpha_bar / before, alpha_bar, before)
        return sampler(lambda z, t: self.denoiser(z, gamma[t]), schedule, start)

    def _terms(self, x: Tensor, noise: Tensor, ends: Tensor, curve: tuple[Tensor, Tensor]) -> VariationalTerms:
        gamma, slope = _stretched(ends, curve)
        guess = self.denoiser(_noised(x, gamma, noise), gamma)
        kept, left, d = torch.sigmoid(-ends[1]), torch.sigmoid(ends[1]), x[0].numel()
        return VariationalTerms(
            reconstruction=(d / 2 * (1 + log(2 * pi) + ends[0])).expand(len(x)),
            prior=(kept * squared_length(x) + d * (left - 1 - left.log())) / 2,
            diffusion=slope * squared_length(noise - guess) / 2,
        )


def spread_times(x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """A time in [0, 1) for each example, (i/n + U) mod 1 with one U: each uniform, together evenly spread."""
    return (torch.arange(len(x), device=x.device) / len(x) + torch.rand(1, device=x.device)).to(x.dtype) % 1


def _stretched(ends: Tensor, curve: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    width = ends[1] - ends[0]
    return ends[0] + width * curve[0], width * curve[1]


def _noised(x: Tensor, gamma: Tensor, noise: Tensor) -> Tensor:
    """The state α x + σ ε at these levels."""
    wide = gamma.view(-1, *[1] * (x.dim() - 1))
    return torch.sigmoid(-wide).sqrt() * x + torch.sigmoid(wide).sqrt() * noise
