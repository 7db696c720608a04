"""Conversion between a network and its parameter vector."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

from parnassus.layers import flatten_parameters, mlp, unflatten_parameters, with_parameters


def test_parameter_order_matches_torch() -> None:
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 3))
    torch.testing.assert_close(flatten_parameters(network), parameters_to_vector(network.parameters()).detach())


def test_flattened_parameters_are_a_copy() -> None:
    network = mlp((2, 5, 1))
    theta = flatten_parameters(network)
    theta.zero_()
    assert float(flatten_parameters(network).abs().max()) > 0
    assert not theta.requires_grad


def test_unflatten_and_flatten_round_trip() -> None:
    network, theta = mlp((2, 5, 1)), torch.arange(21.0)
    parts = unflatten_parameters(network, theta)
    assert {name: tuple(part.shape) for name, part in parts.items()} == {
        "0.weight": (2, 5),
        "0.bias": (5,),
        "1.weight": (5, 1),
        "1.bias": (1,),
    }
    assert parts["1.weight"][:, 0].tolist() == [15, 16, 17, 18, 19]
    network.load_state_dict(parts, strict=False)
    assert torch.equal(flatten_parameters(network), theta)


def test_with_parameters_uses_the_vector_and_preserves_the_module() -> None:
    torch.manual_seed(0)
    network, x = mlp((2, 5, 1)), torch.randn(7, 2)
    before = flatten_parameters(network)
    assert torch.equal(with_parameters(network, torch.zeros(21))(x), torch.zeros(7, 1))
    assert torch.equal(with_parameters(network, before)(x), network(x))
    assert torch.equal(flatten_parameters(network), before)


def test_vector_receives_gradients() -> None:
    network, theta = mlp((2, 5, 1)), torch.randn(21, requires_grad=True)
    with_parameters(network, theta)(torch.randn(7, 2)).sum().backward()
    assert theta.grad is not None
    assert float(theta.grad[-1]) == 7  # last bias: one per row


def test_buffers_are_taken_from_the_module() -> None:
    norm = nn.BatchNorm1d(3).eval()
    assert len(flatten_parameters(norm)) == 6
    x = torch.randn(4, 3)
    torch.testing.assert_close(with_parameters(norm, flatten_parameters(norm))(x), norm(x))


def test_tied_parameters_count_once() -> None:
    first = nn.Linear(3, 3)
    tied = nn.Sequential(first, nn.Tanh(), first)
    x = torch.randn(5, 3)
    assert len(flatten_parameters(tied)) == 12
    torch.testing.assert_close(with_parameters(tied, flatten_parameters(tied))(x), tied(x))


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match="one entry per parameter; got 20 entries for 21"):
        with_parameters(mlp((2, 5, 1)), torch.zeros(20))
    with pytest.raises(ValueError, match=r"module must have parameters; got ReLU"):
        flatten_parameters(nn.ReLU())
