"""Means, sums and distances against SciPy and hand computations."""

import pytest
import torch
from scipy.stats import binom, kstest, norm

from parnassus.probability import coin_sum_normal_distance, kolmogorov_distance, running_means, scaled_sums


def test_means_and_sums_match_hand_computation() -> None:
    samples = torch.tensor([[2.0, 4.0, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0]])
    assert running_means(samples).tolist() == [[2.0, 3.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0]]
    assert scaled_sums(samples).tolist() == [4.0, 2.0]


@pytest.mark.parametrize("shift", [-0.5, 0.0, 2.0])
def test_kolmogorov_distance_matches_scipy(shift: float) -> None:
    torch.manual_seed(0)
    sample = torch.randn(500, dtype=torch.float64) + shift
    expected = kstest(sample.numpy(), "norm").statistic
    assert float(kolmogorov_distance(sample, torch.special.ndtr)) == pytest.approx(expected)


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_coin_sum_distance_matches_scipy(count: int) -> None:
    heads = range(count + 1)
    normal = [norm.cdf((2 * k - count) / count**0.5) for k in heads]
    expected = max(
        max(abs(binom.cdf(k, count, 0.5) - normal[k]), abs(binom.cdf(k - 1, count, 0.5) - normal[k])) for k in heads
    )
    assert coin_sum_normal_distance(count) == pytest.approx(expected, abs=1e-12)


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match="must be non-empty"):
        kolmogorov_distance(torch.zeros(0), torch.special.ndtr)
    with pytest.raises(ValueError, match="count must be positive; got count=0"):
        coin_sum_normal_distance(0)
