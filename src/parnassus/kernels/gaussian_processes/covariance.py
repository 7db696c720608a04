"""Kernels: covariance functions, and sums, products and multiples of them (book sec. 15.1).

A kernel maps points x (n, dim) and optional points y (m, dim) to the n × m matrix K(x_i, y_j). Positive
hyperparameters are stored as logarithms, so that no optimiser step makes them negative.
"""

from collections.abc import Callable
from math import isfinite, log
from typing import Protocol, TypeAlias, cast, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.probability.divergences.rbf_kernel import rbf_of_squared_distances, second_points, squared_distances

Features: TypeAlias = Callable[[Tensor], Tensor]
"""Maps points (n, dim) to features φ(x), (n, features)."""


@runtime_checkable
class Kernel(Protocol):
    """K(x, x′) = Cov(y(x), y(x′)): symmetric, and positive semi-definite on any points (book sec. 15.1)."""

    def __call__(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]: ...

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        """The variances K(x_i, x_i), without computing the full matrix."""
        ...


class LinearKernel(nn.Module):
    """K(x, x′) = xᵀx′: paths are straight lines through 0 (book sec. 15.1).

    >>> LinearKernel()(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]])).item()
    11.0
    """

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        return x @ second_points(x, y).mT

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return x.square().sum(1)


class _Stationary(nn.Module):
    """A stationary kernel with length scale s and K(x, x) = 1."""

    def __init__(self, length: float = 1.0) -> None:
        super().__init__()
        self.log_length = log_parameter("length", length)

    @property
    def length(self) -> float:
        return float(self.log_length.detach().exp())

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return x.new_ones(len(x))


class RBFKernel(_Stationary):
    """K(x, x′) = exp(−‖x − x′‖² / 2s²) with length scale s: smooth, stationary paths (book sec. 15.1).

    >>> RBFKernel()(torch.zeros(1, 2), torch.zeros(1, 2)).item()
    1.0
    """

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        scale = torch.exp(-self.log_length)
        return rbf_of_squared_distances(squared_distances(scale * x, y if y is None else scale * y))


class OrnsteinUhlenbeckKernel(_Stationary):
    """K(x, x′) = exp(−‖x − x′‖ / s) with length scale s: rough, stationary paths (book sec. 15.1).

    >>> OrnsteinUhlenbeckKernel()(torch.zeros(1, 2), torch.zeros(1, 2)).item()
    1.0
    """

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        exact = "donot_use_mm_for_euclid_dist"  # a product rounds distances near 0 to 10⁻⁸, where K has its kink
        distance: Tensor = torch.cdist(x, second_points(x, y), compute_mode=exact)
        return torch.exp(-distance * torch.exp(-self.log_length))


class BrownianKernel(nn.Module):
    """K(s, t) = min(s, t) on times s, t ≥ 0: Var y(t) = t, so it is not stationary (book sec. 15.1).

    >>> BrownianKernel()(torch.tensor([[1.0], [3.0]]), torch.tensor([[2.0]])).flatten().tolist()
    [1.0, 2.0]
    """

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        y = second_points(x, y)
        return torch.minimum(_times(x)[:, None], _times(y))

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return _times(x)


class FeatureKernel(nn.Module):
    """K(x, x′) = φ(x)ᵀφ(x′), the covariance of wᵀφ(x) with weights w ~ N(0, I) (book eq. 15.1).

    >>> FeatureKernel(lambda x: torch.cat([x, x**2], 1))(torch.tensor([[2.0]]), torch.tensor([[1.0]])).item()
    6.0
    """

    def __init__(self, features: Features) -> None:
        super().__init__()
        self.features = features

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        phi = self.features(x)
        return phi @ (phi if y is None else self.features(second_points(x, y))).mT

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return self.features(x).square().sum(1)


class ScaledKernel(nn.Module):
    """v K(x, x′), the kernel of √v y(x).

    >>> ScaledKernel(RBFKernel(), variance=4.0)(torch.zeros(1, 2), torch.zeros(1, 2)).item()
    4.0
    """

    def __init__(self, kernel: Kernel, variance: float = 1.0) -> None:
        super().__init__()
        self.kernel = kernel
        self.log_variance = log_parameter("variance", variance)

    @property
    def variance(self) -> float:
        return float(self.log_variance.detach().exp())

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        return self.log_variance.exp() * self.kernel(x, y)

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return self.log_variance.exp() * self.kernel.diagonal(x)


class _CombinedKernel(nn.Module):
    """The kernels of a sum or a product."""

    def __init__(self, first: Kernel, *others: Kernel) -> None:
        super().__init__()
        self.kernels = nn.ModuleList(cast("list[nn.Module]", [first, *others]))


class SumKernel(_CombinedKernel):
    """K₁ + K₂ + …: the kernel of a sum of independent processes.

    >>> SumKernel(RBFKernel(), LinearKernel())(torch.ones(1, 2), torch.ones(1, 2)).item()
    3.0
    """

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        return torch.stack([kernel(x, y) for kernel in self.kernels]).sum(0)

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return torch.stack([cast("Kernel", kernel).diagonal(x) for kernel in self.kernels]).sum(0)


class ProductKernel(_CombinedKernel):
    """K₁ K₂ …, entrywise: the kernel of a product of independent processes of mean 0.

    >>> ProductKernel(RBFKernel(), LinearKernel())(torch.ones(1, 2), torch.ones(1, 2)).item()
    2.0
    """

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        return torch.stack([kernel(x, y) for kernel in self.kernels]).prod(0)

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return torch.stack([cast("Kernel", kernel).diagonal(x) for kernel in self.kernels]).prod(0)


def _times(x: Tensor) -> Tensor:
    if x.shape[1] != 1 or not bool((x >= 0).all()):
        minimum = float(x.min()) if x.numel() else 0.0
        raise ValueError(
            f"Brownian motion needs times t ≥ 0 in one column; got {x.shape[1]} columns, minimum {minimum:g}"
        )
    return x[:, 0]


def log_parameter(name: str, value: float) -> nn.Parameter:
    """The logarithm of a positive value, as a trainable parameter."""
    if not (value > 0 and isfinite(value)):
        raise ValueError(f"{name} must be positive and finite; got {name}={value}")
    return nn.Parameter(torch.tensor(log(value), dtype=torch.float64))  # 0-dimensional: float32 points stay float32
