"""Bankruptcy rules against each other and against their definitions."""

from itertools import permutations

import pytest
import torch

from parnassus.shapley.games.bankruptcy import constrained_equal_awards, contested_garment, run_to_the_bank, talmud_rule

CLAIMS = torch.tensor([100.0, 200.0, 300.0], dtype=torch.float64)


@pytest.mark.parametrize("estate", [0.0, 90.0, 250.0, 300.0, 410.0, 600.0])
def test_run_to_the_bank_matches_the_average_over_orders(estate: float) -> None:
    total = torch.zeros(3, dtype=torch.float64)
    for order in permutations(range(3)):
        remaining = estate
        for player in order:
            taken = min(float(CLAIMS[player]), remaining)
            total[player] += taken
            remaining -= taken
    assert torch.allclose(run_to_the_bank(estate, CLAIMS), total / 6)


@pytest.mark.parametrize("estate", [0.0, 90.0, 250.0, 300.0, 410.0, 600.0])
def test_talmud_rule_is_pairwise_consistent_with_the_contested_garment(estate: float) -> None:
    shares = talmud_rule(estate, CLAIMS)
    assert float(shares.sum()) == pytest.approx(estate)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        pair_total = float(shares[first] + shares[second])
        expected = contested_garment(pair_total, float(CLAIMS[first]), float(CLAIMS[second]))
        assert [float(shares[first]), float(shares[second])] == pytest.approx(list(expected))


def test_constrained_equal_awards_are_equal_up_to_the_claims() -> None:
    limits = torch.tensor([3.0, 1.0, 5.0], dtype=torch.float64)
    assert constrained_equal_awards(5.0, limits).tolist() == [2.0, 1.0, 2.0]
    assert constrained_equal_awards(9.0, limits).tolist() == [3.0, 1.0, 5.0]


def test_invalid_estates_raise_value_error() -> None:
    with pytest.raises(ValueError, match="at least the estate"):
        talmud_rule(700.0, CLAIMS)
    with pytest.raises(ValueError, match="must not be negative"):
        contested_garment(1.0, -1.0, 3.0)
