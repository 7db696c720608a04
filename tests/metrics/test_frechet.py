import pytest
import torch
from scipy.linalg import sqrtm
from torch import Tensor

from parnassus.metrics.frechet import frechet_distance, gaussian_frechet_distance
from parnassus.probability import standard_normal


def covariance(seed: int, d: int = 4, rank: int = 4) -> Tensor:
    factor = standard_normal(d, rank, seed=seed)
    return factor @ factor.mT


@pytest.mark.parametrize("rank", [2, 4])
def test_gaussian_distance_matches_the_matrix_square_root_formula(rank: int) -> None:
    first, second = covariance(0), covariance(1, rank=rank)
    zero, one = torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    root = torch.from_numpy(sqrtm((first @ second).numpy()).real)
    expected = 4 + first.trace() + second.trace() - 2 * root.trace()
    torch.testing.assert_close(gaussian_frechet_distance(zero, first, one, second), expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(gaussian_frechet_distance(one, second, zero, first), expected, rtol=1e-6, atol=1e-6)
    assert float(gaussian_frechet_distance(one, first, one, first)) < 1e-10


def test_shift_adds_its_square_and_bias_decreases_with_sample_size() -> None:
    torch.manual_seed(0)
    x = torch.randn(4_000, 3)
    assert frechet_distance(x, x + torch.tensor([3.0, 0.0, 0.0])) == pytest.approx(9.0, rel=1e-6)
    bias = [frechet_distance(torch.randn(n, 3), torch.randn(n, 3)) for n in (100, 4_000)]
    assert bias[1] < bias[0] / 10


def test_single_row_raises_value_error() -> None:
    with pytest.raises(ValueError, match="two rows; got 1 real and 5 samples"):
        frechet_distance(torch.zeros(1, 2), torch.zeros(5, 2))


def test_one_feature_has_the_closed_form() -> None:
    """(μ₁ − μ₂)² + (σ₁ − σ₂)²."""
    x, y = standard_normal(50, 1), 2 * standard_normal(70, 1, seed=1) + 3
    expected = (x.mean() - y.mean()) ** 2 + (x.std() - y.std()) ** 2
    assert frechet_distance(x, y) == pytest.approx(float(expected))
