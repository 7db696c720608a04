"""Training of the NumPy network against torch."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy as torch_cross_entropy

from parnassus.autodiff import DenseNetwork, cross_entropy, relu, squared_error, tanh, to_torch


def test_gradient_steps_match_torch() -> None:
    rng = np.random.default_rng(0)
    network = DenseNetwork((5, 7, 6, 3), relu, rng)
    torch_network = to_torch(network, nn.ReLU())
    optimizer = torch.optim.SGD(torch_network.parameters(), lr=0.2)
    for _ in range(25):
        x, y = rng.normal(size=(8, 5)), rng.integers(0, 3, 8)
        np.testing.assert_allclose(network(x), torch_network(torch.from_numpy(x)).detach(), rtol=1e-11, atol=1e-13)
        loss = network.gradient_step(x, lambda logits, y=y: cross_entropy(logits, y), learning_rate=0.2)  # type: ignore[misc]
        torch_loss = torch_cross_entropy(torch_network(torch.from_numpy(x)), torch.from_numpy(y))
        optimizer.zero_grad()
        torch_loss.backward()
        optimizer.step()
        assert loss == pytest.approx(torch_loss.item(), rel=1e-12)


def test_initial_weights_are_uniform_within_inverse_root_of_fan_in() -> None:
    weights = DenseNetwork((100, 50, 1), tanh, np.random.default_rng(0), dtype=np.float32).weights
    assert [weight.shape for weight in weights] == [(100, 50), (50,), (50, 1), (1,)]
    assert {weight.dtype for weight in weights} == {np.dtype(np.float32)}
    assert 0.09 < np.abs(weights[0]).max() <= 0.1
    assert np.std(weights[0]) == pytest.approx(0.1 / np.sqrt(3), rel=0.05)


def test_state_dict_round_trip() -> None:
    first, second = (DenseNetwork((2, 4, 1), tanh, np.random.default_rng(seed)) for seed in (0, 1))
    x = np.random.default_rng(2).normal(size=(6, 2))
    second.load_state_dict(first.state_dict())
    np.testing.assert_array_equal(first(x), second(x))
    second.gradient_step(x, lambda outputs: squared_error(outputs, np.ones((6, 1))), learning_rate=0.1)
    assert not np.array_equal(first(x), second(x))  # the weights were copied, not shared


def test_invalid_input_raises_value_error() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"two or more positive integers; got sizes=\(3,\)"):
        DenseNetwork((3,), tanh, rng)
    with pytest.raises(ValueError, match=r"two or more positive integers; got sizes=\(3, 0\)"):
        DenseNetwork((3, 0), tanh, rng)
    network = DenseNetwork((2, 1), tanh, rng)
    with pytest.raises(ValueError, match="learning_rate must be positive; got learning_rate=0"):
        network.gradient_step(
            np.ones((1, 2)), lambda outputs: squared_error(outputs, np.ones((1, 1))), learning_rate=0.0
        )
    with pytest.raises(ValueError, match="weights must have the shapes"):
        network.load_state_dict(DenseNetwork((3, 1), tanh, rng).state_dict())
