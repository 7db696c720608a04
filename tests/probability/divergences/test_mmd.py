"""The maximum mean discrepancy against its closed form and a double loop."""

from functools import partial

import pytest
import torch
from torch import Tensor

from parnassus.probability.divergences.mmd import (
    InverseMultiquadricKernel,
    PairwiseKernel,
    gaussian_squared_mmd,
    squared_mmd,
    unbiased_squared_mmd,
)
from parnassus.probability.divergences.rbf_kernel import rbf_kernel

DOUBLE = torch.float64
KERNELS = [partial(rbf_kernel, length_scale=0.7), InverseMultiquadricKernel(2.0)]


def sample_normal(count: int, seed: int, *, mean: float = 0.0, std: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return mean + std * torch.randn(count, 2, generator=generator, dtype=DOUBLE)


def mean_over_pairs(x: Tensor, y: Tensor, kernel: PairwiseKernel, *, skip_diagonal: bool) -> float:
    """The mean of the kernel over pairs, by loops."""
    values = [
        float(kernel(a[None], b[None]))
        for i, a in enumerate(x)
        for j, b in enumerate(y)
        if not (skip_diagonal and i == j)
    ]
    return sum(values) / len(values)


def test_multiquadric_kernel_matches_hand_computation() -> None:
    x, y = torch.tensor([[0.0, 0.0], [1.0, 2.0]], dtype=DOUBLE), torch.tensor([[3.0, 4.0]], dtype=DOUBLE)
    distances = torch.tensor([[25.0], [8.0]], dtype=DOUBLE)
    torch.testing.assert_close(InverseMultiquadricKernel(3.0)(x, y), 3 / (3 + distances))


@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "multiquadric"])
def test_both_estimators_match_means_over_pairs(kernel: PairwiseKernel) -> None:
    x, y = sample_normal(5, 0), sample_normal(7, 1, mean=1.0)
    cross_term = mean_over_pairs(x, y, kernel, skip_diagonal=False)
    for estimator, skip_diagonal in ((squared_mmd, False), (unbiased_squared_mmd, True)):
        expected = (
            mean_over_pairs(x, x, kernel, skip_diagonal=skip_diagonal)
            + mean_over_pairs(y, y, kernel, skip_diagonal=skip_diagonal)
            - 2 * cross_term
        )
        assert float(estimator(x, y, kernel=kernel)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "multiquadric"])
def test_biased_mmd_is_zero_for_equal_samples_and_otherwise_positive(kernel: PairwiseKernel) -> None:
    x = sample_normal(40, 0)
    assert float(squared_mmd(x, x, kernel=kernel)) == pytest.approx(0, abs=1e-12)
    assert all(
        float(squared_mmd(sample_normal(10, seed), sample_normal(10, 100 + seed), kernel=kernel)) > 0
        for seed in range(50)
    )


def test_unbiased_mmd_has_the_closed_form_mean() -> None:
    kernel = partial(rbf_kernel, length_scale=0.8)
    mean_1, mean_2 = torch.tensor([0.0, 0.0], dtype=DOUBLE), torch.tensor([0.6, 0.6], dtype=DOUBLE)
    exact = gaussian_squared_mmd(mean_1, mean_1 + 1, mean_2, mean_1 + 1.5**2, length_scale=0.8)
    values = torch.stack(
        [
            unbiased_squared_mmd(
                sample_normal(30, seed), sample_normal(30, 1_000 + seed, mean=0.6, std=1.5), kernel=kernel
            )
            for seed in range(400)
        ]
    )
    assert abs(float(values.mean() - exact)) < 4 * float(values.std()) / 400**0.5
    assert float(values.min()) < 0 < float(exact)


def test_mmd_of_equal_normals_is_zero() -> None:
    mean, variance = torch.tensor([0.3, -2.0]), torch.tensor([1.0, 0.2])
    assert float(gaussian_squared_mmd(mean, variance, mean, variance)) == pytest.approx(0, abs=1e-7)


def test_gradients_are_finite_where_points_coincide() -> None:
    x = torch.zeros(4, 2, requires_grad=True)
    squared_mmd(x, torch.zeros(4, 2), kernel=rbf_kernel).backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


def test_invalid_input_raises_value_error() -> None:
    with pytest.raises(ValueError, match="scale must be positive; got scale=-1"):
        InverseMultiquadricKernel(-1.0)
    with pytest.raises(ValueError, match="must be non-empty; got 0 and 3"):
        squared_mmd(sample_normal(0, 0), sample_normal(3, 0), kernel=rbf_kernel)
    with pytest.raises(ValueError, match="at least two points; got 3 and 1"):
        unbiased_squared_mmd(sample_normal(3, 0), sample_normal(1, 0), kernel=rbf_kernel)
