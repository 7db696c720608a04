"""Kernels against their formulas, scikit-learn, and properties of covariances."""

from math import exp

import pytest
import torch
from sklearn.gaussian_process import kernels as reference
from torch import Tensor

from parnassus.kernels import (
    RBF,
    Brownian,
    FeatureKernel,
    Kernel,
    Linear,
    OrnsteinUhlenbeck,
    Product,
    Scaled,
    Sum,
    squared_distances,
)


def points(count: int, dim: int = 3, seed: int = 0) -> Tensor:
    return torch.randn(count, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


KERNELS: dict[str, Kernel] = {
    "linear": Linear(),
    "rbf": RBF(0.7),
    "ou": OrnsteinUhlenbeck(1.3),
    "features": FeatureKernel(lambda x: torch.cat([x.sin(), x.cos()], 1)),
    "scaled": Scaled(RBF(), 2.5),
    "sum": Sum(RBF(2.0), Scaled(Linear(), 0.3)),
    "product": Product(OrnsteinUhlenbeck(), Linear()),
}


@pytest.mark.parametrize("name", KERNELS)
def test_matrix_is_symmetric_and_consistent_with_diagonal_and_blocks(name: str) -> None:
    kernel, x = KERNELS[name], points(9)
    matrix = kernel(x)
    torch.testing.assert_close(matrix.diagonal(), kernel.diagonal(x))
    torch.testing.assert_close(matrix, matrix.mT)
    torch.testing.assert_close(matrix[:4, 4:], kernel(x[:4], x[4:]))


@pytest.mark.parametrize("name", KERNELS)
def test_float32_is_preserved(name: str) -> None:
    assert KERNELS[name](points(4).float()).dtype == torch.float32


def test_kernels_match_their_formulas() -> None:
    x, y = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])  # distance 5
    assert RBF(2.0)(x, y).item() == pytest.approx(exp(-25 / 8), rel=1e-6)
    assert OrnsteinUhlenbeck(2.0)(x, y).item() == pytest.approx(exp(-5 / 2), rel=1e-6)
    assert float(Linear()(x + 1, y)) == pytest.approx(7.0)
    assert float(Brownian()(torch.tensor([[2.0]]), torch.tensor([[0.5]]))) == 0.5


def test_kernels_match_scikit_learn() -> None:
    x, y = points(6), points(8, seed=1)
    for kernel, expected in (
        (RBF(0.6), reference.RBF(0.6)),
        (OrnsteinUhlenbeck(0.6), reference.Matern(0.6, nu=0.5)),
        (Linear(), reference.DotProduct(0.0)),
        (Sum(Scaled(RBF(0.6), 3.0), Linear()), 3.0 * reference.RBF(0.6) + reference.DotProduct(0.0)),
        (Product(RBF(0.6), OrnsteinUhlenbeck(2.0)), reference.RBF(0.6) * reference.Matern(2.0, nu=0.5)),
    ):
        torch.testing.assert_close(kernel(x, y), torch.from_numpy(expected(x.numpy(), y.numpy())))


def test_squared_distances_are_accurate_far_from_the_origin() -> None:
    x, y = points(5), points(7, seed=1)
    exact = (x[:, None] - y).square().sum(-1)
    torch.testing.assert_close(squared_distances(x + 1e5, y + 1e5), exact, rtol=1e-9, atol=1e-9)
    assert float(squared_distances(x).diagonal().abs().max()) < 1e-14


def test_ornstein_uhlenbeck_is_accurate_for_nearly_equal_points() -> None:
    x = points(40) + 1e3
    near = x + 1e-6 / 3**0.5
    torch.testing.assert_close(
        1 - OrnsteinUhlenbeck()(x, near).diagonal(), torch.full((40,), 1e-6).double(), rtol=1e-4, atol=0
    )


@pytest.mark.parametrize("kernel", [RBF(0.8), OrnsteinUhlenbeck(0.8)])
def test_gradients_are_finite_for_coinciding_points(kernel: RBF | OrnsteinUhlenbeck) -> None:
    x = torch.cat([points(3), points(3)]).requires_grad_()
    kernel(x).sum().backward()
    assert x.grad is not None
    assert kernel.log_length.grad is not None
    assert bool(x.grad.isfinite().all())
    step = 1e-6
    higher, lower = (type(kernel)(0.8 * exp(sign * step))(x).sum() for sign in (1, -1))
    torch.testing.assert_close(kernel.log_length.grad, ((higher - lower) / (2 * step)).detach(), rtol=1e-6, atol=1e-6)


def test_lengths_and_variances_are_stored() -> None:
    assert RBF(0.3).length == pytest.approx(0.3)
    assert OrnsteinUhlenbeck(7.0).length == pytest.approx(7.0)
    assert Scaled(RBF(), 1e-4).variance == pytest.approx(1e-4)
    assert len(list(Sum(RBF(), Scaled(RBF(), 2.0)).parameters())) == 3


@pytest.mark.parametrize("length", [0.0, -1.0, float("nan"), float("inf")])
def test_invalid_lengths_and_variances_raise_value_error(length: float) -> None:
    with pytest.raises(ValueError, match="length must be positive"):
        RBF(length)
    with pytest.raises(ValueError, match="length must be positive"):
        OrnsteinUhlenbeck(length)
    with pytest.raises(ValueError, match="variance must be positive"):
        Scaled(RBF(), length)


@pytest.mark.parametrize("name", KERNELS)
def test_points_of_unequal_sizes_raise_value_error(name: str) -> None:
    with pytest.raises(ValueError, match="number of features; got 3 and 2"):
        KERNELS[name](points(4), points(4, 2))


def test_brownian_motion_requires_nonnegative_times() -> None:
    with pytest.raises(ValueError, match="got 2 columns"):
        Brownian()(torch.rand(3, 2))
    with pytest.raises(ValueError, match="minimum -1"):
        Brownian().diagonal(torch.tensor([[0.0], [-1.0]]))
