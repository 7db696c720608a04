"""MADE: masks, and dependencies of the outputs from the Jacobian."""

import pytest
import torch
from torch.func import jacrev

from parnassus.flows import MADE, MaskedDense, autoregressive_masks, unit_degrees
from parnassus.layers import tanh


@pytest.mark.parametrize("features", [1, 2, 5, 9])
@pytest.mark.parametrize("hidden", [(), (7,), (16, 3, 11)])
def test_outputs_do_not_depend_on_the_same_or_later_inputs(features: int, hidden: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    network = MADE(features, 3, hidden_sizes=hidden, activation=tanh).double()
    z = torch.randn(features, dtype=torch.float64)
    jacobian = jacrev(lambda point: network(point[None])[0])(z)  # features, outputs, features
    assert jacobian.shape == (features, 3, features)
    dependence = jacobian.abs().sum(1)
    assert not dependence.triu().any()


@pytest.mark.parametrize("features", [2, 6])
def test_outputs_depend_on_all_earlier_inputs(features: int) -> None:
    """The masks must not remove dependencies on earlier inputs."""
    torch.manual_seed(0)
    network = MADE(features, 1, hidden_sizes=(32, 32), activation=tanh).double()
    jacobian = jacrev(lambda point: network(point[None])[0, :, 0])(torch.randn(features, dtype=torch.float64))
    below = torch.tril(torch.ones(features, features), -1).bool()
    assert (jacobian[below] != 0).all()


def test_masks_of_a_small_network() -> None:
    """D = 3, hidden degrees 1, 2, 1, 2: output 1 depends on no degree, output 2 on degree 1, output 3 on both."""
    assert [degrees.tolist() for degrees in unit_degrees(3, (4,))] == [[1, 2, 3], [1, 2, 1, 2]]
    first, last = autoregressive_masks(3, (4,), 1)
    assert first.int().tolist() == [[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]]
    assert last.int().tolist() == [[0, 1, 1], [0, 0, 1], [0, 1, 1], [0, 0, 1]]


def test_product_of_masks_counts_paths() -> None:
    first, second, last = (mask.long() for mask in autoregressive_masks(5, (8, 8), 1))
    paths = first @ second @ last
    assert not paths.tril().any()
    assert (paths[torch.triu(torch.ones(5, 5), 1).bool()] > 0).all()


def test_masked_weights_have_gradient_zero() -> None:
    layer = MaskedDense(torch.tensor([[True, False], [True, True]]))
    layer(torch.randn(4, 2)).sum().backward()
    assert layer.weight.grad is not None
    assert float(layer.weight.grad[0, 1]) == 0


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"at least 1; got features=0, hidden_sizes=\(64, 64\)"):
        MADE(0, 2)
    with pytest.raises(ValueError, match=r"got features=3, hidden_sizes=\(4, 0\)"):
        MADE(3, 2, hidden_sizes=(4, 0))
    with pytest.raises(ValueError, match="at least 1; got outputs=0"):
        MADE(3, 0)
