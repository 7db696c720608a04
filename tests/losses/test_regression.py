"""Regression losses against torch and by their minimisers."""

import pytest
import torch
from torch.nn import functional

from parnassus.losses import absolute_error, huber, mean_power_error

V = torch.randn(30, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
W = 2 * torch.randn(30, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_powers_by_hand() -> None:
    v, w = torch.tensor([1.0, -2.0]), torch.tensor([0.0, 1.0])
    assert float(mean_power_error(v, w, power=1.0)) == 2.0
    assert float(mean_power_error(v, w, power=2.0)) == 5.0
    assert float(mean_power_error(v, w, power=3.0)) == 14.0
    assert absolute_error(v, w).tolist() == [1.0, 3.0]


@pytest.mark.parametrize("border", [0.3, 1.0, 5.0])
def test_huber_is_that_of_torch(border: float) -> None:
    torch.testing.assert_close(huber(V, W, border=border), functional.huber_loss(V, W, reduction="none", delta=border))


def test_huber_goes_from_squares_to_absolute_values() -> None:
    torch.testing.assert_close(huber(V, W, border=1e6), (V - W).square() / 2)
    torch.testing.assert_close(huber(V, W, border=1e-9) / 1e-9, absolute_error(V, W), atol=1e-8, rtol=0)


def test_an_outlier_pulls_the_mean_but_not_the_median() -> None:
    values = torch.tensor([1.0, 2.0, 3.0, 4.0, 1_000.0])
    constants = torch.arange(0.0, 1_001.0)[:, None].expand(-1, 5)
    targets = values.expand(1_001, 5)
    assert int(mean_power_error(constants, targets, power=1.0).argmin()) == 3
    assert int(mean_power_error(constants, targets, power=2.0).argmin()) == 202
    assert int(huber(constants, targets, border=1.0).mean(-1).argmin()) == 3


def test_wrong_input_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"power of a residual must be positive; got power=0\.0"):
        mean_power_error(V, W, power=0.0)
    with pytest.raises(ValueError, match=r"must be positive; got border=-1\.0"):
        huber(V, W, border=-1.0)
