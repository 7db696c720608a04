"""The normal density against SciPy."""

import pytest
import torch
from scipy.stats import norm

from parnassus.probability import normal_density, normal_log_density

X = torch.linspace(-5, 5, 31, dtype=torch.float64)


@pytest.mark.parametrize(("mean", "sigma"), [(0.0, 1.0), (2.0, 0.3), (-1.0, 5.0)])
def test_normal_density_matches_scipy(mean: float, sigma: float) -> None:
    torch.testing.assert_close(
        normal_density(X, mean=mean, variance=sigma**2), torch.from_numpy(norm(mean, sigma).pdf(X))
    )


def test_mean_and_variance_broadcast() -> None:
    mean, variance = X.flip(0), X.square() + 1
    torch.testing.assert_close(
        normal_log_density(X, mean=mean, variance=variance), torch.from_numpy(norm(mean, variance.sqrt()).logpdf(X))
    )


def test_log_density_does_not_underflow() -> None:
    assert float(normal_log_density(torch.tensor(1e3), mean=0.0, variance=1.0)) == pytest.approx(-5e5, rel=1e-4)


@pytest.mark.parametrize("variance", [0.0, -1.0, float("nan")])
def test_non_positive_variance_raises_value_error(variance: float) -> None:
    with pytest.raises(ValueError, match="the variance must be positive; the smallest is"):
        normal_density(X, mean=0.0, variance=variance)
