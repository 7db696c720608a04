"""Markov kernels on general spaces: for every point, a distribution of the next point (Diehl sec. 5.1).

A kernel is a function that samples from A(x, ·), one next state per row. A(x, V) = 1 then holds by construction.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.errors import check_positive

MarkovKernel: TypeAlias = Callable[[Tensor, torch.Generator | None], Tensor]
"""kernel(x, generator): a sample from A(x, ·) for each row x."""


def sample_paths(
    kernels: Iterable[MarkovKernel], start: Shaped[Tensor, "count *state"], *, generator: torch.Generator | None = None
) -> Shaped[Tensor, "count time *state"]:
    """X_0, X_1, … from each row of `start`, with one kernel per step; `repeat(kernel, n)` for a homogeneous chain.

    P[X_0 ∈ B] = ν(B),   P[X_{n+1} ∈ B | X_n = x] = A_n(x, B)                                  (Diehl ex. 5.10)
    """
    path = [start]
    for kernel in kernels:
        path.append(kernel(path[-1], generator))
    return torch.stack(path, 1)


def kernel_mass(
    kernel: MarkovKernel,
    x: Shaped[Tensor, "*state"],
    event: Callable[[Tensor], Bool[Tensor, " draws"]],
    *,
    draws: int = 10_000,
    generator: torch.Generator | None = None,
) -> float:
    """A(x, B), estimated as the fraction of samples from A(x, ·) in the event B (Diehl ex. 5.10)."""
    check_positive(draws=draws)
    return float(event(kernel(x.expand(draws, *x.shape), generator)).double().mean())


@dataclass(frozen=True)
class LinearGaussianKernel:
    """Scaling by a factor c plus Gaussian noise, a linear Gaussian transition (Diehl ex. 5.10).

        A(x, ·) = N(c x, Σ)
        composition:   N(c₂ c₁ x, c₂² Σ₁ + Σ₂)
        n-th power:    N(cⁿ x, (1 + c² + … + c²⁽ⁿ⁻¹⁾) Σ),   for c = 1  N(x, n Σ)

    c = 1 is the Gaussian random walk; c = √α and Σ = (1 − α) 1 the forward step of a diffusion model.

    >>> LinearGaussianKernel(torch.eye(1), factor=0.5).power(2).covariance.tolist()
    [[1.25]]
    """

    covariance: Float[Tensor, "dim dim"]
    factor: float = 1.0

    def __post_init__(self) -> None:
        is_symmetric = torch.allclose(self.covariance, self.covariance.mT)
        if not is_symmetric or int(torch.linalg.cholesky_ex(self.covariance).info) != 0:
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

    def compose(self, other: "LinearGaussianKernel") -> "LinearGaussianKernel":
        """The composition with a kernel that is applied after this one: ∫ A₁(x, dy) A₂(y, ·)."""
        covariance = other.factor**2 * self.covariance + other.covariance
        return LinearGaussianKernel(covariance, other.factor * self.factor)

    def power(self, steps: int) -> "LinearGaussianKernel":
        """The composition of `steps` copies of this kernel."""
        check_positive(steps=steps)
        total = sum(self.factor ** (2 * step) for step in range(steps))
        return LinearGaussianKernel(total * self.covariance, self.factor**steps)
