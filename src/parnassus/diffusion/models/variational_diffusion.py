"""Variational diffusion: the continuous-time bound and learned noise schedules (Kingma et al. 2021).

With γ = −log SNR, σ² = sigmoid(γ) and α² = sigmoid(−γ); denoisers take (z, γ).
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

from parnassus.arrays import accepts_arrays
from parnassus.diffusion.chain.schedules import Schedule
from parnassus.diffusion.samplers.ddpm import ddpm
from parnassus.diffusion.samplers.time_steps import Sampler
from parnassus.diffusion.scores.vector_fields import squared_norm
from parnassus.errors import check_at_least_one

Curve: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""t ↦ (u(t), u′(t)) for times in [0, 1], where u increases from 0 to 1."""


def linear_curve(t: Float[Tensor, " batch"]) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
    """u(t) = t, a linear log signal-to-noise ratio."""
    return t, torch.ones_like(t)


class MonotoneCurve(nn.Module):
    """A learnable u(t) from 0 to 1, increasing for all parameters and initially almost linear.

    u(t) = (g(t) − g(0)) / (g(1) − g(0)),   g(t) = t + Σ_k h_k sigmoid(b_k (t − c_k)),   h_k, b_k > 0

    >>> u, derivative = MonotoneCurve()(torch.tensor([0.0, 1.0]))
    >>> u.tolist()
    [0.0, 1.0]
    """

    def __init__(self, components: int = 24) -> None:
        super().__init__()
        check_at_least_one(components=components)
        self.height = nn.Parameter(torch.full((components,), -4.0))
        self.slope = nn.Parameter(torch.full((components,), float(components)))
        self.centre = nn.Parameter((torch.arange(components) + 0.5) / components)

    def forward(self, t: Float[Tensor, " batch"]) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        height, slope = softplus(self.height), softplus(self.slope)
        times = torch.cat([t.new_tensor([0.0, 1.0]), t])
        steps = torch.sigmoid(slope * (times[:, None] - self.centre))
        g, derivative = times + steps @ height, 1 + (steps * (1 - steps)) @ (height * slope)
        total = g[1] - g[0]
        return (g[2:] - g[0]) / total, derivative[2:] / total


@dataclass(frozen=True, eq=False)
class VariationalTerms:
    """The terms of the bound −log p(x) ≤ reconstruction + prior + diffusion, in nats per example."""

    reconstruction: Float[Tensor, " batch"]  # E −log p(x | z_0)
    prior: Float[Tensor, " batch"]  # KL(q(z_1 | x) ‖ N(0, I))
    diffusion: Float[Tensor, " batch"]  # one estimate of ½ γ′(t) ‖ε − ε_θ(z_t, γ(t))‖²

    @property
    def negative_elbo(self) -> Float[Tensor, " batch"]:
        """The bound on −log p(x), in nats."""
        return self.reconstruction + self.prior + self.diffusion


