"""Kernels: covariance functions, and sums, products and multiples of them (book sec. 15.1).

A kernel is called with points x (n, dim) and perhaps others (m, dim) and gives the n × m matrix K(x_i, y_j). Its
positive numbers are given and read plainly and kept as logarithms, so that no step of an optimiser makes them negative.
"""

from collections.abc import Callable
from math import isfinite, log
from typing import Protocol, TypeAlias, cast, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

Features: TypeAlias = Callable[[Tensor], Tensor]
"""Points (n, dim) in, features φ(x) (n, features) out."""


@runtime_checkable
class Kernel(Protocol):
    """K(x, x′) = Cov(y(x), y(x′)): symmetric, and positive semi-definite on any points (book sec. 15.1)."""

    def __call__(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]: ...

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        """The variances K(x_i, x_i), without the matrix around them."""
        ...


class Linear(nn.Module):
    """K(x, x′) = xᵀx′: paths are straight lines through 0 (book sec. 15.1)."""

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        return x @ _others(x, y).mT

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return x.square().sum(1)


class _OfDistance(nn.Module):
    """What is stationary and has a length scale s, with K(x, x) = 1."""

    def __init__(self, length: float = 1.0) -> None:
        super().__init__()
        self.log_length = log_parameter("length", length)

    @property
    def length(self) -> float:
        return float(self.log_length.detach().exp())

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return x.new_ones(len(x))


class RBF(_OfDistance):
    """K(x, x′) = exp(−‖x − x′‖² / 2s²) with length scale s: smooth, stationary paths (book sec. 15.1)."""

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        scale = torch.exp(-self.log_length)
        return torch.exp(-squared_distances(scale * x, y if y is None else scale * y) / 2)


class OrnsteinUhlenbeck(_OfDistance):
    """K(x, x′) = exp(−‖x − x′‖ / s) with length scale s: rough, stationary paths (book sec. 15.1)."""

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        exact = "donot_use_mm_for_euclid_dist"  # a product would round distances near 0 to 10⁻⁸, where K has its kink
        distance: Tensor = torch.cdist(x, _others(x, y), compute_mode=exact)
        return torch.exp(-distance * torch.exp(-self.log_length))


class Brownian(nn.Module):
    """K(s, t) = min(s, t) on times s, t ≥ 0: Var y(t) = t, so it is not stationary (book sec. 15.1)."""

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        y = _others(x, y)
        return torch.minimum(_times(x)[:, None], _times(y))

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return _times(x)


class FeatureKernel(nn.Module):
    """K(x, x′) = φ(x)ᵀφ(x′), the covariance of wᵀφ(x) with weights w ~ N(0, I) (book eq. 15.1)."""

    def __init__(self, features: Features) -> None:
        super().__init__()
        self.features = features

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        own = self.features(x)
        return own @ (own if y is None else self.features(_others(x, y))).mT

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return self.features(x).square().sum(1)


class Scaled(nn.Module):
    """v K(x, x′): the kernel of √v y(x)."""

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


class Sum(nn.Module):
    """K₁ + K₂ + …: the kernel of a sum of independent processes."""

    def __init__(self, first: Kernel, *others: Kernel) -> None:
        super().__init__()
        self.kernels = _listed(first, *others)

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        return torch.stack([kernel(x, y) for kernel in self.kernels]).sum(0)

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return torch.stack([cast("Kernel", kernel).diagonal(x) for kernel in self.kernels]).sum(0)


class Product(nn.Module):
    """K₁ K₂ …, entry by entry: the kernel of a product of independent processes of mean 0."""

    def __init__(self, first: Kernel, *others: Kernel) -> None:
        super().__init__()
        self.kernels = _listed(first, *others)

    def forward(self, x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
        return torch.stack([kernel(x, y) for kernel in self.kernels]).prod(0)

    def diagonal(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, " n"]:
        return torch.stack([cast("Kernel", kernel).diagonal(x) for kernel in self.kernels]).prod(0)


def squared_distances(x: Float[Tensor, "n dim"], y: Float[Tensor, "m size"] | None = None) -> Float[Tensor, "n m"]:
    """‖x_i − y_j‖² = ‖x_i‖² + ‖y_j‖² − 2 x_iᵀy_j, around the mean of x so that little cancels."""
    y = _others(x, y)
    centre = x.detach().mean(0)
    own, other = x - centre, y - centre
    squares = own.square().sum(1)[:, None] + other.square().sum(1) - 2 * own @ other.mT
    return squares.clamp(min=0)


def _others(x: Tensor, y: Tensor | None) -> Tensor:
    """The second points, which are the first where none were given."""
    if y is None:
        return x
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"all points must have as many features; got {x.shape[1]} and {y.shape[1]}")
    return y


def _times(x: Tensor) -> Tensor:
    if x.shape[1] != 1 or not bool((x >= 0).all()):
        least = float(x.min()) if x.numel() else 0.0
        raise ValueError(
            f"Brownian motion needs times t ≥ 0 in one column; got {x.shape[1]} columns, the least {least:g}"
        )
    return x[:, 0]


def log_parameter(name: str, value: float) -> nn.Parameter:
    """The logarithm of a positive number, to be learned."""
    if not (value > 0 and isfinite(value)):
        raise ValueError(f"the {name} must be positive and finite; got {name}={value}")
    return nn.Parameter(torch.tensor(log(value), dtype=torch.float64))  # a number: it leaves float32 points float32


def _listed(*kernels: Kernel) -> nn.ModuleList:
    return nn.ModuleList(cast("list[nn.Module]", list(kernels)))
