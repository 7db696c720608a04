"""Kernel statistics and changes in training, in cases with known answers."""

import pytest
import torch
from torch import nn

from parnassus.kernels import (
    ReLU,
    empirical_ntk,
    fully_connected,
    kernel_statistics,
    layer_kernels,
    train_and_measure,
    width_exponent,
)

DOUBLE = torch.float64
X = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=DOUBLE)
Y = torch.tensor([[1.0], [-1.0]], dtype=DOUBLE)


def test_mean_kernel_matches_the_infinite_width_limit() -> None:
    torch.manual_seed(0)
    statistics = kernel_statistics(lambda: fully_connected(1, ReLU()).module((2,), 64).double(), X, draws=150)
    limit = layer_kernels(1, ReLU(), X).ntk()
    assert float(((statistics.mean - limit) / statistics.standard_error).abs().max()) < 4
    torch.testing.assert_close(statistics.standard_error, statistics.std / 150**0.5)


def test_kernel_of_a_linear_model_is_constant() -> None:
    model = nn.Linear(2, 1, bias=False).double()
    nn.init.constant_(model.weight, 1.0)
    training = train_and_measure(model, X, Y, learning_rate=0.1, steps=200, records=5)
    assert training.steps.tolist() == [0, 12, 50, 112, 200]
    torch.testing.assert_close(training.kernel_change, torch.zeros(5, dtype=DOUBLE))
    torch.testing.assert_close(training.parameter_change[-1], (model.weight - 1).norm().detach() / 2**0.5)
    exact = Y + torch.linalg.matrix_power(torch.eye(2) - 0.1 * X @ X.mT, 200) @ (X.sum(1, keepdim=True) - Y)
    torch.testing.assert_close(training.outputs[-1], exact)


def test_recorded_kernel_change_matches_the_trained_model() -> None:
    torch.manual_seed(0)
    model = fully_connected(1, ReLU()).module((2,), 8).double()
    before = empirical_ntk(model, X)
    training = train_and_measure(model, X, Y, learning_rate=0.05, steps=10, records=2)
    change = (empirical_ntk(model, X) - before).norm() / before.norm()
    torch.testing.assert_close(training.kernel_change, torch.stack([torch.zeros((), dtype=DOUBLE), change]))


def test_width_exponent_of_a_power_law() -> None:
    assert width_exponent((4, 16, 64), [3 * width**-0.7 for width in (4, 16, 64)]) == pytest.approx(-0.7)
    with pytest.raises(ValueError, match="at least two widths with a positive value each"):
        width_exponent((4, 16), [1.0, 0.0])


def test_invalid_arguments_raise() -> None:
    model = nn.Linear(2, 1).double()
    with pytest.raises(ValueError, match="at least two draws; got draws=1"):
        kernel_statistics(lambda: model, X, draws=1)
    with pytest.raises(ValueError, match="need learning_rate > 0, steps ≥ 1 and records ≥ 2"):
        train_and_measure(model, X, Y, learning_rate=0.1, steps=0)
    with pytest.raises(ValueError, match=r"must have the shape of the outputs \(2, 1\); got \(2,\)"):
        train_and_measure(model, X, Y[:, 0], learning_rate=0.1, steps=1)
