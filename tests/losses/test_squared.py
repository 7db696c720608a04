"""Squared error by hand and against torch."""

import pytest
import torch
from torch.nn import functional

from parnassus.losses import half_mean_squared_error, half_squared_error, mean_squared_error, squared_error


def test_by_hand() -> None:
    prediction, target = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[4.0, 6.0], [0.0, 1.0]])
    assert squared_error(prediction, target).tolist() == [25.0, 1.0]
    assert float(mean_squared_error(prediction, target)) == 13.0


@pytest.mark.parametrize("outputs", [(), (1,), (5,), (3, 4)])
def test_it_is_the_number_of_outputs_times_the_loss_of_torch(outputs: tuple[int, ...]) -> None:
    prediction, target = torch.randn(6, *outputs), torch.randn(6, *outputs)
    expected = max(1, torch.Size(outputs).numel()) * functional.mse_loss(prediction, target)
    torch.testing.assert_close(mean_squared_error(prediction, target), expected)


def test_half_the_error_has_the_residual_as_its_gradient() -> None:
    prediction, target = torch.randn(6, 3, requires_grad=True), torch.randn(6, 3)
    (slope,) = torch.autograd.grad(half_squared_error(prediction, target).sum(), prediction)
    torch.testing.assert_close(slope, (prediction - target).detach())
    torch.testing.assert_close(half_mean_squared_error(prediction, target), mean_squared_error(prediction, target) / 2)
