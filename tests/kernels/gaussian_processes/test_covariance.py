"""Kernels against their formulas, scikit-learn, and properties of covariances."""

from math import exp

import pytest
import torch
from sklearn.gaussian_process import kernels as reference

from parnassus.kernels import (
    BrownianKernel,
    FeatureKernel,
    Kernel,
    LinearKernel,
    OrnsteinUhlenbeckKernel,
    ProductKernel,
    RBFKernel,
    ScaledKernel,
    SumKernel,
)
from parnassus.probability import standard_normal

KERNELS: dict[str, Kernel] = {
    "linear": LinearKernel(),
    "rbf": RBFKernel(0.7),
    "ou": OrnsteinUhlenbeckKernel(1.3),
    "features": FeatureKernel(lambda x: torch.cat([x.sin(), x.cos()], 1)),
    "scaled": ScaledKernel(RBFKernel(), 2.5),
    "sum": SumKernel(RBFKernel(2.0), ScaledKernel(LinearKernel(), 0.3)),
    "product": ProductKernel(OrnsteinUhlenbeckKernel(), LinearKernel()),
}


@pytest.mark.parametrize("name", KERNELS)
def test_matrix_is_symmetric_and_consistent_with_diagonal_and_blocks(name: str) -> None:
    kernel, x = KERNELS[name], standard_normal(9, 3)
    matrix = kernel(x)
    torch.testing.assert_close(matrix.diagonal(), kernel.diagonal(x))
    torch.testing.assert_close(matrix, matrix.mT)
    torch.testing.assert_close(matrix[:4, 4:], kernel(x[:4], x[4:]))


@pytest.mark.parametrize("name", KERNELS)
def test_float32_is_preserved(name: str) -> None:
    assert KERNELS[name](standard_normal(4, 3).float()).dtype == torch.float32


def test_kernels_match_their_formulas() -> None:
    x, y = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])  # distance 5
    assert RBFKernel(2.0)(x, y).item() == pytest.approx(exp(-25 / 8), rel=1e-6)
    assert OrnsteinUhlenbeckKernel(2.0)(x, y).item() == pytest.approx(exp(-5 / 2), rel=1e-6)
    assert float(LinearKernel()(x + 1, y)) == pytest.approx(7.0)
    assert float(BrownianKernel()(torch.tensor([[2.0]]), torch.tensor([[0.5]]))) == 0.5


def test_kernels_match_scikit_learn() -> None:
    x, y = standard_normal(6, 3), standard_normal(8, 3, seed=1)
    for kernel, expected in (
        (RBFKernel(0.6), reference.RBF(0.6)),
        (OrnsteinUhlenbeckKernel(0.6), reference.Matern(0.6, nu=0.5)),
        (LinearKernel(), reference.DotProduct(0.0)),
        (
            SumKernel(ScaledKernel(RBFKernel(0.6), 3.0), LinearKernel()),
            3.0 * reference.RBF(0.6) + reference.DotProduct(0.0),
        ),
        (
            ProductKernel(RBFKernel(0.6), OrnsteinUhlenbeckKernel(2.0)),
            reference.RBF(0.6) * reference.Matern(2.0, nu=0.5),
        ),
    ):
        torch.testing.assert_close(kernel(x, y), torch.from_numpy(expected(x.numpy(), y.numpy())))


def test_ornstein_uhlenbeck_is_accurate_for_nearly_equal_points() -> None:
    x = standard_normal(40, 3) + 1e3
    near = x + 1e-6 / 3**0.5
    torch.testing.assert_close(
        1 - OrnsteinUhlenbeckKernel()(x, near).diagonal(), torch.full((40,), 1e-6).double(), rtol=1e-4, atol=0
    )


@pytest.mark.parametrize("kernel", [RBFKernel(0.8), OrnsteinUhlenbeckKernel(0.8)])
def test_gradients_are_finite_for_coinciding_points(kernel: RBFKernel | OrnsteinUhlenbeckKernel) -> None:
    x = torch.cat([standard_normal(3, 3), standard_normal(3, 3)]).requires_grad_()
    kernel(x).sum().backward()
    assert x.grad is not None
    assert kernel.log_length.grad is not None
    assert bool(x.grad.isfinite().all())
    step = 1e-6
    higher, lower = (type(kernel)(0.8 * exp(sign * step))(x).sum() for sign in (1, -1))
    torch.testing.assert_close(kernel.log_length.grad, ((higher - lower) / (2 * step)).detach(), rtol=1e-6, atol=1e-6)


def test_lengths_and_variances_are_stored() -> None:
    assert RBFKernel(0.3).length == pytest.approx(0.3)
    assert OrnsteinUhlenbeckKernel(7.0).length == pytest.approx(7.0)
    assert ScaledKernel(RBFKernel(), 1e-4).variance == pytest.approx(1e-4)
    assert len(list(SumKernel(RBFKernel(), ScaledKernel(RBFKernel(), 2.0)).parameters())) == 3


@pytest.mark.parametrize("length", [0.0, -1.0, float("nan"), float("inf")])
def test_invalid_lengths_and_variances_raise_value_error(length: float) -> None:
    with pytest.raises(ValueError, match="length must be positive"):
        RBFKernel(length)
    with pytest.raises(ValueError, match="length must be positive"):
        OrnsteinUhlenbeckKernel(length)
    with pytest.raises(ValueError, match="variance must be positive"):
        ScaledKernel(RBFKernel(), length)


@pytest.mark.parametrize("name", KERNELS)
def test_points_of_unequal_sizes_raise_value_error(name: str) -> None:
    with pytest.raises(ValueError, match="number of features; got 3 and 2"):
        KERNELS[name](standard_normal(4, 3), standard_normal(4, 2))


def test_brownian_motion_requires_nonnegative_times() -> None:
    with pytest.raises(ValueError, match="got 2 columns"):
        BrownianKernel()(torch.rand(3, 2))
    with pytest.raises(ValueError, match="minimum -1"):
        BrownianKernel().diagonal(torch.tensor([[0.0], [-1.0]]))
