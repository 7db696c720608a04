"""Cholesky factors of positive definite, singular and indefinite matrices."""

import pytest
import torch
from torch import Tensor

from parnassus.kernels import RBFKernel, jittered_cholesky


def grid(count: int) -> Tensor:
    return torch.linspace(0, 1, count, dtype=torch.float64)[:, None]


def test_positive_definite_matrix_needs_no_jitter() -> None:
    matrix = RBFKernel(0.1)(grid(5)).detach()
    root, jitter = jittered_cholesky(matrix)
    assert jitter == 0
    torch.testing.assert_close(root, torch.linalg.cholesky(matrix))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_reported_jitter_is_added(scale: float) -> None:
    matrix = scale * RBFKernel()(grid(50)).detach()  # numerical rank about 8
    root, jitter = jittered_cholesky(matrix)
    assert 0 < jitter <= 1e-10 * scale
    torch.testing.assert_close(root @ root.mT, matrix + jitter * torch.eye(50), rtol=0, atol=1e-14 * scale)


def test_duplicate_points_need_jitter() -> None:
    x = torch.cat([grid(6), grid(6)[3:4]])
    root, jitter = jittered_cholesky(RBFKernel(0.1)(x).detach())
    assert jitter > 0
    assert float(root.diagonal().min() ** 2) > 0.5 * jitter


def test_pivot_of_rounding_size_needs_jitter() -> None:
    """`torch.linalg.cholesky_ex` accepts this matrix with a pivot of one rounding error."""
    matrix = torch.ones(2, 2, dtype=torch.float64)
    matrix[1, 1] += torch.finfo(torch.float64).eps
    assert int(torch.linalg.cholesky_ex(matrix).info) == 0
    assert jittered_cholesky(matrix).jitter > 0


def test_gradients_flow_through_the_root() -> None:
    kernel = RBFKernel(0.1)
    jittered_cholesky(kernel(grid(5))).root.diagonal().log().sum().backward()
    assert kernel.log_length.grad is not None
    assert float(kernel.log_length.grad) < 0  # longer lengths, smaller determinants


def test_indefinite_matrix_raises_value_error() -> None:
    with pytest.raises(ValueError, match="add noise, drop duplicate points"):
        jittered_cholesky(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))


def test_nan_raises_value_error() -> None:
    with pytest.raises(ValueError, match="must be finite"):
        jittered_cholesky(torch.full((2, 2), torch.nan))
