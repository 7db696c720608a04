"""Running covariances against NumPy, for any grouping of rows and large means."""

import numpy as np
import pytest
import torch
from torch import Tensor

from parnassus.latent.linear.running_covariance import ROWS_PER_PRODUCT, RunningCovariance, mean_of_rows


def cloud(rows: int, *, mean: float = 0.0, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    mix = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    return (torch.randn(rows, 5, generator=generator, dtype=torch.float64) @ mix + mean).to(dtype)


@pytest.mark.parametrize("mean", [0.0, 2.0, 1e6])
def test_numpy_agrees_wherever_the_mean_is(mean: float) -> None:
    x = cloud(ROWS_PER_PRODUCT + 500, mean=mean)
    moments = RunningCovariance.from_rows(x)
    np.testing.assert_allclose(moments.mean.numpy(), x.numpy().mean(0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(moments.covariance.numpy(), np.cov(x.numpy().T, bias=True), rtol=1e-9, atol=1e-9)


def test_single_precision_far_from_the_origin_loses_only_representation_error() -> None:
    """A mean of 10⁴ beside deviations of 1: uncentred products in float32 would leave nothing of the covariance."""
    x = cloud(2_000, mean=1e4, dtype=torch.float32)
    torch.testing.assert_close(
        RunningCovariance.from_rows(x).covariance,
        RunningCovariance.from_rows(x.double()).covariance,
        rtol=1e-5,
        atol=1e-5,
    )
    naive = (x.mT @ x / len(x) - x.mean(0).outer(x.mean(0))).double()
    assert (naive - RunningCovariance.from_rows(x).covariance).abs().max() > 1


def test_single_precision_is_good_to_a_millionth_of_the_largest_variance() -> None:
    x = cloud(20_000, mean=0.5, dtype=torch.float32)
    exact = torch.from_numpy(np.cov(x.double().numpy().T, bias=True))
    assert (RunningCovariance.from_rows(x).covariance - exact).abs().max() < 1e-6 * exact.max()


@pytest.mark.parametrize("cuts", [[50, 50], [1, 99], [30, 1, 69], [7] * 14 + [2]])
def test_parts_add_up_to_the_whole(cuts: list[int]) -> None:
    x = cloud(100, mean=3.0)
    first, *others = (RunningCovariance.from_rows(part) for part in x.split(cuts))
    for other in others:
        first = first + other
    whole = RunningCovariance.from_rows(x)
    assert first.count == 100
    torch.testing.assert_close(first.mean, whole.mean)
    torch.testing.assert_close(first.scatter, whole.scatter)


def test_one_row_and_equal_rows_have_no_scatter() -> None:
    x = cloud(1)
    torch.testing.assert_close(
        RunningCovariance.from_rows(x).scatter, torch.zeros(5, 5, dtype=torch.float64), atol=1e-15, rtol=0
    )
    alike = torch.full((3_000, 2), 0.1)
    assert RunningCovariance.from_rows(alike).scatter.abs().max() < 1e-9
    torch.testing.assert_close(mean_of_rows(alike), torch.full((2,), 0.1, dtype=torch.float64), rtol=1e-6, atol=0)


def test_half_precision_is_converted_to_single() -> None:
    x = cloud(300).to(torch.bfloat16)
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
        RunningCovariance.from_rows(cloud(3)) + RunningCovariance.from_rows(torch.ones(3, 2))
