"""Least squares against the normal equations, NumPy and torch; polynomial features."""

import numpy as np
import pytest
import torch

from parnassus.layers import (
    LinearRegression,
    append_ones,
    least_squares,
    leave_one_out_residuals,
    leverages,
    linear_model,
    linear_sgd_step,
    polynomial_features,
)
from parnassus.layers.linear_models.linear_regression import check_regression_data

torch.manual_seed(0)
X = torch.randn(40, 3, dtype=torch.float64)
Y = torch.randn(40, dtype=torch.float64)


def test_residuals_are_orthogonal_to_the_data() -> None:
    w, b = least_squares(X, Y)
    residual = Y - linear_model(X, w, b)
    torch.testing.assert_close(X.T @ residual, torch.zeros(3, dtype=torch.float64), atol=1e-12, rtol=0)
    assert float(residual.sum()) == pytest.approx(0, abs=1e-12)


def test_solution_matches_the_normal_equations() -> None:
    design = torch.cat([X, torch.ones(40, 1, dtype=torch.float64)], 1)
    solution = torch.linalg.solve(design.T @ design, design.T @ Y)
    w, b = least_squares(X, Y)
    torch.testing.assert_close(torch.cat([w, b[None]]), solution)


def test_underdetermined_fit_has_minimum_norm() -> None:
    w, b = least_squares(X[:2], Y[:2])
    torch.testing.assert_close(linear_model(X[:2], w, b), Y[:2])
    design = torch.cat([X[:2], torch.ones(2, 1, dtype=torch.float64)], 1)
    torch.testing.assert_close(torch.cat([w, b[None]]), torch.linalg.pinv(design) @ Y[:2])


def test_polynomials_are_fitted_exactly() -> None:
    x = torch.linspace(-1, 1, 30, dtype=torch.float64)
    y = 1 - 2 * x + 0.5 * x**3 - 4 * x**5
    model = LinearRegression.fit(polynomial_features(x, 5), y)
    torch.testing.assert_close(
        model.predict(polynomial_features(x / 3, 5)), 1 - 2 * (x / 3) + 0.5 * (x / 3) ** 3 - 4 * (x / 3) ** 5
    )


def test_features_are_legendre_polynomials() -> None:
    x = torch.linspace(-1, 1, 7, dtype=torch.float64)
    torch.testing.assert_close(polynomial_features(x, 3)[:, 1], (3 * x**2 - 1) / 2)
    torch.testing.assert_close(polynomial_features(x, 3)[:, 2], (5 * x**3 - 3 * x) / 2)
    assert polynomial_features(x, 1).shape == (7, 1)


def test_leave_one_out_residuals_match_refitting() -> None:
    expected = []
    for row in range(len(X)):
        others = torch.arange(len(X)) != row
        model = LinearRegression.fit(X[others], Y[others])
        expected.append(Y[row] - model.predict(X[row : row + 1])[0])
    torch.testing.assert_close(leave_one_out_residuals(X, Y), torch.stack(expected))


def test_leverages_are_the_diagonal_of_the_hat_matrix() -> None:
    design = append_ones(X)
    hat = design @ torch.linalg.solve(design.T @ design, design.T)
    torch.testing.assert_close(leverages(X), hat.diagonal())
    assert float(leverages(X).sum()) == pytest.approx(4)  # three slopes and an intercept


def test_sgd_step_matches_torch_with_weight_decay_on_slopes_only() -> None:
    w = torch.nn.Parameter(torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64))
    b = torch.nn.Parameter(torch.tensor(0.3, dtype=torch.float64))
    slopes, intercept = {"params": [w], "weight_decay": 0.2}, {"params": [b], "weight_decay": 0.0}
    optimizer = torch.optim.SGD([slopes, intercept], lr=0.05)
    actual = linear_sgd_step(w.detach().clone(), b.detach().clone(), X[:8], Y[:8], learning_rate=0.05, weight_decay=0.2)
    (torch.nn.functional.mse_loss(X[:8] @ w + b, Y[:8]) / 2).backward()
    optimizer.step()
    torch.testing.assert_close(actual, (w.detach(), b.detach()))


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match="at least one example"):
        least_squares(X[:0], Y[:0])
    with pytest.raises(ValueError, match="degree=0"):
        polynomial_features(Y, 0)
    with pytest.raises(ValueError, match="3 features need at least 5 points; got 4"):
        leave_one_out_residuals(X[:4], Y[:4])


def test_invalid_data_raises_value_error() -> None:
    x, y = torch.ones(3, 2), torch.ones(3)
    with pytest.raises(ValueError, match="at least one example; got none"):
        check_regression_data(x[:0], y[:0])
    with pytest.raises(ValueError, match="same number of rows; got 3 and 2"):
        check_regression_data(x, y[:2])
    with pytest.raises(ValueError, match="must be finite; got NaN or infinite values"):
        LinearRegression.fit(x, torch.tensor([1.0, torch.nan, 2.0]))


@pytest.mark.parametrize("rows", [25, 400])
def test_rank_deficient_fit_matches_numpy(rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = 2 * torch.rand(rows, 1, generator=generator, dtype=torch.float64) - 1
    kinks = 3 * torch.randn(2, 24, generator=generator, dtype=torch.float64)
    features, y = torch.relu(x * kinks[0] + kinks[1]), torch.sin(9 * x[:, 0])
    design = append_ones(features)
    assert int(torch.linalg.matrix_rank(design)) < 25
    w, b = least_squares(features, y)
    reference, *_ = np.linalg.lstsq(design.numpy(), y.numpy(), rcond=None)
    torch.testing.assert_close(torch.cat([w, b[None]]), torch.from_numpy(reference), rtol=1e-6, atol=1e-8)
