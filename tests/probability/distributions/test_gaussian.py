"""Normal distributions against torch and SciPy, and singular distributions without density."""

import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.probability import (
    Gaussian,
    cholesky_root,
    eigen_root,
    gaussian_log_density,
    independent_sum,
    joint_of_independent,
)


def random_covariance(*shape: int, rank: int) -> Tensor:
    factor = torch.randn(*shape, rank, dtype=torch.float64)
    return factor @ factor.mT


def random_gaussian(dim: int, rank: int) -> Gaussian:
    torch.manual_seed(0)
    return Gaussian(torch.randn(dim, dtype=torch.float64), random_covariance(dim, rank=rank))


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_log_prob_matches_torch(dim: int) -> None:
    distribution = random_gaussian(dim, dim)
    x = torch.randn(7, 3, dim, dtype=torch.float64)
    expected = MultivariateNormal(distribution.mean, distribution.covariance).log_prob(x)
    torch.testing.assert_close(distribution.log_prob(x), expected)
    torch.testing.assert_close(
        gaussian_log_density(x, mean=distribution.mean, covariance=distribution.covariance), expected
    )


def test_singular_log_prob_matches_scipy() -> None:
    distribution = random_gaussian(4, 2)
    x = distribution.sample(10)
    expected = multivariate_normal(
        distribution.mean.numpy(), distribution.covariance.numpy(), allow_singular=True
    ).logpdf(x.numpy())
    torch.testing.assert_close(distribution.log_prob(x), torch.from_numpy(expected))
    assert int(distribution.rank) == 2


def test_density_outside_the_support_is_zero() -> None:
    distribution = random_gaussian(4, 2)
    assert distribution.log_prob(distribution.sample(5) + 1e-3).tolist() == [-torch.inf] * 5


def test_point_mass() -> None:
    distribution = Gaussian(torch.tensor([2.0, -1.0]), torch.zeros(2, 2))
    assert distribution.sample(3).tolist() == [[2.0, -1.0]] * 3
    assert distribution.log_prob(torch.tensor([[2.0, -1.0], [2.0, 0.0]])).tolist() == [0.0, -torch.inf]
    assert int(distribution.rank) == 0


def test_batches_broadcast_and_are_independent() -> None:
    torch.manual_seed(0)
    means, covariances = torch.randn(3, 1, 4).double(), random_covariance(2, 4, rank=4)
    distribution = Gaussian(means, covariances)
    x = torch.randn(3, 2, 4).double()
    single = torch.stack(
        [torch.stack([Gaussian(means[i, 0], covariances[j]).log_prob(x[i, j]) for j in range(2)]) for i in range(3)]
    )
    torch.testing.assert_close(distribution.log_prob(x), single)
    assert distribution.sample(5).shape == (5, 3, 2, 4)


@pytest.mark.parametrize("root", [cholesky_root, eigen_root])
def test_root_times_its_transpose_is_the_covariance(root: type) -> None:
    torch.manual_seed(0)
    covariance = random_covariance(3, 4, rank=4)
    torch.testing.assert_close(root(covariance) @ root(covariance).mT, covariance)


def test_samples_have_mean_and_covariance() -> None:
    distribution = random_gaussian(3, 2)
    x = distribution.sample(200_000, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(x.mean(0), distribution.mean, atol=0.02, rtol=0)
    torch.testing.assert_close(x.mT.cov(), distribution.covariance, atol=0.05, rtol=0)
    repeated = distribution.sample(200_000, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(x, repeated, atol=0, rtol=0)


def test_affine_images_sums_and_pairs_match_hand_computation() -> None:
    x = Gaussian(torch.tensor([1.0, 2.0]), torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
    y = Gaussian(torch.tensor([5.0]), torch.tensor([[4.0]]))
    image = x.affine(torch.tensor([[1.0, 1.0], [1.0, -1.0], [0.0, 2.0]]), torch.tensor([0.0, 10.0, 0.0]))
    assert image.mean.tolist() == [3.0, 9.0, 4.0]
    assert image.covariance.tolist() == [[7.0, -1.0, 8.0], [-1.0, 3.0, -4.0], [8.0, -4.0, 12.0]]
    assert int(image.rank) == 2
    pair = joint_of_independent(x, y)
    assert pair.mean.tolist() == [1.0, 2.0, 5.0]
    assert pair.covariance.tolist() == [[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 4.0]]
    total = independent_sum(x, x)
    assert total.mean.tolist() == [2.0, 4.0]
    assert total.covariance.tolist() == [[4.0, 2.0], [2.0, 6.0]]
    assert pair.marginal([2, 0]).covariance.tolist() == [[4.0, 0.0], [0.0, 2.0]]


def test_moment_generating_function_matches_the_log_normal_mean() -> None:
    distribution = Gaussian(torch.tensor([0.5]).double(), torch.tensor([[0.8]]).double())
    mean = torch.distributions.LogNormal(torch.tensor(0.5).double(), torch.tensor(0.8).double().sqrt()).mean
    torch.testing.assert_close(distribution.moment_generating_function(torch.ones(1).double()), mean)


def test_gradients_match_torch() -> None:
    factor = torch.tensor([[1.0, 0.0], [0.5, 1.0]], dtype=torch.float64, requires_grad=True)
    mean = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    x = torch.randn(5, 2, dtype=torch.float64)
    gradients = torch.autograd.grad(Gaussian(mean, factor @ factor.mT).log_prob(x).sum(), (mean, factor))
    expected_gradients = torch.autograd.grad(
        MultivariateNormal(mean, factor @ factor.mT).log_prob(x).sum(), (mean, factor)
    )
    for actual, expected in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ([[1.0, 0.0], [0.5, 1.0]], "a covariance must be symmetric; two opposite entries differ by 0.5"),
        ([[1.0, 2.0], [2.0, 1.0]], "negative eigenvalues; the smallest is -1"),
        ([[1.0, float("nan")], [float("nan"), 1.0]], "must be finite"),
    ],
)
def test_invalid_covariances_raise_value_error(covariance: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Gaussian(torch.zeros(2), torch.tensor(covariance))


def test_mean_and_covariance_of_different_sizes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="mean and covariance must have the same size; got 3 and 2"):
        Gaussian(torch.zeros(3), torch.eye(2))


def test_cholesky_root_of_singular_covariance_raises_value_error() -> None:
    with pytest.raises(ValueError, match="needs a positive definite covariance; use eigen_root for a singular one"):
        cholesky_root(torch.ones(2, 2))
