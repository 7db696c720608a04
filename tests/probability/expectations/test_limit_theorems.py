"""Means, sums and distances against SciPy and by hand."""

import pytest
import torch
from scipy.stats import binom, kstest, norm

from parnassus.probability import coin_sum_normal_distance, kolmogorov_distance, running_means, scaled_sums


def test_means_and_sums_by_hand() -> None:
    draws = torch.tensor([[2.0, 4.0, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0]])
    assert running_means(draws).tolist() == [[2.0, 3.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0]]
    assert scaled_sums(draws).tolist() == [4.0, 2.0]


@pytest.mark.parametrize("shift", [-0.5, 0.0, 2.0])
def test_the_distance_equals_the_kolmogorov_smirnov_statistic(shift: float) -> None:
    torch.manual_seed(0)
    sample = torch.randn(500, dtype=torch.float64) + shift
    expected = kstest(sample.numpy(), "norm").statistic
    assert float(kolmogorov_distance(sample, torch.special.ndtr)) == pytest.approx(expected)


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_the_exact_distance_of_coin_sums(count: int) -> None:
    heads = range(count + 1)
    normal = [norm.cdf((2 * k - count) / count**0.5) for k in heads]
    expected = max(
        max(abs(binom.cdf(k, count, 0.5) - normal[k]), abs(binom.cdf(k - 1, count, 0.5) - normal[k])) for k in heads
    )
    assert coin_sum_normal_distance(count) == pytest.approx(expected, abs=1e-12)


def test_wrong_input_raises() -> None:
    with pytest.raises(ValueError, match="must be non-empty"):
        kolmogorov_distance(torch.zeros(0), torch.special.ndtr)
    with pytest.raises(ValueError, match="count must be positive; got count=0"):
        coin_sum_normal_distance(0)
