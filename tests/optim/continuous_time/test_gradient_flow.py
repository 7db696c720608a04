"""Gradient flow and Nesterov's equation against closed-form solutions, and the order of the solver."""

from itertools import pairwise

import pytest
import torch
from scipy.special import gamma, jv
from torch import Tensor

from parnassus.optim import gradient_flow, nesterov_descent, nesterov_flow, quadratic_nesterov_flow

ONE = torch.ones(1, dtype=torch.float64)


def quadratic(w: Tensor) -> Tensor:
    return w.square().sum() / 2


def test_gradient_flow_of_a_quartic_matches_the_closed_form() -> None:
    """w′ = −w³ from 1 has the solution 1/√(1 + 2s)."""
    s = torch.linspace(0, 5, 101, dtype=torch.float64)
    path = gradient_flow(lambda w: w.pow(4).sum() / 4, ONE, time=5.0, steps=100)
    torch.testing.assert_close(path[:, 0], 1 / (1 + 2 * s).sqrt(), atol=1e-6, rtol=0)


def test_flow_has_the_shape_of_the_start() -> None:
    assert gradient_flow(quadratic, torch.ones(2, 3), time=1.0, steps=4).shape == (5, 2, 3)
    assert nesterov_flow(quadratic, torch.ones(2, 3), time=1.0, steps=4).shape == (5, 2, 3)


@pytest.mark.parametrize("damping", [1.0, 2.0, 3.0, 7.0, 12.0])
@pytest.mark.parametrize("curvature", [0.3, 4.0])
def test_closed_form_matches_scipy_bessel_functions(damping: float, curvature: float) -> None:
    s = torch.linspace(0.01, 60, 500, dtype=torch.float64)
    x, nu = (curvature**0.5 * s).numpy(), (damping - 1) / 2
    bessel = torch.as_tensor(gamma(nu + 1) * (2 / x) ** nu * jv(nu, x))
    torch.testing.assert_close(
        quadratic_nesterov_flow(s, curvature=curvature, damping=damping), bessel, atol=1e-12, rtol=0
    )


def test_non_integer_damping_is_less_accurate() -> None:
    """cos^(r−1) then has a singular derivative at ±π/2, which limits the quadrature."""
    s = torch.linspace(0.1, 60, 300, dtype=torch.float64)
    bessel = torch.as_tensor(gamma(1.25) * (2 / s.numpy()) ** 0.25 * jv(0.25, s.numpy()))
    torch.testing.assert_close(quadratic_nesterov_flow(s, damping=1.5), bessel, atol=1e-6, rtol=0)


def test_solution_starts_at_one() -> None:
    torch.testing.assert_close(
        quadratic_nesterov_flow(torch.zeros(2, 2, dtype=torch.float64)), torch.ones(2, 2).double()
    )


@pytest.mark.parametrize("damping", [1.0, 3.0, 9.0])
def test_solver_has_order_four_despite_the_singular_start(damping: float) -> None:
    errors = []
    for steps in (200, 400, 800):
        s = torch.linspace(0, 10, steps + 1, dtype=torch.float64)
        path = nesterov_flow(quadratic, ONE, time=10.0, steps=steps, damping=damping)[:, 0]
        errors.append(float((path - quadratic_nesterov_flow(s, damping=damping)).abs().max()))
    assert all(14 < coarse / fine < 18 for coarse, fine in pairwise(errors))


def test_iteration_converges_to_the_flow_without_a_closed_form() -> None:
    def asymmetric(w: Tensor) -> Tensor:
        return w.exp().sum() - w.sum() + w.pow(4).sum() / 8

    start = torch.tensor([1.5, -1.0], dtype=torch.float64)
    flow = nesterov_flow(asymmetric, start, time=6.0, steps=600)
    coarse, fine = (nesterov_descent(asymmetric, start, learning_rate=(6.0 / n) ** 2, steps=n).phi for n in (300, 600))
    first, second = float((coarse - flow[::2]).abs().max()), float((fine - flow).abs().max())
    assert second == pytest.approx(first / 2, rel=0.1)
    assert second < 0.03


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match=r"need time > 0 and steps ≥ 1; got time=0\.0, steps=5"):
        gradient_flow(quadratic, ONE, time=0.0, steps=5)
    with pytest.raises(ValueError, match=r"need damping ≥ 1; got damping=0\.5"):
        nesterov_flow(quadratic, ONE, time=1.0, steps=5, damping=0.5)
    with pytest.raises(ValueError, match=r"need damping ≥ 1; got damping=0\.0"):
        quadratic_nesterov_flow(ONE, damping=0.0)
