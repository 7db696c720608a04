"""Conditional distributions on small tables."""

import pytest
import torch

from parnassus.probability import (
    conditional_expectation,
    conditional_table,
    conditioning_gap,
    joint_from_conditional,
    posterior_table,
)

TABLE = torch.tensor([[0.1, 0.2, 0.0], [0.3, 0.1, 0.3]], dtype=torch.float64)


def test_conditional_table_and_expectation_match_hand_computation() -> None:
    expected = torch.tensor([[0.25, 0.75], [2 / 3, 1 / 3], [0.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(conditional_table(TABLE), expected)
    means = conditional_expectation(torch.tensor([0.0, 1.0], dtype=torch.float64), TABLE)
    torch.testing.assert_close(means, expected[:, 1])
    torch.testing.assert_close(joint_from_conditional(expected, TABLE.sum(0)), TABLE)


def test_conditional_tables_follow_bayes_rule() -> None:
    prior = TABLE.sum(1)
    posterior, _ = posterior_table(prior, TABLE / prior[:, None])
    torch.testing.assert_close(conditional_table(TABLE), posterior)


def test_conditioning_gap_is_zero_only_for_the_conditional_distribution() -> None:
    assert float(conditioning_gap(conditional_table(TABLE), TABLE)) < 1e-15
    constant = TABLE.sum(1).expand(3, 2).contiguous()
    assert float(conditioning_gap(constant, TABLE)) == pytest.approx(0.11)  # X = 0 and Y = 1: 0.2 − 0.3 · 0.3


def test_values_of_probability_zero_use_the_marginal_distribution() -> None:
    padded = torch.cat([TABLE, torch.zeros(2, 1, dtype=torch.float64)], 1)
    torch.testing.assert_close(conditional_table(padded)[-1], TABLE.sum(1))


def test_invalid_distributions_raise_value_error() -> None:
    with pytest.raises(ValueError, match="a row of kernel sums to 0"):
        joint_from_conditional(torch.zeros(3, 2), torch.tensor([0.2, 0.3, 0.5]))
    with pytest.raises(ValueError, match="the joint table"):
        conditional_table(TABLE - 0.2)
