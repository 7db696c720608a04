"""Length scales, variances and noise of a Gaussian process by ascent on its marginal likelihood (book sec. 15.1)."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from math import log
from typing import Generic, Protocol, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Adam
from torch.optim.lr_scheduler import CosineAnnealingLR

from parnassus.kernels.covariance import Kernel
from parnassus.kernels.gp_regression import GPRegression


class Tunable(Kernel, Protocol):
    """A kernel with parameters, as every nn.Module has them."""

    def parameters(self) -> Iterator[nn.Parameter]: ...


Tuned = TypeVar("Tuned", bound=Tunable)


@dataclass(frozen=True)
class Learned(Generic[Tuned]):
    """The best kernel and noise variance found, and what each start came to."""

    kernel: Tuned
    noise: float
    log_marginal_likelihood: float
    ends: Float[Tensor, " starts"]


def learn_hyperparameters(
    kernel: Tuned,
    x: Float[Tensor, "n dim"],
    t: Float[Tensor, "rows *outputs"],
    *,
    noise: float = 0.1,
    least_noise: float = 1e-6,
    starts: int = 4,
    spread: float = 1.0,
    steps: int = 150,
    rate: float = 0.1,
    generator: torch.Generator | None = None,
) -> Learned[Tuned]:
    """Ascend log p(t_N) in the kernel's parameters and log σ² from several starts; the kernel given is not changed.

        ∂/∂θ log p(t_N) = ½ tr((α αᵀ − L_N⁻¹) ∂L_N/∂θ),   α = L_N⁻¹ t_N        (Rasmussen & Williams 2006, eq. 5.9)

    The first start is the kernel as given, the others move every parameter by N(0, spread²): logarithms, so lengths
    by factors. The likelihood has several maxima (all signal, or all noise), and which one is found depends on the
    start.
    """
    if noise <= 0 or least_noise <= 0:
        raise ValueError(f"the noise must begin and stay positive; got noise={noise}, least_noise={least_noise}")
    if starts < 1 or steps < 1 or rate <= 0:
        raise ValueError(f"need starts ≥ 1, steps ≥ 1 and rate > 0; got starts={starts}, steps={steps}, rate={rate}")
    found: list[tuple[float, Tuned, float]] = []
    for start in range(starts):
        own, log_noise = deepcopy(kernel), nn.Parameter(torch.tensor(log(noise), dtype=torch.float64))
        if start:
            _move([*own.parameters(), log_noise], spread, generator)
        found.append(_climb(own, log_noise, x, t, least_noise=least_noise, steps=steps, rate=rate))
    best = max(found, key=lambda end: end[0])
    return Learned(best[1], best[2], best[0], torch.tensor([end[0] for end in found], dtype=torch.float64))


def _climb(
    kernel: Tuned, log_noise: nn.Parameter, x: Tensor, t: Tensor, *, least_noise: float, steps: int, rate: float
) -> tuple[float, Tuned, float]:
    """The likelihood, kernel and noise at the end of one ascent, or the best passed on the way."""
    parameters = [*kernel.parameters(), log_noise]
    optimizer = Adam(parameters, lr=rate)
    schedule = CosineAnnealingLR(optimizer, steps)  # to rest, so that the end is a maximum and no swing around it
    best, kept = -torch.inf, [parameter.detach().clone() for parameter in parameters]
    for step in range(steps + 1):
        likelihood = GPRegression.fit(kernel, x, t, noise=least_noise + log_noise.exp()).log_marginal_likelihood()
        if (height := float(likelihood.detach())) > best:
            best, kept = height, [parameter.detach().clone() for parameter in parameters]
        if step < steps:
            optimizer.zero_grad()
            (-likelihood).backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        for parameter, value in zip(parameters, kept, strict=True):
            parameter.copy_(value)
    return best, kernel, least_noise + float(log_noise.detach().exp())


@torch.no_grad()
def _move(parameters: list[nn.Parameter], spread: float, generator: torch.Generator | None) -> None:
    for parameter in parameters:
        noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        parameter.add_(spread * noise.to(parameter.device))
