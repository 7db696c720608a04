"""Denoising diffusion probabilistic model (Ho et al. 2020; book sec. 13.2)."""

from math import prod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.diffusion.chain.elbo import elbo_terms
from parnassus.diffusion.chain.forward_process import Denoiser
from parnassus.diffusion.chain.objectives import Objective, simple_objective
from parnassus.diffusion.chain.schedules import Schedule, linear_schedule
from parnassus.diffusion.guidance import classifier_free_guidance, drop_labels
from parnassus.diffusion.samplers.ddpm import ddpm
from parnassus.diffusion.samplers.time_steps import Sampler


class DDPM(nn.Module):
    """A fixed Gaussian forward chain x_0 → x_T and its learned reversal (book sec. 13.2).

        q(x_t | x_0)     = N(√ᾱ_t x_0, (1 − ᾱ_t) I)                                 (book eq. 13.31)
        p(x_{t−1} | x_t) = N(μ_θ(x_t; t), Σ_q(t))                                   (book eq. 13.39)
        loss             = E ‖ε_θ(x_t; t) − ε‖² over uniform t                      (book eq. 13.77)

    `denoiser(x_t, t)` predicts the noise ε; with `classes` it is `denoiser(x_t, t, label)`, and label `classes` is the
    null label. Labels are dropped with probability `dropout` in training. Data should have about unit variance, such as
    pixels in [−1, 1].

    >>> model = DDPM(TimeMLP(2, width=16), shape=(2,), schedule=linear_schedule(10))
    >>> model.sample(100).shape
    torch.Size([100, 2])
    """

    def __init__(
        self,
        denoiser: nn.Module,
        shape: tuple[int, ...],
        *,
        schedule: Schedule | None = None,
        classes: int = 0,
        dropout: float = 0.1,
        objective: Objective = simple_objective,
    ) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must satisfy 0 ≤ dropout < 1; got dropout={dropout}")
        self.denoiser = denoiser
        self.shape = tuple(shape)
        self.schedule = schedule or linear_schedule(1_000)
        self.classes = classes
        self.dropout = dropout
        self.objective = objective

    @accepts_arrays
    def loss(self, x: Float[Tensor, "batch *event"], label: Int[Tensor, " batch"] | None = None) -> Float[Tensor, ""]:
        """The objective at one random step per example, per coordinate (book alg. 13.1, eq. 13.77)."""
        t = torch.randint(len(self.schedule), (len(x),), device=x.device)
        if label is not None and self.classes:
            label = drop_labels(label, self.classes, self.dropout)
        per_example = self.objective(self.condition_on(label), self.schedule, x, t, torch.randn_like(x))
        return per_example.mean() / prod(self.shape)

    @torch.no_grad()
    def sample(
        self,
        count: int,
        label: Int[Tensor, " count"] | None = None,
        *,
        guidance_scale: float = 1.0,
        sampler: Sampler = ddpm,
    ) -> Float[Tensor, "count *event"]:
        """`count` samples, of the classes in `label` if given (book alg. 13.2, eq. 13.97).

        Samplers: `ddpm`, or `partial(ddim, grid=evenly_spaced_steps(1_000, 50))`.
        """
        denoiser = self.condition_on(label, guidance_scale)
        if label is not None and (label.shape != (count,) or label.min() < 0 or label.max() > self.classes):
            raise ValueError(
                f"label must hold count={count} integers from 0 to {self.classes}; got {label.tolist()[:20]}"
            )
        weight = next(self.parameters())
        start = torch.randn(count, *self.shape, dtype=weight.dtype, device=weight.device)
        return sampler(denoiser, self.schedule, start)

    @accepts_arrays
    @torch.no_grad()
    def log_prob(
        self, x: Float[Tensor, "batch *event"], label: Int[Tensor, " batch"] | None = None
    ) -> Float[Tensor, " batch"]:
        """A lower bound on log p(x) in nats, with one draw of noise per step (book eq. 13.48)."""
        return elbo_terms(self.condition_on(label), self.schedule, x).elbo

    def condition_on(self, label: Int[Tensor, " batch"] | None = None, scale: float = 1.0) -> Denoiser:
        """The denoiser as a function of (x, t) for these labels, guided with `scale`."""
        if label is None:
            return self.denoiser
        if not self.classes:
            raise ValueError("label must be None for a model without classes; build it with classes=…")
        return classifier_free_guidance(self.denoiser, label, scale)
