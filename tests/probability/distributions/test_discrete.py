"""Distributions on small finite spaces compared with hand computations."""

import pytest
import torch

from parnassus.probability import (
    DiscreteDistribution,
    empirical_distribution,
    events,
    joint_distribution,
    largest_event_gap,
    push_forward,
)

COINS = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * 3)
FAIR = torch.full((8,), 1 / 8, dtype=torch.float64)


def test_number_of_heads_is_binomial() -> None:
    distribution = push_forward(COINS.sum(1), FAIR)
    assert distribution.values.tolist() == [0.0, 1.0, 2.0, 3.0]
    torch.testing.assert_close(distribution.p, torch.tensor([1.0, 3.0, 3.0, 1.0], dtype=torch.float64) / 8)
    assert float(distribution.expectation(torch.square)) == pytest.approx(3.0)


def test_vector_values() -> None:
    distribution = push_forward(COINS[:, :2], FAIR)
    assert len(distribution.values) == 4
    torch.testing.assert_close(distribution.expectation(lambda v: v), torch.tensor([0.5, 0.5], dtype=torch.float64))


def test_marginals_of_a_joint_table() -> None:
    heads, first = COINS.sum(1), COINS[:, 0]
    joint = joint_distribution(heads, first, FAIR)
    torch.testing.assert_close(joint.table.sum(1), push_forward(heads, FAIR).p)
    assert joint.table[0].tolist() == [0.125, 0.0]  # without heads the first coin is tails


def test_cdf_steps_at_the_values() -> None:
    distribution = DiscreteDistribution(torch.tensor([2.0, -1.0, 0.5]), torch.tensor([0.2, 0.5, 0.3]))
    points = torch.tensor([-1.1, -1.0, 0.0, 0.5, 1.9, 2.0])
    torch.testing.assert_close(distribution.cdf(points), torch.tensor([0.0, 0.5, 0.5, 0.8, 0.8, 1.0]))
    assert float(empirical_distribution(torch.tensor([3.0, 3.0, 4.0, 5.0])).cdf(torch.tensor(3.0))) == 0.5


def test_event_gap_matches_enumeration() -> None:
    torch.manual_seed(0)
    first, second = (torch.rand(12, dtype=torch.float64) for _ in range(2))
    first, second = (first / first.sum()).view(3, 4), (second / second.sum()).view(3, 4)
    rows, columns = events(3).double(), events(4).double()
    expected = (rows @ (first - second) @ columns.mT).abs().max()
    torch.testing.assert_close(largest_event_gap(first, second), expected)
    assert len(rows) == len({tuple(row) for row in rows.tolist()}) == 8


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match="one entry per value; got 3 values, 2 probabilities"):
        DiscreteDistribution(torch.zeros(3), torch.tensor([0.5, 0.5]))
    with pytest.raises(ValueError, match="must sum to one"):
        push_forward(COINS[:, 0], 2 * FAIR)
    with pytest.raises(ValueError, match=r"must lie between 0 and 12, .* got count=30"):
        events(30)
    with pytest.raises(ValueError, match="at least one draw"):
        empirical_distribution(torch.zeros(0))
