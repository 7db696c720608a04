"""Running covariances compared with NumPy."""

import numpy as np
import pytest
import torch
from torch import Tensor

from parnassus.latent.linear.running_covariance import ROWS_PER_PRODUCT, RunningCovariance, mean_of_rows


def random_data(rows: int, *, mean: float = 0.0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    return (torch.randn(rows, 5, generator=generator, dtype=torch.float64) @ mixing + mean).to(dtype)


@pytest.mark.parametrize("mean", [0.0, 2.0, 1e6])
def test_covariance_matches_numpy_for_any_mean(mean: float) -> None:
    x = random_data(ROWS_PER_PRODUCT + 500, mean=mean)
    moments = RunningCovariance.from_rows(x)
    np.testing.assert_allclose(moments.mean.numpy(), x.numpy().mean(0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(moments.covariance.numpy(), np.cov(x.numpy().T, bias=True), rtol=1e-9, atol=1e-9)


def test_float32_data_with_a_large_mean() -> None:
    """With a mean of 10⁴, uncentred products in float32 lose the covariance."""
    x = random_data(2_000, mean=1e4, dtype=torch.float32)
    torch.testing.assert_close(
        RunningCovariance.from_rows(x).covariance,
        RunningCovariance.from_rows(x.double()).covariance,
        rtol=1e-5,
        atol=1e-5,
    )
    naive = (x.mT @ x / len(x) - x.mean(0).outer(x.mean(0))).double()
    assert (naive - RunningCovariance.from_rows(x).covariance).abs().max() > 1


def test_float32_error_is_below_a_millionth_of_the_largest_variance() -> None:
    x = random_data(20_000, mean=0.5, dtype=torch.float32)
    exact = torch.from_numpy(np.cov(x.double().numpy().T, bias=True))
    assert (RunningCovariance.from_rows(x).covariance - exact).abs().max() < 1e-6 * exact.max()


@pytest.mark.parametrize("cuts", [[50, 50], [1, 99], [30, 1, 69], [7] * 14 + [2]])
def test_sum_of_chunks_matches_all_rows(cuts: list[int]) -> None:
    x = random_data(100, mean=3.0)
    total, *others = (RunningCovariance.from_rows(chunk) for chunk in x.split(cuts))
    for other in others:
        total = total + other
    expected = RunningCovariance.from_rows(x)
    assert total.count == 100
    torch.testing.assert_close(total.mean, expected.mean)
    torch.testing.assert_close(total.scatter, expected.scatter)


def test_one_row_and_equal_rows_have_zero_scatter() -> None:
    x = random_data(1)
    torch.testing.assert_close(
        RunningCovariance.from_rows(x).scatter, torch.zeros(5, 5, dtype=torch.float64), atol=1e-15, rtol=0
    )
    equal_rows = torch.full((3_000, 2), 0.1)
    assert RunningCovariance.from_rows(equal_rows).scatter.abs().max() < 1e-9
    torch.testing.assert_close(mean_of_rows(equal_rows), torch.full((2,), 0.1, dtype=torch.float64), rtol=1e-6, atol=0)


def test_bfloat16_is_converted_to_float32() -> None:
    x = random_data(300).to(torch.bfloat16)
    torch.testing.assert_close(
        RunningCovariance.from_rows(x).covariance,
        RunningCovariance.from_rows(x.double()).covariance,
        rtol=0.05,
        atol=0.05,
    )


def test_invalid_rows_raise() -> None:
    with pytest.raises(ValueError, match=r"at least one row; got x of shape \(0, 5\)"):
        RunningCovariance.from_rows(torch.zeros(0, 5))
    with pytest.raises(ValueError, match=r"must be finite in torch.float32; some are not"):
        RunningCovariance.from_rows(torch.tensor([[1.0, 2.0], [float("nan"), 0.0]]))
    with pytest.raises(ValueError, match=r"must be finite in torch.float32; some are not"):
        RunningCovariance.from_rows(torch.tensor([[1e30, 2.0], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="as many features; got 5 and 2"):
        RunningCovariance.from_rows(random_data(3)) + RunningCovariance.from_rows(torch.ones(3, 2))
