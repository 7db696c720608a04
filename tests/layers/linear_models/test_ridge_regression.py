"""Ridge regression against least squares, the hat matrix and scikit-learn."""

import pytest
import torch
from sklearn.linear_model import Ridge

from parnassus.layers import LinearRegression, effective_parameters, ridge_path, ridge_regression

torch.manual_seed(0)
X = torch.randn(30, 4, dtype=torch.float64) + 2
Y = X @ torch.tensor([1.0, -2.0, 0.0, 3.0], dtype=torch.float64) + torch.randn(30, dtype=torch.float64) + 5


@pytest.mark.parametrize("penalty", [1e-6, 0.1, 10.0])
def test_matches_scikit_learn(penalty: float) -> None:
    """scikit-learn sums the squared errors, so its penalty is n times as large."""
    reference = Ridge(alpha=30 * penalty).fit(X.numpy(), Y.numpy())
    model = ridge_regression(X, Y, penalty=penalty)
    torch.testing.assert_close(model.w, torch.from_numpy(reference.coef_))
    assert float(model.b) == pytest.approx(float(reference.intercept_))


def test_zero_penalty_gives_least_squares() -> None:
    expected = LinearRegression.fit(X, Y)
    model = ridge_regression(X, Y, penalty=0.0)
    torch.testing.assert_close(model.w, expected.w)
    torch.testing.assert_close(model.b, expected.b)


def test_constant_column_has_zero_slope() -> None:
    with_constant = torch.cat([X, torch.full((30, 1), 7.0, dtype=torch.float64)], 1)
    model = ridge_regression(with_constant, Y, penalty=0.0)
    assert float(model.w[-1]) == pytest.approx(0, abs=1e-10)
    torch.testing.assert_close(model.w[:-1], LinearRegression.fit(X, Y).w)


def test_ridge_path_matches_separate_fits() -> None:
    penalties = torch.tensor([0.01, 0.5, 20.0], dtype=torch.float64)
    path = ridge_path(X, Y, penalties=penalties)
    for slopes, penalty in zip(path, penalties, strict=True):
        torch.testing.assert_close(slopes, ridge_regression(X, Y, penalty=float(penalty)).w)
    assert bool((path.norm(dim=1).diff() < 0).all())


def test_effective_parameters_are_the_trace_of_the_hat_matrix() -> None:
    centred = X - X.mean(0)
    hat = centred @ torch.linalg.solve(centred.T @ centred + 30 * 0.3 * torch.eye(4, dtype=X.dtype), centred.T)
    torch.testing.assert_close(effective_parameters(X, penalty=0.3), hat.trace())
    assert float(effective_parameters(X, penalty=0.0)) == pytest.approx(4)


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"must not be negative; got penalty=-1"):
        ridge_regression(X, Y, penalty=-1.0)
    with pytest.raises(ValueError, match="at least one example"):
        ridge_regression(X[:0], Y[:0], penalty=1.0)
    with pytest.raises(ValueError, match=r"got penalty=nan"):
        effective_parameters(X, penalty=float("nan"))
