"""Solvers of ordinary differential equations: order of convergence, both directions, exact solutions."""

import sys

import pytest
import torch
from torch import Tensor

from parnassus.diffusion.continuous.ode_solvers import ODESolver, dopri5, euler, heun, rk4

START = torch.tensor([[1.0], [2.0]], dtype=torch.float64)


def field(x: Tensor, t: Tensor) -> Tensor:
    """x′ = x cos t, so that x(t) = x(0) e^{sin t}."""
    return x * torch.cos(t)


def time_grid(steps: int, end: float = 2.0) -> Tensor:
    return torch.linspace(0, end, steps + 1, dtype=torch.float64)


@pytest.mark.parametrize(("solver", "order"), [(euler, 1), (heun, 2), (rk4, 4)])
def test_convergence_order(solver: ODESolver, order: int) -> None:
    exact = START * torch.exp(torch.sin(torch.tensor(2.0, dtype=torch.float64)))
    coarse, fine = ((solver(field, START, time_grid(steps)) - exact).abs().max() for steps in (64, 128))
    assert float(torch.log2(coarse / fine)) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("solver", [rk4, dopri5])
def test_backward_solution_recovers_the_start(solver: ODESolver) -> None:
    end = solver(field, START, time_grid(100))
    torch.testing.assert_close(solver(field, end, time_grid(100).flip(0)), START, atol=1e-4, rtol=0)


def test_adaptive_steps_satisfy_the_tolerance() -> None:
    exact = START * torch.exp(torch.sin(torch.tensor(2.0, dtype=torch.float64)))
    torch.testing.assert_close(dopri5(field, START, time_grid(1), rtol=1e-9, atol=1e-9), exact, atol=1e-7, rtol=0)


def test_missing_dependency_raises_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchdiffeq", None)
    with pytest.raises(ImportError, match=r"pip install 'parnassus\[ode\]'"):
        dopri5(field, START, time_grid(1))


@pytest.mark.parametrize("solver", [euler, heun, rk4, dopri5])
def test_non_monotone_times_raise_value_error(solver: ODESolver) -> None:
    with pytest.raises(ValueError, match="strictly monotone"):
        solver(field, START, torch.tensor([0.0, 1.0, 0.5]))
