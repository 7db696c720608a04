"""Lᵖ and total variation distances with known values."""

import pytest
import torch
from scipy.spatial.distance import minkowski

from parnassus.probability import lp_distance, total_variation, total_variation_event

P = torch.tensor([0.5, 0.3, 0.2, 0.0], dtype=torch.float64)
Q = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 7.0])
def test_lp_distance_is_the_minkowski_distance(order: float) -> None:
    assert float(lp_distance(P, Q, order=order)) == pytest.approx(minkowski(P, Q, p=order))


def test_lp_distance_of_infinite_order_is_the_largest_difference() -> None:
    assert float(lp_distance(P, Q, order=torch.inf)) == pytest.approx(0.4)


def test_total_variation_matches_hand_computation() -> None:
    assert float(total_variation(P, Q)) == pytest.approx(0.5)
    assert total_variation_event(P, Q).tolist() == [True, True, False, False]


def test_batches_broadcast() -> None:
    distributions = torch.stack([P, Q, P.flip(0)])
    table = total_variation(distributions[:, None], distributions[None])
    assert table.shape == (3, 3)
    torch.testing.assert_close(table[0, 1], total_variation(P, Q))
    torch.testing.assert_close(table, table.T)


def test_gradients_are_finite_for_equal_distributions() -> None:
    """The derivative of √ is infinite at 0, but the gradient of the Euclidean distance must not be NaN."""
    p = P.clone().requires_grad_()
    lp_distance(p, P, order=2.0).backward()
    assert p.grad is not None
    assert bool(p.grad.isfinite().all())


@pytest.mark.parametrize("order", [0.5, 0.0, -1.0, float("nan")])
def test_orders_below_one_raise_value_error(order: float) -> None:
    with pytest.raises(ValueError, match="as the triangle inequality fails below; got order="):
        lp_distance(P, Q, order=order)


def test_invalid_distributions_raise_value_error() -> None:
    with pytest.raises(ValueError, match="must sum to one; a row of q sums to 2"):
        total_variation(P, 2 * Q)
    with pytest.raises(ValueError, match="must not be negative"):
        total_variation_event(-P, Q)
