"""Forward and backward signals against autograd."""

import pytest
import torch
from torch import Tensor

from parnassus.kernels import (
    Erf,
    ReLU,
    fully_connected,
    layer_weights,
    layerwise_ntk,
    network_outputs,
    propagate_signals,
    random_weights,
    train_networks,
)
from parnassus.probability import standard_normal

DOUBLE = torch.float64


def points(count: int = 5, dim: int = 3) -> Tensor:
    return standard_normal(count, dim, seed=1)


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_gradients_match_autograd(depth: int) -> None:
    torch.manual_seed(0)
    module, x = fully_connected(depth, Erf()).module((3,), 6).double(), points()
    signals = propagate_signals(layer_weights(module), x, Erf())
    torch.testing.assert_close(network_outputs(layer_weights(module), x, Erf()), module(x)[:, 0])
    for row in range(len(x)):
        exact = torch.autograd.grad(module(x)[row, 0], list(module.parameters()))
        for actual, expected in zip(signals.weight_gradients(), exact, strict=True):
            torch.testing.assert_close(actual[row], expected)


def test_draws_are_independent_networks() -> None:
    weights = random_weights((3, 4, 5, 1), draws=(6,), generator=torch.Generator().manual_seed(0))
    x, y = points(), points(2)
    batched = layerwise_ntk(propagate_signals(weights, x, ReLU()), propagate_signals(weights, y, ReLU()))
    single = [weight[4] for weight in weights]
    torch.testing.assert_close(
        batched[4], layerwise_ntk(propagate_signals(single, x, ReLU()), propagate_signals(single, y, ReLU()))
    )
    assert batched.shape == (6, 5, 2)


def test_batched_training_matches_torch_sgd() -> None:
    torch.manual_seed(0)
    x, y = points(), torch.tensor([1.0, -1.0, 0.5, 0.0, 2.0], dtype=DOUBLE)
    module = fully_connected(2, Erf()).module((3,), 4).double()
    start = [weight.clone()[None] for weight in layer_weights(module)]
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for _ in range(7):
        optimizer.zero_grad()
        ((module(x)[:, 0] - y).square().sum() / 2).backward()
        optimizer.step()
    trained = train_networks(start, x, y, Erf(), learning_rate=0.05, steps=7)
    for actual, expected in zip(trained, layer_weights(module), strict=True):
        torch.testing.assert_close(actual[0], expected)


def test_draws_can_have_separate_labels() -> None:
    x, labels = points(), standard_normal(2, 5, seed=3)
    start = random_weights((3, 4, 1), draws=(2,), generator=torch.Generator().manual_seed(0))
    batched = train_networks(start, x, labels, Erf(), learning_rate=0.05, steps=5)
    for draw in range(2):
        single = train_networks([weight[draw] for weight in start], x, labels[draw], Erf(), learning_rate=0.05, steps=5)
        for actual, expected in zip(batched, single, strict=True):
            torch.testing.assert_close(actual[draw], expected)


def test_invalid_arguments_raise() -> None:
    weights = random_weights((3, 4, 1))
    with pytest.raises(ValueError, match="must map 2 features to one output"):
        propagate_signals(weights, torch.zeros(1, 2, dtype=DOUBLE), ReLU())
    with pytest.raises(ValueError, match="must map 3 features to one output"):
        propagate_signals(weights[:1], torch.zeros(1, 3, dtype=DOUBLE), ReLU())
    with pytest.raises(ValueError, match=r"positive integers; got sizes=\[3, 0, 1\]"):
        random_weights((3, 0, 1))
    with pytest.raises(ValueError, match="must have dense layers without biases"):
        layer_weights(fully_connected(1, ReLU(), bias_variance=0.1).module((3,), 4))
    with pytest.raises(ValueError, match="need learning_rate > 0 and steps ≥ 0"):
        train_networks(
            weights, torch.zeros(1, 3, dtype=DOUBLE), torch.zeros(1, dtype=DOUBLE), ReLU(), learning_rate=0.0, steps=1
        )
