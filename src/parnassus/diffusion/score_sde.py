"""A generative model in continuous time: one network for the score at every time (Song et al. 2021)."""

from collections.abc import Callable
from math import log, prod
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.diffusion.brownian import beside
from parnassus.diffusion.fields import squared_length
from parnassus.diffusion.ode import Solver, rk4
from parnassus.diffusion.probability_flow import flow_log_prob, follow
from parnassus.diffusion.reverse_time import denoised, reverse, start_noise
from parnassus.diffusion.sde import NoisingSDE, TimedScore, time_of, towards_data

TimeWeight: TypeAlias = Callable[[NoisingSDE, Tensor], Tensor]
"""λ(t) for the times of a batch."""


def noise_weight(sde: NoisingSDE, t: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """λ = b², under which the loss is the squared error of the noise, of one size at all times."""
    return sde.std(t).square()


def likelihood_weight(sde: NoisingSDE, t: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """λ = g², under which half the loss bounds the KL divergence from the data (Song et al. 2021b, thm. 1)."""
    return sde.noise(t).square()


def matching_in_time(
    score: TimedScore,
    sde: NoisingSDE,
    x0: Float[Tensor, "batch *event"],
    t: Float[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
    *,
    weight: TimeWeight = noise_weight,
) -> Float[Tensor, " batch"]:
    """λ(t) ‖s(x_t, t) − ∇log q(x_t | x_0)‖² = λ(t) ‖s(x_t, t) + ε/b(t)‖², one number for each example.

    Denoising score matching (book eq. 13.89) at times in place of levels. Its minimum over s is the score of q_t.
    """
    target = -noise / beside(sde.std(t), x0)
    return weight(sde, t) * squared_length(score(sde.diffuse(x0, t, noise), t) - target)


def even_times(count: int, first: float, *, device: torch.device | None = None) -> Float[Tensor, " count"]:
    """Times on [first, 1], each uniform and one in each of `count` equal parts: less noisy than independent ones."""
    shares = (torch.arange(count, device=device) + torch.rand(count, device=device)) / count
    return first + (1 - first) * shares[torch.randperm(count, device=device)]


class ScoreSDE(nn.Module):
    """A network for the score of the data at all times of a noising equation, and the two ways back.

        s(x, t) = −ε_θ(x / √(a² + b²), log a²/b²) / b
        loss    = E λ(t) ‖s(x_t, t) + ε/b(t)‖²,   t uniform from `first` on

    What the network is given depends on the ratio of noise to signal alone, not on the pace of the equation: once
    trained, it serves every other equation too (`under`). `network(x, level)` takes the log signal-to-noise ratio as a
    number for each example. Times before the ratio b/a = `least` are left out: there the score has no bound.
    """

    def __init__(
        self,
        network: nn.Module,
        shape: tuple[int, ...],
        sde: NoisingSDE,
        *,
        least: float = 0.01,
        weight: TimeWeight = noise_weight,
    ) -> None:
        super().__init__()
        self.network = network
        self.shape = tuple(shape)
        self.sde = sde
        self.least = least
        self.first = time_of(sde, least)
        self.weight = weight

    def under(self, sde: NoisingSDE) -> "ScoreSDE":
        """The same network with the times of another equation; weights are shared."""
        return ScoreSDE(self.network, self.shape, sde, least=self.least, weight=self.weight)

    def score(self, x: Float[Tensor, "batch *event"], t: Float[Tensor, " batch"]) -> Float[Tensor, "batch *event"]:
        """∇ log q_t(x), as far as it is learned."""
        a, b = self.sde.scale(t), self.sde.std(t)
        noise: Tensor = self.network(beside((a.square() + b.square()).rsqrt(), x) * x, 2 * (a.log() - b.log()))
        return -noise / beside(b, x)

    def loss(self, x: Float[Tensor, "batch *event"]) -> Float[Tensor, ""]:
        """Denoising score matching at a random time for each example, per coordinate (book eq. 13.89)."""
        t = even_times(len(x), self.first, device=x.device)
        per_example = matching_in_time(self.score, self.sde, x, t, torch.randn_like(x), weight=self.weight)
        return per_example.mean() / prod(self.shape)

    @torch.no_grad()
    def sample(self, count: int, *, steps: int = 500, eta: float = 1.0) -> Float[Tensor, "count *event"]:
        """`count` new examples by the reverse equation, with `eta` times its noise on the way."""
        return reverse(self.sde, self.score, self._start(count), self.times(steps), eta=eta)

    @torch.no_grad()
    def sample_flow(self, count: int, *, steps: int = 50, solver: Solver = rk4) -> Float[Tensor, "count *event"]:
        """`count` new examples by the probability flow, which needs fewer steps."""
        times = self.times(steps)
        x = follow(self.sde, self.score, self._start(count), times, solver=solver)
        return denoised(self.sde, self.score, x, times[-1])

    @torch.no_grad()
    def log_prob(
        self, x: Float[Tensor, "batch *event"], *, steps: int = 50, solver: Solver = rk4
    ) -> Float[Tensor, " batch"]:
        """The log-density that the probability flow gives to x, in nats: that of x_t / a(t) at the first time.

        The least noise is in it. log p(x) = log q_t(a x) + d log a, for d coordinates
        """
        times = self.times(steps).flip(0)
        a = float(self.sde.scale(times[0]))
        return flow_log_prob(self.sde, self.score, a * x, times, solver=solver) + prod(self.shape) * log(a)

    def times(self, steps: int) -> Float[Tensor, " times"]:
        """Times from noise to data, as far as the network was trained."""
        return towards_data(steps, end=self.first)

    def _start(self, count: int) -> Tensor:
        return start_noise(self.sde, (count, *self.shape), like=next(self.parameters()))
