"""Validation of probability vectors."""

import pytest
import torch

from parnassus.probability import check_distribution
from parnassus.probability.distributions.simplex import check_pair


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0.5, 0.6, -0.1], r"must not be negative or NaN; the smallest entry of p is -0\.1"),
        ([0.5, float("nan")], "must not be negative or NaN; the smallest entry of p is nan"),
        ([0.5, 0.4], r"must sum to one; a row of p sums to 0\.9"),
        ([[0.5, 0.5], [0.5, 0.75]], r"must sum to one; a row of p sums to 1\.25"),
        ([1.0, float("inf")], "must sum to one; a row of p sums to inf"),
    ],
)
def test_invalid_rows_raise_value_error(rows: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_distribution(torch.tensor(rows))


def test_empty_last_axis_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"last axis of at least one outcome; got shape \(3, 0\)"):
        check_distribution(torch.ones(3, 0))


def test_rounding_errors_and_empty_batches_are_accepted() -> None:
    check_distribution(torch.full((1_000,), 1e-3))
    check_distribution(torch.randn(50, 10_000).softmax(-1))
    check_distribution(torch.ones(0, 3))
    check_distribution(torch.tensor([1.0, 0.0]))


def test_different_numbers_of_outcomes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="the same number of outcomes; got 2 and 4"):
        check_pair(torch.full((2,), 0.5), torch.full((4,), 0.25))
    with pytest.raises(ValueError, match="smallest entry of q"):
        check_pair(torch.tensor([0.5, 0.5]), torch.tensor([1.5, -0.5]))
