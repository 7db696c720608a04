"""What a network may be asked for instead of the noise: the data, the velocity or the score (book sec. 13.2.4).

Given x_t, all four say the same: each is a line in each other. A `Prediction` holds that line, `AsNoise` makes of a
network for any of them a denoiser, and `weighted(VELOCITY.weight)` is the objective that trains it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.diffusion.process import spread
from parnassus.diffusion.schedules import Schedule


@dataclass(frozen=True)
class Prediction:
    """How the noise inside x_t follows from what a network gives: ε = A_t x_t + B_t output.

    An error of the output becomes an error of ε by the factor B_t, so ‖output error‖² = ‖ε error‖² / B_t².
    """

    of_x: Callable[[Schedule], Tensor]  # A_t
    of_output: Callable[[Schedule], Tensor]  # B_t

    def noise(
        self,
        schedule: Schedule,
        x: Float[Tensor, "batch *event"],
        t: Int[Tensor, " batch"],
        output: Float[Tensor, "batch *event"],
    ) -> Float[Tensor, "batch *event"]:
        """ε = A_t x_t + B_t output."""
        return spread(self.of_x(schedule), t, x) * x + spread(self.of_output(schedule), t, x) * output

    def output(
        self,
        schedule: Schedule,
        x: Float[Tensor, "batch *event"],
        t: Int[Tensor, " batch"],
        noise: Float[Tensor, "batch *event"],
    ) -> Float[Tensor, "batch *event"]:
        """(ε − A_t x_t) / B_t: what the network should have said."""
        return (noise - spread(self.of_x(schedule), t, x) * x) / spread(self.of_output(schedule), t, x)

    def weight(self, schedule: Schedule) -> Float[Tensor, " steps"]:
        """1 / B_t², the weight of ‖ε_θ − ε‖² that makes it the plain squared error of this output."""
        return self.of_output(schedule) ** -2


NOISE = Prediction(lambda schedule: torch.zeros_like(schedule.alpha), lambda schedule: torch.ones_like(schedule.alpha))
"""The network gives ε itself."""

DATA = Prediction(
    lambda schedule: (1 - schedule.alpha_bar).rsqrt(),
    lambda schedule: -(schedule.alpha_bar / (1 - schedule.alpha_bar)).sqrt(),
)
"""The network gives x_0: ε = (x_t − √ᾱ_t x_0) / √(1 − ᾱ_t) (book eq. 13.71). Its weight is 1 / SNR_t."""

VELOCITY = Prediction(lambda schedule: (1 - schedule.alpha_bar).sqrt(), lambda schedule: schedule.alpha_bar.sqrt())
"""The network gives v: ε = √(1 − ᾱ_t) x_t + √ᾱ_t v (Salimans & Ho 2022). Its weight is 1 / ᾱ_t = 1 + 1 / SNR_t."""

SCORE = Prediction(lambda schedule: torch.zeros_like(schedule.alpha), lambda schedule: -(1 - schedule.alpha_bar).sqrt())
"""The network gives ∇ log q(x_t) = −ε / √(1 − ᾱ_t) (book sec. 13.3)."""


def velocity(
    schedule: Schedule,
    x0: Float[Tensor, "batch *event"],
    t: Int[Tensor, " batch"],
    noise: Float[Tensor, "batch *event"],
) -> Float[Tensor, "batch *event"]:
    """The velocity v = √ᾱ_t ε − √(1 − ᾱ_t) x_0 (Salimans & Ho 2022).

    With √ᾱ_t = cos φ, x_t = cos φ x_0 + sin φ ε runs along a quarter of a circle, and v = dx_t/dφ. It is as long as
    the data at every step, where ε tells little of x_0 in pure noise and x_0 little of ε in clean data.
    """
    return spread(schedule.alpha_bar.sqrt(), t, x0) * noise - spread((1 - schedule.alpha_bar).sqrt(), t, x0) * x0


class AsNoise(nn.Module):
    """A network that was asked for something else, as the denoiser ε(x_t, t) that samplers, guidance and DDPM take.

        ε = A_t x_t + B_t network(x_t, t)

    To learn v: `DDPM(AsNoise(network, VELOCITY, schedule), …, schedule=schedule, objective=weighted(VELOCITY.weight))`.
    """

    of_x: Tensor
    of_output: Tensor

    def __init__(self, network: nn.Module, prediction: Prediction, schedule: Schedule) -> None:
        super().__init__()
        self.network = network
        for name, values in (("of_x", prediction.of_x(schedule)), ("of_output", prediction.of_output(schedule))):
            self.register_buffer(name, values.to(torch.get_default_dtype()), persistent=False)

    def forward(
        self,
        x: Float[Tensor, "batch *event"],
        t: Int[Tensor, " batch"],
        label: Int[Tensor, " batch"] | None = None,
    ) -> Float[Tensor, "batch *event"]:
        output: Tensor = self.network(x, t) if label is None else self.network(x, t, label)
        return spread(self.of_x, t, x) * x + spread(self.of_output, t, x) * output
