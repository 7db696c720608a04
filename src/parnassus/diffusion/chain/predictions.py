"""Prediction types (noise ε, data x_0, velocity v, score) and conversions (book sec. 13.2.4).

Given x_t, each is an affine function of each other. A `Prediction` holds the coefficients, `NoisePredictor` turns a
network with any of these outputs into a denoiser, and `weighted_objective(VELOCITY.weight)` trains it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.diffusion.chain.forward_process import extract
from parnassus.diffusion.chain.schedules import Schedule


@dataclass(frozen=True)
class PredictionType:
    """The relation ε = A_t x_t + B_t output between the noise in x_t and the output of a network.

    Errors scale with B_t: ‖output error‖² = ‖ε error‖² / B_t².

    >>> noise = torch.ones(1, 2)
    >>> NOISE.noise(linear_schedule(10), torch.zeros(1, 2), torch.tensor([3]), noise).tolist()
    [[1.0, 1.0]]
    """

    x_factor: Callable[[Schedule], Tensor]  # A_t
    output_factor: Callable[[Schedule], Tensor]  # B_t

    def noise(
        self,
        schedule: Schedule,
        x: Float[Tensor, "batch *event"],
        t: Int[Tensor, " batch"],
        output: Float[Tensor, "batch *event"],
    ) -> Float[Tensor, "batch *event"]:
        """The noise ε = A_t x_t + B_t output."""
        return extract(self.x_factor(schedule), t, x) * x + extract(self.output_factor(schedule), t, x) * output

    def output(
        self,
        schedule: Schedule,
        x: Float[Tensor, "batch *event"],
        t: Int[Tensor, " batch"],
        noise: Float[Tensor, "batch *event"],
    ) -> Float[Tensor, "batch *event"]:
        """The target output (ε − A_t x_t) / B_t."""
        return (noise - extract(self.x_factor(schedule), t, x) * x) / extract(self.output_factor(schedule), t, x)

    def weight(self, schedule: Schedule) -> Float[Tensor, " steps"]:
        """The weight 1 / B_t² that turns ‖ε_θ − ε‖² into the squared error of this output."""
        return self.output_factor(schedule) ** -2


NOISE = PredictionType(
    lambda schedule: torch.zeros_like(schedule.alpha), lambda schedule: torch.ones_like(schedule.alpha)
)
"""The network predicts ε."""

DATA = PredictionType(
    lambda schedule: (1 - schedule.alpha_bar).rsqrt(),
    lambda schedule: -(schedule.alpha_bar / (1 - schedule.alpha_bar)).sqrt(),
)
"""The network predicts x_0: ε = (x_t − √ᾱ_t x_0) / √(1 − ᾱ_t) (book eq. 13.71). Its weight is 1 / SNR_t."""

VELOCITY = PredictionType(lambda schedule: (1 - schedule.alpha_bar).sqrt(), lambda schedule: schedule.alpha_bar.sqrt())
"""The network predicts v: ε = √(1 − ᾱ_t) x_t + √ᾱ_t v (Salimans & Ho 2022). Its weight is 1 / ᾱ_t = 1 + 1 / SNR_t."""

SCORE = PredictionType(
    lambda schedule: torch.zeros_like(schedule.alpha), lambda schedule: -(1 - schedule.alpha_bar).sqrt()
)
"""The network predicts ∇ log q(x_t) = −ε / √(1 − ᾱ_t) (book sec. 13.3)."""


def velocity(
    schedule: Schedule,
    x0: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """The velocity v = √ᾱ_t ε − √(1 − ᾱ_t) x_0 (Salimans & Ho 2022).

    With √ᾱ_t = cos φ, x_t = cos φ x_0 + sin φ ε traces a quarter of a circle and v = dx_t/dφ. Its scale is that of the
    data at every step, whereas ε is uninformative about x_0 in pure noise, and x_0 about ε in clean data.
    """
    return extract(schedule.alpha_bar.sqrt(), t, x0) * noise - extract((1 - schedule.alpha_bar).sqrt(), t, x0) * x0


class NoisePredictor(nn.Module):
    """A network with another prediction type as a denoiser ε(x_t, t) for samplers, guidance and DDPM.

        ε = A_t x_t + B_t network(x_t, t)

    For v-prediction train `DDPM(NoisePredictor(network, VELOCITY, schedule), …)` on the same schedule with
    `objective=weighted_objective(VELOCITY.weight)`.

    >>> denoiser = NoisePredictor(TimeMLP(2, width=16), VELOCITY, linear_schedule(10))
    >>> denoiser(torch.zeros(5, 2), torch.arange(5)).shape
    torch.Size([5, 2])
    """

    x_factor: Tensor
    output_factor: Tensor

    def __init__(self, network: nn.Module, prediction: PredictionType, schedule: Schedule) -> None:
        super().__init__()
        self.network = network
        for name, values in (
            ("x_factor", prediction.x_factor(schedule)),
            ("output_factor", prediction.output_factor(schedule)),
        ):
            self.register_buffer(name, values.to(torch.get_default_dtype()), persistent=False)

    def forward(
        self,
        x: Float[Tensor, "batch *event"],
        t: Int[Tensor, " batch"],
        label: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch *event"]:
        output: Tensor = self.network(x, t) if label is None else self.network(x, t, label)
        return extract(self.x_factor, t, x) * x + extract(self.output_factor, t, x) * output


def x0_from_noise(
    schedule: Schedule,
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """The data x_0 = (x_t − √(1 − ᾱ_t) ε) / √ᾱ_t (book eq. 13.71)."""
    alpha_bar = schedule.alpha_bar
    return extract(alpha_bar.rsqrt(), t, x) * x - extract((1 / alpha_bar - 1).sqrt(), t, x) * noise


def noise_from_x0(
    schedule: Schedule,
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    x0: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """The noise ε = (x_t − √ᾱ_t x_0) / √(1 − ᾱ_t), inverse of `x0_from_noise` (book eq. 13.71)."""
    return (x - extract(schedule.alpha_bar.sqrt(), t, x) * x0) * extract((1 - schedule.alpha_bar).rsqrt(), t, x)


def mean_from_noise(
    schedule: Schedule,
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """The reverse mean μ = x_t / √α_t − (1 − α_t) / (√(1 − ᾱ_t) √α_t) ε (book eqs. 13.72-13.73)."""
    alpha, alpha_bar = schedule.alpha, schedule.alpha_bar
    noise_factor = (1 - alpha) / ((1 - alpha_bar) * alpha).sqrt()
    return extract(alpha.rsqrt(), t, x) * x - extract(noise_factor, t, x) * noise


def noise_from_mean(
    schedule: Schedule,
    x: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    mean: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """The noise ε = √(1 − ᾱ_t) (x_t − √α_t μ) / (1 − α_t), inverse of `mean_from_noise` (book eq. 13.72)."""
    alpha, alpha_bar = schedule.alpha, schedule.alpha_bar
    return (x - extract(alpha.sqrt(), t, x) * mean) * extract((1 - alpha_bar).sqrt() / (1 - alpha), t, x)


def score_from_noise(
    schedule: Schedule, t: Int[Tensor, " batch"], noise: Float[Tensor, "batch *event"]
) -> Float[Tensor, "batch *event"]:
    """The score ∇ log q(x_t) = −ε / √(1 − ᾱ_t) (book sec. 13.3)."""
    return -noise * extract((1 - schedule.alpha_bar).rsqrt(), t, noise)


def noise_from_score(
    schedule: Schedule, t: Int[Tensor, " batch"], score: Float[Tensor, "batch *event"]
) -> Float[Tensor, "batch *event"]:
    """The noise ε = −√(1 − ᾱ_t) ∇ log q(x_t), inverse of `score_from_noise` (book sec. 13.3)."""
    return -score * extract((1 - schedule.alpha_bar).sqrt(), t, score)
