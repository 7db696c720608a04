"""Dropout: frequencies, inverted and classical form, and exact averages over masks."""

from itertools import product

import pytest
import torch
from torch import nn

from parnassus.layers import (
    ClassicalDropout,
    Dropout,
    all_masks,
    average_over_masks,
    drop_units,
    geometric_average_over_masks,
    mask_probabilities,
)


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.5, 0.9])
def test_units_are_dropped_at_the_rate_and_the_rest_rescaled(rate: float) -> None:
    torch.manual_seed(0)
    count = 200_000
    y = drop_units(torch.full((count,), 3.0), rate)
    zeros = float((y == 0).double().mean())
    assert abs(zeros - rate) <= 4 * (rate * (1 - rate) / count) ** 0.5
    torch.testing.assert_close(y[y != 0].unique(), torch.tensor([3.0 / (1 - rate)]))


def test_matches_torch() -> None:
    torch.manual_seed(0)
    x = torch.ones(200_000)
    actual, reference = drop_units(x, 0.3), nn.functional.dropout(x, 0.3)
    assert actual.unique().tolist() == pytest.approx(reference.unique().tolist())
    assert float(actual.mean()) == pytest.approx(float(reference.mean()), abs=0.01)


def test_evaluation_mode_is_deterministic() -> None:
    x = torch.randn(5, 4)
    assert torch.equal(Dropout(0.3).eval()(x), x)
    torch.testing.assert_close(ClassicalDropout(0.3).eval()(x), 0.7 * x)


def test_classical_and_inverted_dropout_differ_by_a_factor() -> None:
    x = torch.randn(5, 4)
    torch.manual_seed(0)
    inverted = Dropout(0.3)(x)
    torch.manual_seed(0)
    torch.testing.assert_close(ClassicalDropout(0.3)(x), 0.7 * inverted)


def test_dropped_units_receive_no_gradient() -> None:
    torch.manual_seed(0)
    x = torch.ones(1_000, requires_grad=True)
    y = drop_units(x, 0.4)
    y.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, (y != 0) / 0.6)


def test_all_masks_contains_each_mask_once() -> None:
    masks = {tuple(row) for row in all_masks(4).tolist()}
    assert masks == set(product((0.0, 1.0), repeat=4))
    assert len(all_masks(4)) == 16


def test_mask_probabilities_match_hand_computed_values() -> None:
    masks = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    torch.testing.assert_close(mask_probabilities(masks, 0.25), torch.tensor([9 / 64, 1 / 64, 27 / 64]))
    assert float(mask_probabilities(all_masks(7), 0.3).sum()) == pytest.approx(1.0)


def test_average_over_masks_matches_hand_computed_value() -> None:
    """E (m₁ + 2 m₂)² at p = ½: (0 + 1 + 4 + 9) / 4."""
    x = torch.tensor([1.0, 2.0])
    average = average_over_masks(lambda masked: masked.sum(-1, keepdim=True).square(), x, 0.5)
    torch.testing.assert_close(average, torch.tensor([3.5]))


def test_geometric_average_matches_hand_computed_value() -> None:
    """The geometric mean of (½, ½) and (e, 1)/(e + 1) is proportional to (√e, 1)."""
    actual = geometric_average_over_masks(lambda masked: masked * torch.tensor([1.0, 0.0]), torch.ones(1), 0.5)
    root = torch.tensor(0.5).exp()
    torch.testing.assert_close(actual, torch.stack([root, torch.ones(())]) / (root + 1))


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan")])
def test_out_of_range_rate_raises_value_error(rate: float) -> None:
    for function in (
        lambda: Dropout(rate),
        lambda: ClassicalDropout(rate),
        lambda: drop_units(torch.ones(1), rate),
        lambda: mask_probabilities(torch.ones(1, 1), rate),
    ):
        with pytest.raises(ValueError, match="rate must satisfy 0 ≤ rate < 1; got rate="):
            function()


def test_too_many_units_raise_value_error() -> None:
    with pytest.raises(ValueError, match="units must be from 1 to 20; got units=40"):
        all_masks(40)


def test_repr() -> None:
    assert repr(Dropout(0.2)) == "Dropout(rate=0.2)"
    assert repr(ClassicalDropout()) == "ClassicalDropout(rate=0.5)"
