"""The kernels of inputs, and how variances meet covariances."""

import pytest
import torch
from torch import Tensor

from parnassus.kernels import Pair
from parnassus.kernels.pair import variance


def points(count: int, dim: int = 5, seed: int = 0) -> Tensor:
    return torch.randn(count, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_inputs_have_their_mean_product_and_nothing_learned() -> None:
    x, y = points(4), points(3, seed=1)
    pair = Pair.of_inputs(x, y)
    torch.testing.assert_close(pair.nngp, torch.einsum("nd,md->nm", x, y) / 5)
    torch.testing.assert_close(pair.left, x.square().mean(1))
    torch.testing.assert_close(pair.right, y.square().mean(1))
    assert pair.ntk is not None
    assert not bool(pair.ntk.any())
    assert (pair.features, pair.places) == (5, 0)
    assert Pair.of_inputs(x, y, tangent=False).ntk is None


def test_the_diagonal_is_the_variances_to_the_last_bit() -> None:
    x = points(300, 784)
    assert torch.equal(Pair.of_inputs(x, x).nngp.diagonal(), variance(x))


def test_variances_meet_covariances() -> None:
    pair = Pair.of_inputs(points(4), points(3, seed=1))
    left, right = pair.spreads()
    assert (left.shape, right.shape) == ((4, 1), (1, 3))
    assert bool((pair.nngp.square() <= left * right).all())  # Cauchy and Schwarz


def test_unequal_features_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="both sides must have the same features; got 5 and 6"):
        Pair.of_inputs(points(4), points(4, 6))