class VariationalDiffusion(nn.Module):
    """A diffusion model with a continuous-time bound (Kingma et al. 2021; book sec. 13.2.7).

        z_t = α_t x + σ_t ε,   γ(t) = γ_0 + (γ_1 − γ_0) u(t)
        −log p(x) ≤ ½ D (1 + log 2π + γ_0) + KL(q(z_1 | x) ‖ N(0, I)) + ½ E γ′(t) ‖ε − ε_θ(z_t, γ(t))‖²

    The first term is that of p(x | z_0) = N(z_0 / α_0, exp(γ_0) I). The last expectation is an integral over γ: it
    depends on the ends of the schedule only; the curve u between them affects the variance of the estimate.

    >>> model = VariationalDiffusion(nn.Identity(), (2,))
    >>> model.level(torch.tensor([0.0, 1.0]))[0].detach()
    tensor([-8.,  6.])
    """

    def __init__(
        self,
        denoiser: nn.Module,
        shape: tuple[int, ...],
        *,
        curve: Curve = linear_curve,
        gamma_min: float = -8.0,
        gamma_max: float = 6.0,
    ) -> None:
        super().__init__()
        if not gamma_min < gamma_max:
            raise ValueError(
                f"gamma_min must be smaller than gamma_max; got gamma_min={gamma_min}, gamma_max={gamma_max}"
            )
        self.denoiser = denoiser
        self.shape = tuple(shape)
        self.curve = curve
        self.ends = nn.Parameter(torch.tensor([gamma_min, gamma_max]))

    def level(self, t: Float[Tensor, " batch"]) -> tuple[Float[Tensor, " batch"], Float[Tensor, " batch"]]:
        """γ(t) and γ′(t)."""
        return _rescale_curve(self.ends, self.curve(t))

    def terms(
        self, x: Float[Tensor, "batch *event"], t: Float[Tensor, " batch"], noise: Float[Tensor, "batch *event"]
    ) -> VariationalTerms:
        """An unbiased estimate of each term, for times t uniform in [0, 1]."""
        return self._terms(x, noise, self.ends, self.curve(t))

    @accepts_arrays
    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        """The bound in nats, at one low-discrepancy time per example.

        A learned curve gets the gradient of the second moment of the estimate, which is that of its variance, since
        the mean does not depend on the curve.
        """
        t, noise = low_discrepancy_times(x), torch.randn_like(x)
        curve = self.curve(t)
        u, du = curve
        bound = self._terms(x, noise, self.ends, (u.detach(), du.detach())).negative_elbo.mean()
        if not du.requires_grad:
            return bound
        frozen = {name: weight.detach() for name, weight in self.denoiser.named_parameters()}
        gamma, gamma_prime = _rescale_curve(self.ends.detach(), curve)
        prediction = functional_call(self.denoiser, frozen, (_add_noise(x, gamma, noise), gamma))
        second_moment = (gamma_prime * squared_norm(noise - prediction) / 2).square().mean()
        return bound + second_moment - second_moment.detach()

    @torch.no_grad()
    def sample(self, count: int, *, steps: int = 200, sampler: Sampler = ddpm) -> Float[Tensor, "count *event"]:
        """`count` samples over `steps` times from 1 to 0."""
        if steps < 2:
            raise ValueError(f"steps must be at least 2; got steps={steps}")
        gamma, _ = self.level(torch.linspace(0, 1, steps, device=self.ends.device))
        alpha_bar = torch.sigmoid(-gamma.double())
        before = torch.cat([alpha_bar.new_ones(1), alpha_bar[:-1]])
        start = torch.randn(count, *self.shape, dtype=self.ends.dtype, device=self.ends.device)
        schedule = Schedule(alpha_bar / before, alpha_bar, before)
        return sampler(lambda z, t: self.denoiser(z, gamma[t]), schedule, start)

    def _terms(self, x: Tensor, noise: Tensor, ends: Tensor, curve: tuple[Tensor, Tensor]) -> VariationalTerms:
        gamma, gamma_prime = _rescale_curve(ends, curve)
        prediction = self.denoiser(_add_noise(x, gamma, noise), gamma)
        signal, noise_variance, d = torch.sigmoid(-ends[1]), torch.sigmoid(ends[1]), x[0].numel()
        return VariationalTerms(
            reconstruction=(d / 2 * (1 + log(2 * pi) + ends[0])).expand(len(x)),
            prior=(signal * squared_norm(x) + d * (noise_variance - 1 - noise_variance.log())) / 2,
            diffusion=gamma_prime * squared_norm(noise - prediction) / 2,
        )


def low_discrepancy_times(x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """Times (i/n + U) mod 1 with one uniform U: each uniform in [0, 1), together evenly spaced."""
    return (torch.arange(len(x), device=x.device) / len(x) + torch.rand(1, device=x.device)).to(x.dtype) % 1


def _rescale_curve(ends: Tensor, curve: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    width = ends[1] - ends[0]
    return ends[0] + width * curve[0], width * curve[1]


def _add_noise(x: Tensor, gamma: Tensor, noise: Tensor) -> Tensor:
    """The state z = α x + σ ε at noise levels γ."""
    g = gamma.view(-1, *[1] * (x.dim() - 1))
    return torch.sigmoid(-g).sqrt() * x + torch.sigmoid(g).sqrt() * noise
