"""Score-based generative model in continuous time, one network for all times (Song et al. 2021)."""

from collections.abc import Callable
from math import log, prod
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.diffusion.continuous.ode_solvers import ODESolver, rk4
from parnassus.diffusion.continuous.probability_flow import probability_flow_log_prob, solve_probability_flow
from parnassus.diffusion.continuous.reverse_sde import denoise, reverse_sde, sample_prior
from parnassus.diffusion.continuous.sde import NoisingSDE, TimedScore, time_at_noise_ratio
from parnassus.diffusion.continuous.time_grids import broadcast_rows, reverse_times
from parnassus.diffusion.scores.vector_fields import squared_norm

TimeWeight: TypeAlias = Callable[[NoisingSDE, Tensor], Tensor]
"""(sde, t) ↦ weights λ(t) for the times of a batch."""


def noise_variance_weight(sde: NoisingSDE, t: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """λ = b², for which the loss is the squared error of the noise."""
    return sde.std(t).square()


def likelihood_weight(sde: NoisingSDE, t: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """λ = g², for which half the loss bounds the KL divergence from the data (Song et al. 2021b, thm. 1)."""
    return sde.diffusion_rate(t).square()


def continuous_score_matching(
    score: TimedScore,
    sde: NoisingSDE,
    x0: Float[Tensor, "batch *event"],
    t: Float[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
    *,
    weight: TimeWeight = noise_variance_weight,
) -> Float[Tensor, " batch"]:
    """λ(t) ‖s(x_t, t) − ∇log q(x_t | x_0)‖² = λ(t) ‖s(x_t, t) + ε/b(t)‖², one value per example.

    Denoising score matching (book eq. 13.89) in continuous time; the minimiser is the score of q_t.
    """
    target = -noise / broadcast_rows(sde.std(t), x0)
    return weight(sde, t) * squared_norm(score(sde.diffuse(x0, t, noise), t) - target)


def stratified_times(count: int, t_min: float, *, device: torch.device | None = None) -> Float[Tensor, " count"]:
    """Random times, one in each of `count` equal strata of [t_min, 1], in random order."""
    fractions = (torch.arange(count, device=device) + torch.rand(count, device=device)) / count
    return t_min + (1 - t_min) * fractions[torch.randperm(count, device=device)]


class ScoreSDE(nn.Module):
    """A network for the scores at all times of a noising SDE, with SDE and ODE sampling.

        s(x, t) = −ε_θ(x / √(a² + b²), log a²/b²) / b
        loss    = E λ(t) ‖s(x_t, t) + ε/b(t)‖²,   t uniform on [`t_min`, 1]

    `network(x, level)` takes the log signal-to-noise ratio of each example. Its input depends on this ratio only, so a
    trained network can be used with any other equation (`with_sde`). Times with b/a < `min_noise_ratio` are excluded,
    since the score is unbounded there.
    """

    def __init__(
        self,
        network: nn.Module,
        shape: tuple[int, ...],
        sde: NoisingSDE,
        *,
        min_noise_ratio: float = 0.01,
        weight: TimeWeight = noise_variance_weight,
    ) -> None:
        super().__init__()
        self.network = network
        self.shape = tuple(shape)
        self.sde = sde
        self.min_noise_ratio = min_noise_ratio
        self.t_min = time_at_noise_ratio(sde, min_noise_ratio)
        self.weight = weight

    def with_sde(self, sde: NoisingSDE) -> "ScoreSDE":
        """A model for another equation that shares the network and its weights."""
        return ScoreSDE(self.network, self.shape, sde, min_noise_ratio=self.min_noise_ratio, weight=self.weight)

    def score(self, x: Float[Tensor, "batch *event"], t: Float[Tensor, " batch"]) -> Float[Tensor, "batch *event"]:
        """The learned score ∇ log q_t(x)."""
        a, b = self.sde.scale(t), self.sde.std(t)
        noise: Tensor = self.network(broadcast_rows((a.square() + b.square()).rsqrt(), x) * x, 2 * (a.log() - b.log()))
        return -noise / broadcast_rows(b, x)

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        """Denoising score matching at one random time per example, per coordinate (book eq. 13.89)."""
        t = stratified_times(len(x), self.t_min, device=x.device)
        per_example = continuous_score_matching(self.score, self.sde, x, t, torch.randn_like(x), weight=self.weight)
        return per_example.mean() / prod(self.shape)

    @torch.no_grad()
    def sample(self, count: int, *, steps: int = 500, eta: float = 1.0) -> Float[Tensor, "count *event"]:
        """`count` samples by the reverse-time SDE, with its noise scaled by `eta`."""
        return reverse_sde(self.sde, self.score, self._sample_prior(count), self.times(steps), eta=eta)

    @torch.no_grad()
    def sample_flow(self, count: int, *, steps: int = 50, solver: ODESolver = rk4) -> Float[Tensor, "count *event"]:
        """`count` samples by the probability flow, which needs fewer steps."""
        times = self.times(steps)
        x = solve_probability_flow(self.sde, self.score, self._sample_prior(count), times, solver=solver)
        return denoise(self.sde, self.score, x, times[-1])

    @accepts_arrays
    @torch.no_grad()
    def log_prob(
        self, x: Float[Tensor, "batch *event"], *, steps: int = 50, solver: ODESolver = rk4
    ) -> Float[Tensor, " batch"]:
        """The log-density of x under the probability flow, in nats, at the first time.

        log p(x) = log q_t(a x) + d log a for d coordinates, the density of x_t / a(t)
        """
        times = self.times(steps).flip(0)
        a = float(self.sde.scale(times[0]))
        return probability_flow_log_prob(self.sde, self.score, a * x, times, solver=solver) + prod(self.shape) * log(a)

    def times(self, steps: int) -> Float[Tensor, " times"]:
        """Decreasing times from 1 to `t_min`."""
        return reverse_times(steps, end=self.t_min)

    def _sample_prior(self, count: int) -> Tensor:
        return sample_prior(self.sde, (count, *self.shape), like=next(self.parameters()))
