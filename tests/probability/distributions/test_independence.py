"""Measures of dependence on tables with known dependence."""

import pytest
import torch

from parnassus.probability import event_dependence, function_covariance, maximal_correlation, product_table

P = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
Q = torch.tensor([0.6, 0.4], dtype=torch.float64)


def test_product_table_is_independent() -> None:
    table = P[:, None] * Q
    torch.testing.assert_close(product_table(table), table)
    assert float(event_dependence(table)) < 1e-15
    assert float(maximal_correlation(table)) < 1e-14


@pytest.mark.parametrize("rho", [-0.7, 0.0, 0.4, 1.0])
def test_correlation_of_two_signs(rho: float) -> None:
    """P[X = Y] = (1 + ρ)/2: on two values all functions are linear, so the maximal correlation is |ρ|."""
    equal, different = (1 + rho) / 4, (1 - rho) / 4
    table = torch.tensor([[equal, different], [different, equal]], dtype=torch.float64)
    signs = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    assert float(function_covariance(table, signs, signs)) == pytest.approx(rho)
    assert float(maximal_correlation(table)) == pytest.approx(abs(rho))
    assert float(event_dependence(table)) == pytest.approx(abs(rho) / 4)


def test_values_of_probability_zero_are_ignored() -> None:
    table = torch.tensor([[0.3, 0.0], [0.7, 0.0]], dtype=torch.float64)
    assert float(maximal_correlation(table)) == 0.0


def test_invalid_tables_raise_value_error() -> None:
    with pytest.raises(ValueError, match="a row of the joint table sums to 2"):
        maximal_correlation(2 * P[:, None] * Q)
