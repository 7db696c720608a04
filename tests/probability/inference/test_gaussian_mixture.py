"""Gaussian mixtures against scikit-learn and torch, and degenerate fits."""

import warnings
from itertools import islice

import pytest
import torch
from sklearn.mixture import GaussianMixture as SklearnMixture
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from parnassus.probability import GaussianMixture, em_iterates, em_step, kmeans_plus_plus_start, m_step, mixture_elbo


def sample_rows(count: int = 200, dim: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    centres = 4 * torch.randn(4, dim, generator=generator, dtype=torch.float64)
    noise = torch.randn(count, dim, generator=generator, dtype=torch.float64)
    return centres[torch.arange(count) % 4] + noise * torch.linspace(0.5, 1.5, dim, dtype=torch.float64)


def fit_scikit_learn(mixture: GaussianMixture, x: Tensor, steps: int) -> SklearnMixture:
    """Scikit-learn's mixture after `steps` of EM from the same start."""
    model = SklearnMixture(
        len(mixture.weights),
        weights_init=mixture.weights.numpy(),
        means_init=mixture.means.numpy(),
        precisions_init=torch.linalg.inv(mixture.covariances).numpy(),
        max_iter=steps,
        tol=0.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ConvergenceWarning
        return model.fit(x.numpy())


@pytest.mark.parametrize("steps", [1, 12])
def test_em_steps_match_scikit_learn(steps: int) -> None:
    x = sample_rows()
    start = kmeans_plus_plus_start(x, 4, seed=3)
    mixture, reference = next(islice(em_iterates(x, start), steps, None)), fit_scikit_learn(start, x, steps)
    torch.testing.assert_close(mixture.weights, torch.from_numpy(reference.weights_))
    torch.testing.assert_close(mixture.means, torch.from_numpy(reference.means_))
    torch.testing.assert_close(mixture.covariances, torch.from_numpy(reference.covariances_))
    torch.testing.assert_close(mixture.log_prob(x), torch.from_numpy(reference.score_samples(x.numpy())))
    torch.testing.assert_close(mixture.responsibilities(x), torch.from_numpy(reference.predict_proba(x.numpy())))


def test_fit_recovers_the_clusters_and_matches_scikit_learn() -> None:
    x = sample_rows(400)
    mixture = GaussianMixture.fit(x, 4)
    reference = SklearnMixture(4, n_init=5, random_state=0, tol=1e-7).fit(x.numpy())
    assert float(mixture.log_prob(x).mean()) > reference.score(x.numpy()) - 1e-5
    centres = x[:4].clone().double()  # one row per cluster
    assert float(torch.cdist(centres, mixture.means).amin(1).max()) < 4.0
    torch.testing.assert_close(mixture.weights, torch.full_like(mixture.weights, 0.25), atol=0.02, rtol=0)


def test_fit_keeps_the_dtype_and_ignores_the_global_seed() -> None:
    x = sample_rows().float()
    first = GaussianMixture.fit(x, 3, starts=2)
    torch.manual_seed(99)
    second = GaussianMixture.fit(x, 3, starts=2)
    assert first.means.dtype == torch.float32
    torch.testing.assert_close(first.means, second.means, atol=0, rtol=0)


def test_fit_of_one_component_is_sample_mean_and_covariance() -> None:
    x = sample_rows()
    single = GaussianMixture.fit(x, 1, floor=0.0)
    torch.testing.assert_close(single.means[0], x.mean(0))
    torch.testing.assert_close(single.covariances[0], x.T.cov(correction=0))


def test_log_prob_and_samples_match_torch() -> None:
    torch.manual_seed(0)
    mixture = GaussianMixture.fit(sample_rows(), 4)
    reference = MixtureSameFamily(Categorical(mixture.weights), MultivariateNormal(mixture.means, mixture.covariances))
    x = mixture.sample(20_000)
    torch.testing.assert_close(mixture.log_prob(x), reference.log_prob(x))
    torch.testing.assert_close(x.mean(0), reference.mean, atol=0.1, rtol=0)
    torch.testing.assert_close(x.var(0), reference.variance, rtol=0.05, atol=0)
    samples = mixture.sample_given(torch.full((20_000,), 2))
    torch.testing.assert_close(samples.T.cov(), mixture.covariances[2], rtol=0.1, atol=0.05)


def test_zero_weight_does_not_give_nan() -> None:
    mixture = GaussianMixture(torch.tensor([1.0, 0.0]), torch.zeros(2, 1), torch.ones(2, 1, 1))
    x = torch.tensor([[0.3], [-2.0]])
    torch.testing.assert_close(mixture.responsibilities(x)[:, 0], torch.ones(2))
    torch.testing.assert_close(mixture_elbo(x, mixture.responsibilities(x), mixture), mixture.log_prob(x))


def test_responsibilities_of_a_distant_row_do_not_underflow() -> None:
    mixture = GaussianMixture(torch.tensor([0.5, 0.5]), torch.tensor([[-1.0], [1.0]]), torch.ones(2, 1, 1))
    torch.testing.assert_close(mixture.responsibilities(torch.tensor([[1e3]])), torch.tensor([[0.0, 1.0]]))


def test_kmeans_plus_plus_means_are_rows() -> None:
    x = sample_rows()
    start = kmeans_plus_plus_start(x, 4)
    assert bool((torch.cdist(start.means, x).amin(1) == 0).all())
    start_of_equal_rows = kmeans_plus_plus_start(torch.ones(10, 2, dtype=torch.float64), 3)
    assert bool(start_of_equal_rows.log_prob(torch.ones(1, 2, dtype=torch.float64)).isfinite())


def test_ellipses_are_two_standard_deviations_from_the_mean() -> None:
    mixture = GaussianMixture.fit(sample_rows(dim=2), 3)
    offset = mixture.ellipses() - mixture.means[:, None]
    squares = torch.einsum("cpi,cij,cpj->cp", offset, torch.linalg.inv(mixture.covariances), offset)
    torch.testing.assert_close(squares, torch.full_like(squares, 4.0))
    with pytest.raises(ValueError, match="two-dimensional components; got 3 dimensions"):
        GaussianMixture.fit(sample_rows(), 2).ellipses()


def test_empty_and_collapsed_components_raise_value_error() -> None:
    x = sample_rows()
    responsibilities = torch.zeros(len(x), 2, dtype=torch.float64)
    responsibilities[:, 0] = 1.0
    with pytest.raises(ValueError, match=r"components \[1\] have no responsibility left"):
        m_step(x, responsibilities)
    responsibilities[0] = torch.tensor([0.0, 1.0])
    with pytest.raises(ValueError, match=r"positive definite; they are not for components \[1\] \(collapsed"):
        m_step(x, responsibilities, floor=0.0)
    with pytest.raises(ValueError, match=r"none of 5 starts converged; the last error was: .*collapsed"):
        GaussianMixture.fit(torch.ones(10, 2, dtype=torch.float64), 2, floor=0.0)


def test_invalid_mixtures_raise_errors() -> None:
    weights, means, covariances = torch.tensor([0.5, 0.5]), torch.zeros(2, 2), torch.eye(2).expand(2, 2, 2)
    with pytest.raises(ValueError, match=r"a row of weights sums to 1\.5"):
        GaussianMixture(1.5 * weights, means, covariances)
    with pytest.raises(ValueError, match=r"they are not for components \[0, 1\]"):
        GaussianMixture(weights, means, -covariances)
    with pytest.raises(ValueError, match=r"they are not for components \[0\]"):
        GaussianMixture(weights, torch.tensor([[torch.nan, 0.0], [0.0, 0.0]]), covariances)
    with pytest.raises((ValueError, TypeError), match="covariance"):
        GaussianMixture(weights, means, covariances[:1])
    with pytest.raises(ValueError, match="between 1 and the number of rows; got components=11, 10 rows"):
        GaussianMixture.fit(torch.ones(10, 2), 11)
    with pytest.raises(ValueError, match="need starts ≥ 1, steps ≥ 1 and floor ≥ 0; got starts=0"):
        GaussianMixture.fit(torch.randn(10, 2), 2, starts=0)
    with pytest.raises(ValueError, match="1 values are NaN or infinite"):
        GaussianMixture.fit(torch.tensor([[0.0], [torch.nan]]), 1)


def test_em_step_keeps_the_shapes() -> None:
    x = sample_rows()
    mixture = em_step(x, kmeans_plus_plus_start(x, 5))
    assert mixture.covariances.shape == (5, 3, 3)
    torch.testing.assert_close(mixture.covariances, mixture.covariances.mT)
