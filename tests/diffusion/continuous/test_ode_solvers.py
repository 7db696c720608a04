"""Solvers for ordinary differential equations: their orders, both directions, and an exact answer."""

import sys

import pytest
import torch
from torch import Tensor

from parnassus.diffusion.continuous.ode_solvers import Solver, dopri5, euler, heun, rk4

START = torch.tensor([[1.0], [2.0]], dtype=torch.float64)


def swinging(x: Tensor, t: Tensor) -> Tensor:
    """x′ = x cos t, so that x(t) = x(0) e^{sin t}."""
    return x * torch.cos(t)


def even(steps: int, end: float = 2.0) -> Tensor:
    return torch.linspace(0, end, steps + 1, dtype=torch.float64)


@pytest.mark.parametrize(("solver", "order"), [(euler, 1), (heun, 2), (rk4, 4)])
def test_half_the_step_divides_the_error_by_two_to_the_order(solver: Solver, order: int) -> None:
    exact = START * torch.exp(torch.sin(torch.tensor(2.0, dtype=torch.float64)))
    coarse, fine = ((solver(swinging, START, even(steps)) - exact).abs().max() for steps in (64, 128))
    assert float(torch.log2(coarse / fine)) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("solver", [rk4, dopri5])
def test_the_way_back_undoes_the_way_there(solver: Solver) -> None:
    there = solver(swinging, START, even(100))
    torch.testing.assert_close(solver(swinging, there, even(100).flip(0)), START, atol=1e-4, rtol=0)


def test_adaptive_steps_meet_the_tolerance() -> None:
    exact = START * torch.exp(torch.sin(torch.tensor(2.0, dtype=torch.float64)))
    torch.testing.assert_close(dopri5(swinging, START, even(1), rtol=1e-9, atol=1e-9), exact, atol=1e-7, rtol=0)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchdiffeq", None)
    with pytest.raises(ImportError, match=r"pip install 'parnassus\[ode\]'"):
        dopri5(swinging, START, even(1))


@pytest.mark.parametrize("solver", [euler, heun, rk4, dopri5])
def test_times_must_go_one_way(solver: Solver) -> None:
    with pytest.raises(ValueError, match="strictly monotone"):
        solver(swinging, START, torch.tensor([0.0, 1.0, 0.5]))
