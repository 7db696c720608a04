"""The 1cycle schedule, the learning-rate finder and the validation search."""

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.optim import (
    LearningRateCurve,
    find_learning_rate,
    holdout_indices,
    one_cycle_momentum,
    one_cycle_rate,
    step_decay,
    validation_search,
)


@pytest.mark.parametrize("steps", [4, 10, 37, 1_000])
@pytest.mark.parametrize("warm_up", [0.3, 0.5, 0.75])
def test_one_cycle_matches_torch(steps: int, warm_up: float) -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = OneCycleLR(
        optimizer, max_lr=0.3, total_steps=steps, pct_start=warm_up, div_factor=10, final_div_factor=7
    )
    for step in range(steps):
        group = optimizer.param_groups[0]
        rate = one_cycle_rate(step, steps, peak=0.3, warmup_fraction=warm_up, div_factor=10.0, final_div_factor=7.0)
        assert rate == pytest.approx(group["lr"], rel=1e-12)
        assert one_cycle_momentum(step, steps, warmup_fraction=warm_up) == pytest.approx(group["momentum"], rel=1e-12)
        optimizer.step()
        if step + 1 < steps:
            scheduler.step()


def test_step_outside_the_cycle_raises_value_error() -> None:
    with pytest.raises(ValueError, match="got step=10, steps=10"):
        one_cycle_rate(10, 10, peak=1.0)
    with pytest.raises(ValueError, match="got step=-1, steps=10"):
        one_cycle_momentum(-1, 10)
    with pytest.raises(ValueError, match=r"got warmup_fraction=0\.3, steps=3"):
        one_cycle_rate(0, 3, peak=1.0)


def quadratic_loss(theta: Tensor, beta: float = 2.0) -> Tensor:
    return beta * theta.square().sum() / 2


def test_finder_stops_below_two_over_beta_and_restores_the_parameters() -> None:
    theta = nn.Parameter(torch.tensor([1.0, -3.0], dtype=torch.float64))
    curve = find_learning_rate([theta], lambda: quadratic_loss(theta), min_rate=1e-3, max_rate=100.0, steps=200)
    assert 0.94 < curve.suggestion <= 1.0
    assert len(curve.rates) < 200
    assert theta.tolist() == [1.0, -3.0]
    assert theta.grad is None


def test_finder_smooths_the_loss() -> None:
    theta = nn.Parameter(torch.ones(1, dtype=torch.float64))
    losses = iter([1.0, 0.5, 0.25, 0.125])
    curve = find_learning_rate([theta], lambda: 0 * theta.sum() + next(losses), steps=4, smoothing=0.5)
    expected = [1.0, (0.25 + 0.25) / 0.75, (0.125 + 0.125 + 0.125) / 0.875, (0.0625 * 4) / 0.9375]
    assert curve.losses.tolist() == pytest.approx(expected)


def test_nan_loss_ends_the_search() -> None:
    theta = nn.Parameter(torch.ones(1))
    losses = iter([1.0, 0.5, float("nan"), 0.1])
    curve = find_learning_rate([theta], lambda: 0 * theta.sum() + next(losses), steps=4)
    assert curve.losses.tolist() == [1.0, 0.5, float("inf")]
    assert curve.suggestion == pytest.approx(1e-7)


def test_increasing_loss_suggests_the_smallest_rate() -> None:
    assert LearningRateCurve(torch.tensor([0.1, 0.2]), torch.tensor([1.0, 2.0])).suggestion == pytest.approx(0.1)


def test_invalid_ranges_raise_value_error() -> None:
    theta = nn.Parameter(torch.ones(1))
    with pytest.raises(ValueError, match=r"got min_rate=1\.0, max_rate=1\.0"):
        find_learning_rate([theta], lambda: quadratic_loss(theta), min_rate=1.0, max_rate=1.0)
    with pytest.raises(ValueError, match="got steps=1,"):
        find_learning_rate([theta], lambda: quadratic_loss(theta), steps=1)


def test_hold_out_is_a_partition() -> None:
    train, validation = holdout_indices(50, 0.2)
    assert len(validation) == 10
    assert sorted(train.tolist() + validation.tolist()) == list(range(50))


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5])
def test_invalid_hold_out_fraction_raises_value_error(fraction: float) -> None:
    with pytest.raises(ValueError, match=f"got num_examples=10, fraction={fraction}"):
        holdout_indices(10, fraction)


def test_search_selects_the_smallest_loss_and_ignores_nan() -> None:
    losses = {0.1: 0.5, 0.2: 0.3, 0.4: float("nan")}
    search = validation_search([0.1, 0.2, 0.4], losses.__getitem__)
    assert search.best == 0.2
    assert search.losses[:2] == [0.5, 0.3]


def test_search_without_a_finite_loss_raises_value_error() -> None:
    with pytest.raises(ValueError, match="at least one candidate"):
        validation_search([], lambda _: 0.0)
    with pytest.raises(ValueError, match=r"got candidates=\[1, 2\]"):
        validation_search([1, 2], lambda _: float("nan"))


def test_step_decay_multiplies_the_rate_every_step_size_epochs() -> None:
    assert [step_decay(epoch, initial=1.0, step_size=2, gamma=0.5) for epoch in range(6)] == [
        1.0,
        1.0,
        0.5,
        0.5,
        0.25,
        0.25,
    ]
    with pytest.raises(ValueError, match=r"got epoch=-1, step_size=10"):
        step_decay(-1)
