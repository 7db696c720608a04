"""Robust regression against linear programming and a general-purpose optimiser."""

from functools import partial

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, minimize

from parnassus.layers import (
    LinearRegression,
    absolute_error_weights,
    huber_weights,
    iteratively_reweighted_least_squares,
    weighted_least_squares,
)

torch.manual_seed(1)
X = torch.randn(25, 2, dtype=torch.float64)
Y = X @ torch.tensor([1.0, -2.0], dtype=torch.float64) + torch.distributions.StudentT(1.5).sample((25,)).double()


def test_absolute_error_fit_matches_linear_programming() -> None:
    """Minimise Σ tᵢ subject to −t ≤ X̃θ − y ≤ t."""
    design = np.column_stack([X.numpy(), np.ones(25)])
    bounds = np.block([[design, -np.eye(25)], [-design, -np.eye(25)]])
    solution = linprog(
        np.concatenate([np.zeros(3), np.ones(25)]),
        A_ub=bounds,
        b_ub=np.concatenate([Y.numpy(), -Y.numpy()]),
        bounds=[(None, None)] * 3 + [(0, None)] * 25,
    )
    model = iteratively_reweighted_least_squares(X, Y, absolute_error_weights, steps=300)
    assert float((model.predict(X) - Y).abs().sum()) == pytest.approx(solution.fun, rel=1e-5)


def test_huber_fit_minimises_the_huber_loss() -> None:
    def error(theta: np.ndarray) -> float:
        prediction = X @ torch.from_numpy(theta[:2]) + theta[2]
        return float(torch.nn.functional.huber_loss(prediction, Y, delta=0.5, reduction="sum"))

    solution = minimize(
        error, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000}
    )
    model = iteratively_reweighted_least_squares(X, Y, partial(huber_weights, delta=0.5), steps=300)
    torch.testing.assert_close(model.w, torch.from_numpy(solution.x[:2]), atol=1e-5, rtol=0)


def test_large_delta_gives_least_squares_and_integer_weights_repeat_rows() -> None:
    plain = LinearRegression.fit(X, Y)
    torch.testing.assert_close(
        iteratively_reweighted_least_squares(X, Y, partial(huber_weights, delta=1e6), steps=3).w, plain.w
    )
    counts = torch.arange(25) % 3
    repeated = LinearRegression.fit(X.repeat_interleave(counts, 0), Y.repeat_interleave(counts))
    torch.testing.assert_close(weighted_least_squares(X, Y, counts.double()).w, repeated.w)


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"must not be negative; got a minimum of -1"):
        weighted_least_squares(X, Y, -torch.ones(25, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"delta must be positive; got delta=0"):
        huber_weights(Y, delta=0.0)
