import pytest
import torch

from parnassus.metrics.kernel_distance import kernel_distance


def test_kernel_distance_of_equal_distributions_is_zero_within_its_error() -> None:
    torch.manual_seed(0)
    equal = kernel_distance(torch.randn(5_000, 4), torch.randn(5_000, 4), size=200)
    assert abs(equal.value) < 5 * equal.standard_error
    small = kernel_distance(torch.randn(300, 4), torch.randn(300, 4))
    assert small.standard_error > 1e-3
    shifted = kernel_distance(torch.randn(5_000, 4), torch.randn(5_000, 4) + 0.3, size=200)
    assert shifted.value > 10 * shifted.standard_error


def test_too_few_rows_or_subsets_raise_value_error() -> None:
    with pytest.raises(ValueError, match="two subsets; got 5 real, 5 samples, subsets=1"):
        kernel_distance(torch.zeros(5, 2), torch.zeros(5, 2), subsets=1)
