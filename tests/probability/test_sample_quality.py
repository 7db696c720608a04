import pytest
import torch
from scipy.linalg import sqrtm
from torch import Tensor

from parnassus.probability.sample_quality import (
    frechet_distance,
    gaussian_frechet,
    inception_score,
    kernel_distance,
    precision_recall,
)


def covariance(seed: int, d: int = 4, rank: int = 4) -> Tensor:
    factor = torch.randn(d, rank, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return factor @ factor.mT


@pytest.mark.parametrize("rank", [2, 4])
def test_the_distance_of_gaussians_is_that_of_the_matrix_square_root(rank: int) -> None:
    first, second = covariance(0), covariance(1, rank=rank)
    zero, one = torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    root = torch.from_numpy(sqrtm((first @ second).numpy()).real)
    truth = 4 + first.trace() + second.trace() - 2 * root.trace()
    torch.testing.assert_close(gaussian_frechet(zero, first, one, second), truth, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(gaussian_frechet(one, second, zero, first), truth, rtol=1e-6, atol=1e-6)
    assert float(gaussian_frechet(one, first, one, first)) < 1e-10


def test_a_shift_of_samples_is_seen_and_falls_with_their_number_when_there_is_none() -> None:
    torch.manual_seed(0)
    x = torch.randn(4_000, 3)
    assert frechet_distance(x, x + torch.tensor([3.0, 0.0, 0.0])) == pytest.approx(9.0, rel=1e-6)
    bias = [frechet_distance(torch.randn(n, 3), torch.randn(n, 3)) for n in (100, 4_000)]
    assert bias[1] < bias[0] / 10


def test_the_kernel_distance_is_zero_on_average_for_one_law() -> None:
    torch.manual_seed(0)
    same = kernel_distance(torch.randn(5_000, 4), torch.randn(5_000, 4), size=200)
    assert abs(same.value) < 5 * same.error
    few = kernel_distance(torch.randn(300, 4), torch.randn(300, 4))
    assert few.error > 1e-3
    other = kernel_distance(torch.randn(5_000, 4), torch.randn(5_000, 4) + 0.3, size=200)
    assert other.value > 10 * other.error


def test_a_narrow_sample_is_precise_and_forgets_a_wide_one_recalls() -> None:
    torch.manual_seed(0)
    real = torch.cat([torch.randn(500, 2), torch.randn(500, 2) + 20])
    narrow = precision_recall(real, torch.randn(1_000, 2))  # one of the two modes
    assert narrow.precision > 0.9
    assert 0.4 < narrow.recall < 0.55
    wide = precision_recall(real, torch.cat([torch.randn(500, 2), torch.randn(500, 2) + 20, 60 * torch.rand(1_000, 2)]))
    assert wide.precision < 0.7
    assert wide.recall > 0.9


def test_the_score_counts_the_classes_that_are_told_apart() -> None:
    sure = torch.eye(5).repeat(20, 1).clamp(min=1e-12).log()
    assert inception_score(sure) == pytest.approx(5.0, rel=1e-3)
    assert inception_score(torch.full((100, 5), 0.2).log()) == pytest.approx(1.0)
    assert inception_score(torch.eye(5)[:1].repeat(20, 1).log()) == pytest.approx(1.0)  # log 0 is no trouble


def test_what_cannot_be_compared_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="two rows; got 1 real and 5 drawn"):
        frechet_distance(torch.zeros(1, 2), torch.zeros(5, 2))
    with pytest.raises(ValueError, match="two subsets; got 5 real, 5 drawn, subsets=1"):
        kernel_distance(torch.zeros(5, 2), torch.zeros(5, 2), subsets=1)
    with pytest.raises(ValueError, match="neighbours=5, 5 and 9 rows"):
        precision_recall(torch.zeros(5, 2), torch.zeros(9, 2), neighbours=5)
    with pytest.raises(ValueError, match="sum to one in every row"):
        inception_score(torch.zeros(3, 2))
