import pytest
import torch

from parnassus.metrics.kernel_distance import kernel_distance


def test_the_kernel_distance_is_zero_on_average_for_equal_distributions() -> None:
    torch.manual_seed(0)
    same = kernel_distance(torch.randn(5_000, 4), torch.randn(5_000, 4), size=200)
    assert abs(same.value) < 5 * same.error
    few = kernel_distance(torch.randn(300, 4), torch.randn(300, 4))
    assert few.error > 1e-3
    other = kernel_distance(torch.randn(5_000, 4), torch.randn(5_000, 4) + 0.3, size=200)
    assert other.value > 10 * other.error


def test_too_few_rows_or_subsets_raise() -> None:
    with pytest.raises(ValueError, match="two subsets; got 5 real, 5 samples, subsets=1"):
        kernel_distance(torch.zeros(5, 2), torch.zeros(5, 2), subsets=1)
