"""Preconditioned steps and Newton's method on problems with known solutions."""

import pytest
import torch
from torch import Tensor

from parnassus.optim import newton_descent, preconditioned_step


def test_identity_preconditioner_gives_a_gradient_step() -> None:
    theta, gradient = torch.tensor([1.0, 2.0]), torch.tensor([0.5, -1.0])
    torch.testing.assert_close(
        preconditioned_step(theta, gradient, torch.eye(2), learning_rate=0.1),
        torch.tensor([0.95, 2.1]),
        atol=1e-7,
        rtol=0,
    )


def test_diagonal_preconditioner_divides_each_coordinate() -> None:
    step = preconditioned_step(torch.zeros(2), torch.tensor([6.0, 6.0]), torch.diag(torch.tensor([2.0, 3.0])))
    assert step.tolist() == [-3.0, -2.0]


def test_newton_on_a_cubic_is_the_babylonian_method() -> None:
    """The gradient of x³/3 − 2x is x² − 2: Newton's steps are x ← (x + 2/x)/2."""
    path = newton_descent(lambda x: (x**3 / 3 - 2 * x).sum(), torch.tensor([1.0], dtype=torch.float64), steps=5)
    x = 1.0
    for iterate in path[1:, 0].tolist():
        x = (x + 2 / x) / 2
        assert iterate == pytest.approx(x, rel=1e-14)
    assert float(path[-1, 0]) == pytest.approx(2**0.5, rel=1e-14)


def test_convergence_is_quadratic_near_the_minimum() -> None:
    def loss(theta: Tensor) -> Tensor:
        return theta.exp().sum() - theta.sum() + theta.prod() ** 2 / 4

    gaps = newton_descent(loss, torch.tensor([0.5, -0.3], dtype=torch.float64), steps=4).norm(dim=1)
    assert (gaps[1:4] < 2 * gaps[:3].square()).all()


def test_newton_converges_to_a_saddle_point() -> None:
    path = newton_descent(lambda w: w[0] ** 2 - w[1] ** 2, torch.tensor([1.0, 0.1], dtype=torch.float64), steps=1)
    torch.testing.assert_close(path[-1], torch.zeros(2, dtype=torch.float64))


def test_non_positive_learning_rate_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"learning_rate must be positive; got learning_rate=0\.0"):
        newton_descent(lambda w: w.square().sum(), torch.ones(1), steps=1, learning_rate=0.0)
