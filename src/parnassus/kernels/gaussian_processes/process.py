"""Gaussian processes: distributions over functions, given by a mean and a kernel (book sec. 15.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.kernels.gaussian_processes.covariance import Kernel
from parnassus.kernels.solvers.jittered_cholesky import jittered_cholesky
from parnassus.probability import Gaussian

Mean: TypeAlias = Callable[[Tensor], Tensor]
"""Maps points (n, dim) to the means μ(x_i), (n)."""


def zero_mean(x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
    """μ(x) = 0, the usual prior mean (book sec. 15.1)."""
    return x.new_zeros(len(x))


class SamplePaths(NamedTuple):
    """Values of `count` sampled functions at n points, and the jitter added to their covariance."""

    values: Float[Tensor, "count n"]
    jitter: float

    def rms_increments(self, strides: Sequence[int]) -> Float[Tensor, " strides"]:
        """√mean (y(x_{i+k}) − y(x_i))² over all i and paths, for each stride k."""
        y = self.values
        return torch.stack([(y[:, stride:] - y[:, :-stride]).square().mean().sqrt() for stride in strides])


@dataclass(frozen=True)
class GaussianProcess:
    """GP(μ, K), also called a Gaussian random field where points have several coordinates (book sec. 15.1).

        (y(x_1), …, y(x_N)) ~ N(μ_N, K_N),   μ_N = (μ(x_n)),   K_N = (K(x_n, x_m))

    for any finitely many points.
    """

    kernel: Kernel
    mean: Mean = zero_mean

    def distribution(self, x: Float[Tensor, "n dim"]) -> Gaussian:
        """The joint distribution of the values at the points x; it may be singular."""
        return Gaussian(self.mean(x), self.kernel(x).detach())

    @torch.no_grad()
    def variances(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        """Var y(x_i) at each point; constant if the process is stationary."""
        return self.kernel.diagonal(x)

    @torch.no_grad()
    def sample(self, x: Float[Tensor, "n dim"], count: int, *, generator: torch.Generator | None = None) -> SamplePaths:
        """Samples μ + R ε at the points x, with R Rᵀ = K_N + jitter I and ε ~ N(0, I)."""
        if count < 1 or not len(x):
            raise ValueError(f"sampling needs at least one point and count ≥ 1; got {len(x)} points, count={count}")
        root, jitter = jittered_cholesky(self.kernel(x))
        noise = torch.randn(count, len(x), generator=generator, dtype=x.dtype, device=x.device)
        return SamplePaths(self.mean(x) + noise @ root.mT, jitter)


def brownian_paths(
    times: Float[Tensor, " n"], count: int, *, generator: torch.Generator | None = None
) -> Float[Tensor, "{count} n"]:
    """Brownian motion by its increments: y(t_i) = Σ_{j≤i} √(t_j − t_{j−1}) ε_j from y(0) = 0 (book sec. 15.1).

    The distribution of `GaussianProcess(Brownian())`, in O(n) where a Cholesky root takes O(n³).
    """
    steps = times.diff(prepend=times.new_zeros(1))
    if not bool((steps >= 0).all()):
        raise ValueError("times must be non-negative and non-decreasing")
    check_positive(count=count)
    noise = torch.randn(count, len(times), generator=generator, dtype=times.dtype, device=times.device)
    return (steps.sqrt() * noise).cumsum(1)
