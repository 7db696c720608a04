"""Kernels of all layers against `Network.kernels` and sampling."""

import pytest
import torch

from parnassus.kernels import Erf, ReLU, fully_connected, layer_kernels, propagate_signals, random_weights
from parnassus.probability import standard_normal

DOUBLE = torch.float64
X = standard_normal(4, 3)
Y = standard_normal(2, 3, seed=1)


@pytest.mark.parametrize("nonlinearity", [ReLU(), Erf()])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_last_layer_matches_network_kernels(nonlinearity: ReLU | Erf, depth: int) -> None:
    kernels, network = layer_kernels(depth, nonlinearity, X, Y), fully_connected(depth, nonlinearity).kernels(X, Y)
    torch.testing.assert_close(kernels.values[-1], network.nngp)
    torch.testing.assert_close(kernels.ntk(), network.ntk)
    torch.testing.assert_close(kernels.ntk_by_recursion(), network.ntk)
    assert kernels.values.shape == (depth + 1, 4, 2)
    assert kernels.derivatives.shape == (depth, 4, 2)


def test_derivative_covariances_match_a_wide_layer() -> None:
    weights = random_weights((3, 200_000, 1), generator=torch.Generator().manual_seed(2))
    backward = propagate_signals(weights, X, Erf()).backward[0]
    torch.testing.assert_close(backward @ backward.mT, layer_kernels(1, Erf(), X).backward()[0], rtol=0.03, atol=0.01)


def test_negative_depth_raises_value_error() -> None:
    with pytest.raises(ValueError, match="depth must not be negative; got depth=-1"):
        layer_kernels(-1, ReLU(), X)
