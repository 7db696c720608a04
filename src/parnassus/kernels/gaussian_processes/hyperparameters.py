"""Kernel hyperparameters and noise by maximising the marginal likelihood (book sec. 15.1)."""

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

from parnassus.arrays import accepts_arrays
from parnassus.kernels.gaussian_processes.covariance import Kernel
from parnassus.kernels.gaussian_processes.gp_regression import GPRegression


class TrainableKernel(Kernel, Protocol):
    """A kernel with parameters, such as an nn.Module."""

    def parameters(self) -> Iterator[nn.Parameter]: ...


KernelT = TypeVar("KernelT", bound=TrainableKernel)


@dataclass(frozen=True)
class HyperparameterFit(Generic[KernelT]):
    """The best kernel and noise variance, and the log marginal likelihood reached from each start.

    >>> HyperparameterFit(RBFKernel(), 0.1, -3.0, torch.tensor([-3.0, -4.0])).noise_variance
    0.1
    """

    kernel: KernelT
    noise_variance: float
    log_marginal_likelihood: float
    log_marginal_likelihood_per_start: Float[Tensor, " starts"]


@accepts_arrays
def learn_hyperparameters(
    kernel: KernelT,
    x: Float[Tensor, "n dim"],
    t: Float[Tensor, "rows *outputs"],
    *,
    noise_variance: float = 0.1,
    min_noise_variance: float = 1e-6,
    num_starts: int = 4,
    spread: float = 1.0,
    steps: int = 150,
    learning_rate: float = 0.1,
    generator: torch.Generator | None = None,
) -> HyperparameterFit[KernelT]:
    """Maximise log p(t_N) over kernel parameters and log σ² from several starts; `kernel` is not modified.

        ∂/∂θ log p(t_N) = ½ tr((α αᵀ − L_N⁻¹) ∂L_N/∂θ),   α = L_N⁻¹ t_N        (Rasmussen & Williams 2006, eq. 5.9)

    The first start is the kernel as given; the others add N(0, spread²) to every (log-)parameter. The likelihood may
    have several maxima (all signal, or all noise), and the start decides which one is found.
    """
    if noise_variance <= 0 or min_noise_variance <= 0:
        raise ValueError(
            f"noise_variance and min_noise_variance must be positive; got {noise_variance=}, {min_noise_variance=}"
        )
    if num_starts < 1 or steps < 1 or learning_rate <= 0:
        raise ValueError(
            f"num_starts, steps and learning_rate must be positive; got {num_starts=}, {steps=}, {learning_rate=}"
        )
    fits: list[tuple[float, KernelT, float]] = []
    for start in range(num_starts):
        candidate, log_noise = deepcopy(kernel), nn.Parameter(torch.tensor(log(noise_variance), dtype=torch.float64))
        if start:
            _perturb([*candidate.parameters(), log_noise], spread, generator)
        fits.append(
            _ascend(
                candidate,
                log_noise,
                x,
                t,
                min_noise_variance=min_noise_variance,
                steps=steps,
                learning_rate=learning_rate,
            )
        )
    best = max(fits, key=lambda fit: fit[0])
    return HyperparameterFit(best[1], best[2], best[0], torch.tensor([fit[0] for fit in fits], dtype=torch.float64))


def _ascend(
    kernel: KernelT,
    log_noise: nn.Parameter,
    x: Tensor,
    t: Tensor,
    *,
    min_noise_variance: float,
    steps: int,
    learning_rate: float,
) -> tuple[float, KernelT, float]:
    """Log marginal likelihood, kernel and noise at the best step of one ascent."""
    parameters = [*kernel.parameters(), log_noise]
    optimizer = Adam(parameters, lr=learning_rate)
    schedule = CosineAnnealingLR(optimizer, steps)  # decays to 0, so that the ascent ends at a maximum
    best, best_values = -torch.inf, [parameter.detach().clone() for parameter in parameters]
    for step in range(steps + 1):
        likelihood = GPRegression.fit(
            kernel, x, t, noise_variance=min_noise_variance + log_noise.exp()
        ).log_marginal_likelihood()
        if (current := float(likelihood.detach())) > best:
            best, best_values = current, [parameter.detach().clone() for parameter in parameters]
        if step < steps:
            optimizer.zero_grad()
            (-likelihood).backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        for parameter, value in zip(parameters, best_values, strict=True):
            parameter.copy_(value)
    return best, kernel, min_noise_variance + float(log_noise.detach().exp())


@torch.no_grad()
def _perturb(parameters: list[nn.Parameter], spread: float, generator: torch.Generator | None) -> None:
    for parameter in parameters:
        noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        parameter.add_(spread * noise.to(parameter.device))
