"""Markov kernels: from every point of a space, a law for the next point (Diehl sec. 5.1).

A kernel is anything that draws from A(x, ·), one next state for each row of states. That A(x, V) = 1 is then no
condition to check: every draw lands somewhere.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.distributions import MultivariateNormal

Kernel: TypeAlias = Callable[[Tensor, torch.Generator | None], Tensor]
"""kernel(x, generator): for each row x a draw from A(x, ·)."""


def walk(
    kernels: Iterable[Kernel], start: Shaped[Tensor, "count *state"], *, generator: torch.Generator | None = None
) -> Shaped[Tensor, "count time *state"]:
    """X_0, X_1, … from each row of `start`, a kernel for every step; `repeat(kernel, n)` makes n equal ones.

    P[X_0 ∈ B] = ν(B),   P[X_{n+1} ∈ B | X_n = x] = A_n(x, B)                                  (Diehl ex. 5.10)
    """
    path = [start]
    for kernel in kernels:
        path.append(kernel(path[-1], generator))
    return torch.stack(path, 1)


def kernel_mass(
    kernel: Kernel,
    x: Shaped[Tensor, "*state"],
    event: Callable[[Tensor], Bool[Tensor, " draws"]],
    *,
    draws: int = 10_000,
    generator: torch.Generator | None = None,
) -> float:
    """A(x, B) as the share of draws from A(x, ·) that lie in the event B (Diehl ex. 5.10)."""
    if draws < 1:
        raise ValueError(f"draws must be positive; got draws={draws}")
    return float(event(kernel(x.expand(draws, *x.shape), generator)).double().mean())


@dataclass(frozen=True)
class GaussianKernel:
    """Shrink or stretch by a factor c, then add normal noise (Diehl ex. 5.10).

        A(x, ·) = N(c x, Σ)
        two of them in a row:  N(c₂ c₁ x, c₂² Σ₁ + Σ₂)
        n equal ones:          N(cⁿ x, (1 + c² + … + c²⁽ⁿ⁻¹⁾) Σ),   for c = 1  N(x, n Σ)

    c = 1 is the random walk with Gaussian steps. With c = √α and Σ = (1 − α) 1 it is a step of a diffusion model.
    """

    covariance: Float[Tensor, "dim dim"]
    factor: float = 1.0

    def __post_init__(self) -> None:
        symmetric = torch.allclose(self.covariance, self.covariance.mT)
        if not symmetric or int(torch.linalg.cholesky_ex(self.covariance).info) != 0:
            raise ValueError(f"a covariance must be symmetric and positive definite; got {self.covariance.tolist()}")

    def __call__(
        self, x: Float[Tensor, "count dim"], generator: torch.Generator | None = None
    ) -> Float[Tensor, "count dim"]:
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
        root: Tensor = torch.linalg.cholesky(self.covariance)
        return self.factor * x + noise @ root.mT

    def log_prob(self, x: Float[Tensor, "*batch dim"], y: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
        """The logarithm of the density of A(x, ·) at y."""
        density: Tensor = MultivariateNormal(self.factor * x, self.covariance).log_prob(y)
        return density

    def then(self, other: "GaussianKernel") -> "GaussianKernel":
        """This kernel followed by another, in one: ∫ A₁(x, dy) A₂(y, ·)."""
        covariance = other.factor**2 * self.covariance + other.covariance
        return GaussianKernel(covariance, other.factor * self.factor)

    def repeated(self, steps: int) -> "GaussianKernel":
        """`steps` of these kernels in a row, in one."""
        if steps < 1:
            raise ValueError(f"steps must be positive; got steps={steps}")
        powers = sum(self.factor ** (2 * step) for step in range(steps))
        return GaussianKernel(powers * self.covariance, self.factor**steps)
