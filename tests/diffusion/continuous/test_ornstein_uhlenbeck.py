"""The Ornstein-Uhlenbeck process: transitions, stationary distribution and covariance."""

import pytest
import torch

from parnassus.diffusion.continuous.euler_maruyama import euler_maruyama
from parnassus.diffusion.continuous.ornstein_uhlenbeck import OrnsteinUhlenbeck

PROCESS = OrnsteinUhlenbeck(rate=1.5, mean=0.5, sigma=0.8)
X = torch.tensor([-2.0, 0.3, 4.0], dtype=torch.float64)


def test_two_transitions_compose_to_one() -> None:
    """Means compose, and the variance of the first shrinks by e^{−2θt} before that of the second is added."""
    first, both = PROCESS.transition(X, 0.4), PROCESS.transition(X, 1.0)
    second = PROCESS.transition(first.mean, 0.6)
    decay = torch.exp(torch.tensor(-2 * 1.5 * 0.6, dtype=torch.float64))
    torch.testing.assert_close(second.mean, both.mean)
    torch.testing.assert_close(first.variance * decay + second.variance, both.variance)


def test_transition_converges_to_the_stationary_distribution() -> None:
    limit = PROCESS.transition(X, 40.0)
    torch.testing.assert_close(limit.mean, torch.full_like(X, 0.5))
    torch.testing.assert_close(limit.variance, torch.full_like(X, 0.64 / 3))
    assert float(PROCESS.stationary().variance) == pytest.approx(0.64 / 3)


def test_transition_matches_euler_maruyama() -> None:
    torch.manual_seed(0)
    times = torch.linspace(0, 0.5, 201, dtype=torch.float64)
    end = euler_maruyama(PROCESS.drift, PROCESS.volatility, torch.full((100_000, 1), -2.0).double(), times)
    transition = PROCESS.transition(torch.tensor(-2.0, dtype=torch.float64), 0.5)
    torch.testing.assert_close(end.mean(), transition.mean, atol=0.01, rtol=0)
    torch.testing.assert_close(end.std(), transition.stddev, atol=0.01, rtol=0)


def test_stationary_path_has_exponential_covariance() -> None:
    torch.manual_seed(0)
    start = PROCESS.stationary().sample((200_000,))
    path = PROCESS.path(start, torch.tensor([0.0, 0.3, 1.3], dtype=torch.float64))
    covariance = path.cov()
    for (i, j), lag in {(0, 0): 0.0, (0, 1): 0.3, (1, 2): 1.0, (0, 2): 1.3}.items():
        assert float(covariance[i, j]) == pytest.approx(PROCESS.covariance(lag), abs=0.003)


def test_non_positive_rate_raises_value_error() -> None:
    with pytest.raises(ValueError, match="rate and sigma must be positive; got rate="):
        OrnsteinUhlenbeck(rate=0.0)
