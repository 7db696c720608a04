"""Hamiltonian Monte Carlo: reversibility and stationary distribution."""

import pytest
import torch
from torch import Tensor

from parnassus.latent.energy_based.hamiltonian_monte_carlo import hmc_step, leapfrog

PRECISION = torch.tensor([[2.0, 0.6], [0.6, 0.5]], dtype=torch.float64)


def log_density(x: Tensor) -> Tensor:
    return -((x @ PRECISION) * x).sum(-1) / 2


def test_leapfrog_is_reversible() -> None:
    torch.manual_seed(0)
    x, m = torch.randn(3, 2).double(), torch.randn(3, 2).double()
    step = torch.full((3,), 0.2).double()
    end, end_momentum = leapfrog(log_density, x, m, step_size=step, num_steps=9)
    start, reversed_momentum = leapfrog(log_density, end, -end_momentum, step_size=step, num_steps=9)
    torch.testing.assert_close(start, x)
    torch.testing.assert_close(-reversed_momentum, m)


def test_energy_error_is_quadratic_in_the_step_size() -> None:
    torch.manual_seed(0)
    x, m = torch.randn(50, 2).double(), torch.randn(50, 2).double()
    errors = []
    for steps in (8, 16):
        end, end_momentum = leapfrog(
            log_density, x, m, step_size=torch.full((50,), 2 / steps).double(), num_steps=steps
        )
        change = log_density(end) - end_momentum.square().sum(-1) / 2 - log_density(x) + m.square().sum(-1) / 2
        errors.append(float(change.abs().mean()))
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.15)


def test_hmc_steps_leave_a_normal_distribution_invariant() -> None:
    torch.manual_seed(0)
    x = torch.linalg.solve_triangular(
        torch.linalg.cholesky(PRECISION).mT, torch.randn(2, 30_000).double(), upper=True
    ).mT
    for _ in range(3):
        x, acceptance = hmc_step(log_density, x, step_size=torch.full((30_000,), 0.9).double(), num_leapfrog_steps=3)
    torch.testing.assert_close(x.mT.cov(), PRECISION.inverse(), atol=0.08, rtol=0)
    assert 0.6 < float(acceptance.mean()) < 1


def test_diverging_trajectory_is_rejected() -> None:
    x = torch.ones(4, 2).double()
    state, acceptance = hmc_step(lambda z: -z.square().square().sum(-1), x, step_size=torch.full((4,), 50.0).double())
    torch.testing.assert_close(state, x)
    assert acceptance.tolist() == [0.0] * 4


def test_zero_step_size_raises_value_error() -> None:
    with pytest.raises(ValueError, match="must be positive; got num_leapfrog_steps=10, smallest step_size 0"):
        hmc_step(log_density, torch.ones(4, 2).double(), step_size=torch.zeros(4).double())
