"""Schedules against closed forms, and errors for invalid arguments."""

import pytest
import torch

from parnassus.diffusion import (
    LearnableSchedule,
    Schedule,
    constant_schedule,
    cosine_schedule,
    evenly_spaced_steps,
    linear_schedule,
    sigmoid_schedule,
)


def test_constant_schedule_has_geometric_alpha_bar() -> None:
    schedule = constant_schedule(50, noise=0.1)
    torch.testing.assert_close(schedule.alpha_bar, 0.9 ** torch.arange(1, 51, dtype=torch.float64))


def test_cosine_schedule_matches_closed_form() -> None:
    schedule = cosine_schedule(1_000)
    angle = torch.tensor((0.5 + 0.008) / 1.008 * torch.pi / 2, dtype=torch.float64)
    start = torch.tensor(0.008 / 1.008 * torch.pi / 2, dtype=torch.float64)
    torch.testing.assert_close(schedule.alpha_bar[499], (angle.cos() / start.cos()) ** 2)
    assert schedule.alpha.min() >= 1e-3 - 1e-12


def test_sigmoid_schedule_is_symmetric() -> None:
    noise = 1 - sigmoid_schedule(101).alpha
    torch.testing.assert_close(noise + noise.flip(0), torch.full_like(noise, 0.0201))


def test_alpha_bar_before_the_first_step_is_one() -> None:
    schedule = linear_schedule(10)
    assert schedule.alpha_bar_before[0] == 1
    torch.testing.assert_close(schedule.alpha_bar_before[1:], schedule.alpha_bar[:-1])
    assert schedule.snr_before[0] == torch.inf


def test_respaced_schedule_keeps_alpha_bar_at_its_steps() -> None:
    schedule, grid = linear_schedule(1_000), evenly_spaced_steps(1_000, 7)
    respaced = schedule.respace(grid)
    torch.testing.assert_close(respaced.alpha.cumprod(0), schedule.alpha_bar[grid])
    torch.testing.assert_close(Schedule.from_alpha(respaced.alpha).alpha_bar_before, respaced.alpha_bar_before)


def test_casting_rounds_each_value_once() -> None:
    schedule = linear_schedule(1_000)
    cast = schedule.to("cpu", torch.float32)
    assert cast.alpha_bar.dtype == torch.float32
    assert torch.equal(cast.alpha_bar, schedule.alpha_bar.float())


def test_all_parameters_of_a_learnable_schedule_receive_gradients() -> None:
    learnable = LearnableSchedule(cosine_schedule(20))
    learnable().alpha_bar.sum().backward()
    assert all(p.grad is not None and bool((p.grad != 0).all()) for p in learnable.parameters())


@pytest.mark.parametrize("count", [1, 3, 50, 999, 1_000])
def test_evenly_spaced_steps_has_count_steps_and_ends_at_the_last_step(count: int) -> None:
    grid = evenly_spaced_steps(1_000, count)
    assert len(grid.unique()) == count
    assert grid[-1] == 999
    gaps = (grid - torch.cat([torch.tensor([-1]), grid[:-1]])).unique()
    assert gaps.max() - gaps.min() <= 1


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="steps must be at least 1; got steps=0"):
        linear_schedule(0)
    with pytest.raises(ValueError, match=r"strictly between 0 and 1; got from 0\.9 to 1"):
        Schedule.from_alpha(torch.tensor([0.9, 1.0]))
    with pytest.raises(ValueError, match=r"strictly between 0 and 1; got from -0\.5"):
        linear_schedule(10, high=1.5)
    with pytest.raises(ValueError, match="count must lie between 1 and steps; got count=11, steps=10"):
        evenly_spaced_steps(10, 11)
