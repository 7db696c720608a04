"""Kernels of inputs, and broadcasting of variances."""

import pytest
import torch

from parnassus.kernels import KernelState
from parnassus.kernels.infinite_width.kernel_state import variance
from parnassus.probability import standard_normal


def test_from_inputs_has_mean_products_and_zero_ntk() -> None:
    x, y = standard_normal(4, 5), standard_normal(3, 5, seed=1)
    pair = KernelState.from_inputs(x, y)
    torch.testing.assert_close(pair.nngp, torch.einsum("nd,md->nm", x, y) / 5)
    torch.testing.assert_close(pair.left, x.square().mean(1))
    torch.testing.assert_close(pair.right, y.square().mean(1))
    assert pair.ntk is not None
    assert not bool(pair.ntk.any())
    assert (pair.features, pair.position_axes) == (5, 0)
    assert KernelState.from_inputs(x, y, tangent=False).ntk is None


def test_diagonal_equals_the_variances_exactly() -> None:
    x = standard_normal(300, 784)
    assert torch.equal(KernelState.from_inputs(x, x).nngp.diagonal(), variance(x))


def test_variances_broadcast_against_covariances() -> None:
    pair = KernelState.from_inputs(standard_normal(4, 5), standard_normal(3, 5, seed=1))
    left, right = pair.broadcast_variances()
    assert (left.shape, right.shape) == ((4, 1), (1, 3))
    assert bool((pair.nngp.square() <= left * right).all())  # Cauchy-Schwarz inequality


def test_unequal_features_raise_value_error() -> None:
    with pytest.raises(ValueError, match="x and y must have the same features; got 5 and 6"):
        KernelState.from_inputs(standard_normal(4, 5), standard_normal(4, 6))
