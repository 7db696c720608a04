"""Expectations by table, by quadrature and by sampling."""

from math import pi

import pytest
import torch

from parnassus.probability import (
    covariance,
    expectation,
    expectation_by_quadrature,
    expectation_by_sampling,
    normal_density,
    standard_normal,
    variance,
)

X = standard_normal(50, 3)
UNIFORM = torch.full((50,), 1 / 50, dtype=torch.float64)


def test_equal_weights_give_sample_moments() -> None:
    torch.testing.assert_close(expectation(X, UNIFORM), X.mean(0))
    torch.testing.assert_close(variance(X, UNIFORM), X.var(0, correction=0))
    torch.testing.assert_close(covariance(X, UNIFORM), X.T.cov(correction=0))


def test_mean_and_variance_of_a_die() -> None:
    faces, fair = torch.arange(1.0, 7.0), torch.full((6,), 1 / 6)
    assert float(expectation(faces, fair)) == pytest.approx(3.5)
    assert float(variance(faces, fair)) == pytest.approx(35 / 12)


def test_variance_is_stable_for_a_large_mean() -> None:
    values = torch.tensor([1e8 - 1, 1e8 + 1], dtype=torch.float64)
    assert float(variance(values, torch.tensor([0.5, 0.5], dtype=torch.float64))) == 1.0


def test_quadrature_matches_closed_forms() -> None:
    mean_sine = expectation_by_quadrature(torch.sin, lambda x: torch.full_like(x, 1 / pi), low=0.0, high=pi)
    assert float(mean_sine) == pytest.approx(2 / pi, rel=1e-6)
    fourth_moment = expectation_by_quadrature(
        lambda x: x**4, lambda x: normal_density(x, mean=0.0, variance=4.0), low=-30.0, high=30.0
    )
    assert float(fourth_moment) == pytest.approx(3 * 16)


def test_standard_error_of_sampling() -> None:
    samples = standard_normal(40_000, seed=1)
    mean, error = expectation_by_sampling(torch.square, samples)
    assert float(error) == pytest.approx((2 / 40_000) ** 0.5, rel=0.05)  # Var X² = 2
    assert abs(float(mean) - 1) < 4 * float(error)


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match="one entry per probability; got 3 values, 2 probabilities"):
        expectation(torch.zeros(3), torch.tensor([0.5, 0.5]))
    with pytest.raises(ValueError, match="must sum to one"):
        variance(torch.zeros(2), torch.tensor([0.5, 0.6]))
    with pytest.raises(ValueError, match=r"need low < high and at least 2 points; got low=1\.0, high=0\.0"):
        expectation_by_quadrature(torch.sin, torch.cos, low=1.0, high=0.0)
    with pytest.raises(ValueError, match="needs at least two draws; got 1"):
        expectation_by_sampling(torch.sin, torch.zeros(1))
