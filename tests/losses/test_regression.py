"""Regression losses: known values, comparison with torch, and minimisers."""

from inspect import unwrap

import pytest
import torch
from torch.nn import functional

from parnassus.losses import (
    absolute_error,
    half_mean_squared_error,
    half_squared_error,
    huber_loss,
    mean_power_error,
    mean_squared_error,
    squared_error,
)
from parnassus.probability import standard_normal

V = standard_normal(30, 4)
W = 2 * standard_normal(30, 4, seed=1)


def test_power_errors_have_known_values() -> None:
    v, w = torch.tensor([1.0, -2.0]), torch.tensor([0.0, 1.0])
    assert float(mean_power_error(v, w, power=1.0)) == 2.0
    assert float(mean_power_error(v, w, power=2.0)) == 5.0
    assert float(mean_power_error(v, w, power=3.0)) == 14.0
    assert absolute_error(v, w).tolist() == [1.0, 3.0]


@pytest.mark.parametrize("delta", [0.3, 1.0, 5.0])
def test_huber_loss_matches_torch(delta: float) -> None:
    torch.testing.assert_close(
        huber_loss(V, W, delta=delta), functional.huber_loss(V, W, reduction="none", delta=delta)
    )


def test_huber_loss_interpolates_between_squared_and_absolute_error() -> None:
    torch.testing.assert_close(huber_loss(V, W, delta=1e6), (V - W).square() / 2)
    torch.testing.assert_close(huber_loss(V, W, delta=1e-9) / 1e-9, absolute_error(V, W), atol=1e-8, rtol=0)


def test_outlier_shifts_the_mean_but_not_the_median() -> None:
    values = torch.tensor([1.0, 2.0, 3.0, 4.0, 1_000.0])
    constants = torch.arange(0.0, 1_001.0)[:, None].expand(-1, 5)
    targets = values.expand(1_001, 5)
    assert int(mean_power_error(constants, targets, power=1.0).argmin()) == 3
    assert int(mean_power_error(constants, targets, power=2.0).argmin()) == 202
    assert int(huber_loss(constants, targets, delta=1.0).mean(-1).argmin()) == 3


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"power must be positive; got power=0\.0"):
        mean_power_error(V, W, power=0.0)
    with pytest.raises(ValueError, match=r"must be positive; got delta=-1\.0"):
        huber_loss(V, W, delta=-1.0)


def test_squared_error_has_known_values() -> None:
    prediction, target = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[4.0, 6.0], [0.0, 1.0]])
    assert squared_error(prediction, target).tolist() == [25.0, 1.0]
    assert float(mean_squared_error(prediction, target)) == 13.0


@pytest.mark.parametrize("outputs", [(), (1,), (5,), (3, 4)])
def test_mean_squared_error_is_torch_mse_times_the_number_of_outputs(outputs: tuple[int, ...]) -> None:
    prediction, target = torch.randn(6, *outputs), torch.randn(6, *outputs)
    expected = max(1, torch.Size(outputs).numel()) * functional.mse_loss(prediction, target)
    torch.testing.assert_close(mean_squared_error(prediction, target), expected)


def test_gradient_of_half_squared_error_is_the_residual() -> None:
    prediction, target = torch.randn(6, 3, requires_grad=True), torch.randn(6, 3)
    (gradient,) = torch.autograd.grad(half_squared_error(prediction, target).sum(), prediction)
    torch.testing.assert_close(gradient, (prediction - target).detach())
    torch.testing.assert_close(half_mean_squared_error(prediction, target), mean_squared_error(prediction, target) / 2)


def test_equal_shapes_are_accepted() -> None:
    assert squared_error(torch.zeros(3, 2), torch.ones(3, 2)).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("prediction", "target", "message"),
    [
        ((5, 1), (5,), r"must have the same shape; got \(5, 1\) and \(5,\)"),
        ((5,), (3,), r"must have the same shape; got \(5,\) and \(3,\)"),
        ((0, 2), (0, 2), r"at least one example; got shape \(0, 2\)"),
    ],
)
def test_unequal_or_empty_shapes_raise_value_error(
    prediction: tuple[int, ...], target: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        unwrap(squared_error)(torch.zeros(prediction), torch.zeros(target))  # without the shape checks of the tests
