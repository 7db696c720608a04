"""Risks under distributions whose expected loss is known in closed form."""

from math import sqrt

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from parnassus.losses import empirical_risk, expected_risk, held_out_risk, squared_error, zero_one_loss


def line(x: Tensor) -> Tensor:
    return 2 * x + 1


def density(x: Tensor, y: Tensor) -> Tensor:
    """Uniform x on [−1, 1], y = x + ε with ε ~ N(0, 0.3²)."""
    value: Tensor = Normal(x, 0.3).log_prob(y).exp() / 2
    return value


def test_expected_risk_matches_the_closed_form() -> None:
    """E (2x + 1 − x − ε)² = E x² + 1 + σ² = 4/3 + 0.09."""
    risk = expected_risk(squared_error, line, density, x_range=(-1.0, 1.0), y_range=(-4.0, 4.0))
    assert float(risk) == pytest.approx(4 / 3 + 0.09, abs=1e-10)
    mass = expected_risk(lambda f, y: torch.ones_like(f), line, density, x_range=(-1.0, 1.0), y_range=(-4.0, 4.0))
    assert float(mass) == pytest.approx(1, abs=1e-10)


def test_held_out_risk_has_the_standard_error_of_the_mean() -> None:
    torch.manual_seed(0)
    x = 2 * torch.rand(400, dtype=torch.float64) - 1
    y = x + 0.3 * torch.randn(400, dtype=torch.float64)
    estimate = held_out_risk(squared_error, line, x, y)
    losses = (line(x) - y) ** 2
    assert estimate.value == pytest.approx(float(empirical_risk(squared_error, line, x, y)))
    assert estimate.standard_error == pytest.approx(float(losses.std()) / sqrt(400))
    assert abs(estimate.value - 4 / 3 - 0.09) < 4 * estimate.standard_error


def test_zero_one_loss_counts_errors() -> None:
    prediction, label = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 2, 2, 1])
    assert zero_one_loss(prediction, label).tolist() == [0, 1, 0, 1]
    assert float(empirical_risk(zero_one_loss, lambda x: x.long()[:, 0], prediction[:, None].float(), label)) == 0.5


def test_invalid_input_raises_value_error() -> None:
    empty = torch.zeros(0)
    with pytest.raises(ValueError, match="at least one example; got none"):
        empirical_risk(squared_error, line, empty, empty)
    with pytest.raises(ValueError, match="at least two examples; got 1"):
        held_out_risk(squared_error, line, torch.zeros(1), torch.zeros(1))
    with pytest.raises(ValueError, match=r"low < high; got 1.0 … -1.0"):
        expected_risk(squared_error, line, density, x_range=(1.0, -1.0), y_range=(-4.0, 4.0))
