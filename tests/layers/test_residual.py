"""Residual blocks: identity, Jacobian, shortcuts and mismatched shapes."""

import pytest
import torch
from torch import nn
from torch.func import jacrev

from parnassus.layers import Dense, Residual, count_parameters, relu, residual_mlp, tanh


def test_zero_body_gives_the_identity() -> None:
    body = nn.Linear(4, 4)
    nn.init.zeros_(body.weight)
    nn.init.zeros_(body.bias)
    x = torch.randn(3, 4)
    assert torch.equal(Residual(body)(x), x)
    torch.testing.assert_close(Residual(body, activation=relu)(x), relu(x))


def test_jacobian_is_the_identity_plus_the_jacobian_of_the_body() -> None:
    torch.manual_seed(0)
    body = Dense(4, 4, activation=tanh).double()
    block, x = Residual(body), torch.randn(1, 4, dtype=torch.float64)
    actual = jacrev(block)(x).reshape(4, 4)
    torch.testing.assert_close(actual, torch.eye(4, dtype=torch.float64) + jacrev(body)(x).reshape(4, 4))


def test_shortcut_can_change_the_shape() -> None:
    torch.manual_seed(0)
    body, shortcut, x = nn.Linear(4, 6), nn.Linear(4, 6, bias=False), torch.randn(3, 4)
    torch.testing.assert_close(Residual(body, shortcut)(x), body(x) + shortcut(x))


def test_mismatched_shapes_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"same output shape; got \(4,\) and \(6,\) for examples of shape \(4,\)"):
        Residual(nn.Linear(4, 6))(torch.ones(2, 4))


def test_broadcastable_shapes_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"got \(4,\) and \(1,\)"):
        Residual(nn.Linear(4, 1))(torch.ones(2, 4))


def test_residual_mlp_matches_explicit_computation() -> None:
    torch.manual_seed(0)
    network, x = residual_mlp(3, 2, width=5, blocks=2, activation=tanh), torch.randn(7, 3)
    h = network[0](x)
    for block in (network[1], network[2]):
        inner = torch.tanh(h @ block.get_parameter("body.0.weight") + block.get_parameter("body.0.bias"))
        h = h + inner @ block.get_parameter("body.1.weight") + block.get_parameter("body.1.bias")
    torch.testing.assert_close(network(x), network[3](h))
    assert count_parameters(network) == 4 * 5 + 2 * 2 * 6 * 5 + 6 * 2


def test_negative_number_of_blocks_raises_value_error() -> None:
    with pytest.raises(ValueError, match="blocks must not be negative; got blocks=-1"):
        residual_mlp(3, 2, width=5, blocks=-1)
