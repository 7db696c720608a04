"""Kernels and scaled distances."""

import pytest
import torch

from parnassus.attention.regression.kernels import (
    RadialKernel,
    boxcar_kernel,
    constant_kernel,
    distances,
    epanechnikov_kernel,
    gaussian_kernel,
    similarity,
    triangular_kernel,
)

U = torch.tensor([0.0, 0.5, 1.0, 2.0], dtype=torch.float64)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (gaussian_kernel, [1.0, 0.8824969025845955, 0.6065306597126334, 0.1353352832366127]),
        (boxcar_kernel, [1.0, 1.0, 1.0, 0.0]),
        (triangular_kernel, [1.0, 0.5, 0.0, 0.0]),
        (epanechnikov_kernel, [0.75, 0.5625, 0.0, 0.0]),
        (constant_kernel, [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_kernels_match_known_values(kernel: RadialKernel, expected: list[float]) -> None:
    torch.testing.assert_close(kernel(U), torch.tensor(expected, dtype=torch.float64))


def test_coordinates_are_scaled_by_their_bandwidths() -> None:
    q, k = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 8.0]])
    assert float(distances(q, k)) == pytest.approx(73**0.5)
    assert float(distances(q, k, torch.tensor([1.0, 2.0]))) == pytest.approx(5.0)
    assert float(similarity(q, k, kernel=triangular_kernel, bandwidth=torch.tensor([3.0, 1e9]))) == pytest.approx(
        0.0, abs=1e-6
    )


def test_distances_of_close_points_are_accurate() -> None:
    """By default, torch.cdist uses a matrix product for many rows, which loses this distance to rounding."""
    far = torch.full((50, 2), 1e4)
    near = far.clone()
    near[:, 0] += 0.25
    torch.testing.assert_close(distances(far, near), torch.full((50, 50), 0.25))


def test_invalid_arguments_raise_value_error() -> None:
    x = torch.zeros(2, 3)
    with pytest.raises(ValueError, match="bandwidth must be positive; got bandwidth=0"):
        distances(x, x, 0.0)
    with pytest.raises(ValueError, match=r"one entry per feature \(3\); got"):
        distances(x, x, torch.ones(2))
    with pytest.raises(ValueError, match="bandwidths must be positive; got a minimum of -1"):
        similarity(x, x, bandwidth=torch.tensor([1.0, -1.0, 2.0]))
