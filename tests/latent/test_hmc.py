"""Hamiltonian Monte Carlo: reversible paths, and the right stationary law."""

import pytest
import torch
from torch import Tensor

from parnassus.latent.hmc import hmc_step, leapfrog

PRECISION = torch.tensor([[2.0, 0.6], [0.6, 0.5]], dtype=torch.float64)


def log_density(x: Tensor) -> Tensor:
    return -((x @ PRECISION) * x).sum(-1) / 2


def test_a_path_runs_back_when_its_momentum_is_turned() -> None:
    torch.manual_seed(0)
    x, m = torch.randn(3, 2).double(), torch.randn(3, 2).double()
    step = torch.full((3,), 0.2).double()
    end, last = leapfrog(log_density, x, m, step=step, steps=9)
    back, turned = leapfrog(log_density, end, -last, step=step, steps=9)
    torch.testing.assert_close(back, x)
    torch.testing.assert_close(-turned, m)


def test_the_error_of_the_energy_falls_as_the_square_of_the_step() -> None:
    torch.manual_seed(0)
    x, m = torch.randn(50, 2).double(), torch.randn(50, 2).double()
    errors = []
    for steps in (8, 16):
        end, last = leapfrog(log_density, x, m, step=torch.full((50,), 2 / steps).double(), steps=steps)
        change = log_density(end) - last.square().sum(-1) / 2 - log_density(x) + m.square().sum(-1) / 2
        errors.append(float(change.abs().mean()))
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.15)


def test_steps_keep_a_normal_law() -> None:
    torch.manual_seed(0)
    x = torch.linalg.solve_triangular(
        torch.linalg.cholesky(PRECISION).mT, torch.randn(2, 30_000).double(), upper=True
    ).mT
    for _ in range(3):
        x, acceptance = hmc_step(log_density, x, step=torch.full((30_000,), 0.9).double(), steps=3)
    torch.testing.assert_close(x.mT.cov(), PRECISION.inverse(), atol=0.08, rtol=0)
    assert 0.6 < float(acceptance.mean()) < 1


def test_a_path_that_blows_up_is_refused() -> None:
    x = torch.ones(4, 2).double()
    state, acceptance = hmc_step(lambda z: -z.square().square().sum(-1), x, step=torch.full((4,), 50.0).double())
    torch.testing.assert_close(state, x)
    assert acceptance.tolist() == [0.0] * 4


def test_a_leap_of_no_size_is_refused() -> None:
    with pytest.raises(ValueError, match="positive size; got steps=10, least size 0"):
        hmc_step(log_density, torch.ones(4, 2).double(), step=torch.zeros(4).double())
