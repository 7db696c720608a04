"""Probabilistic PCA compared with multivariate normals and known values."""

from math import log, pi

import pytest
import torch
from sklearn import decomposition
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.data import load_digits
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.probabilistic_pca import PPCA, ppca_em_iterates, ppca_em_step
from parnassus.probability import standard_normal


def random_data(rows: int = 200, features: int = 6) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(features, features, generator=generator, dtype=torch.float64)
    return torch.randn(rows, features, generator=generator, dtype=torch.float64) @ mixing + 7


def test_single_component_matches_hand_computation() -> None:
    """W = (2, 0)ᵀ, σ² = 1, μ = 0: C = diag(5, 1), M = 5, so that ν | x ~ N(2 x₁ / 5, 1 / 5)."""
    model = PPCA(torch.zeros(2), torch.tensor([[2.0], [0.0]]), torch.tensor(1.0))
    x = torch.tensor([[3.0, -1.0]])
    torch.testing.assert_close(model.covariance, torch.tensor([[5.0, 0.0], [0.0, 1.0]]))
    torch.testing.assert_close(model.posterior(x).mean, torch.tensor([[1.2]]))
    torch.testing.assert_close(model.posterior(x).covariance_matrix, torch.tensor([[[0.2]]]))
    torch.testing.assert_close(model.reconstruct(x), torch.tensor([[2.4, 0.0]]))
    assert float(model.log_prob(x)) == pytest.approx(-log(2 * pi) - log(5) / 2 - (9 / 5 + 1) / 2)


def test_log_prob_matches_multivariate_normal() -> None:
    x = random_data()
    for latent in (1, 3, 5):
        model = PPCA.fit(x, latent)
        expected = MultivariateNormal(model.mean, model.covariance).log_prob(x)
        torch.testing.assert_close(model.log_prob(x), expected)


def test_log_prob_matches_scikit_learn() -> None:
    """Its variances divide by M − 1, which is negligible for 5,000 rows."""
    x = random_data(5_000)
    reference = decomposition.PCA(3).fit(x.numpy())
    assert float(PPCA.fit(x, 3).log_prob(x).mean()) == pytest.approx(reference.score(x.numpy()), abs=1e-6)


def test_small_noise_causes_no_cancellation() -> None:
    """σ² = 10⁻¹⁴, where Woodbury's identity subtracts two numbers of size 10¹⁴."""
    W = torch.tensor([[1.0], [1.0]], dtype=torch.float64)
    variance = torch.tensor(1e-14, dtype=torch.float64)
    x = torch.tensor([[0.5, 0.5], [0.5 + 1e-7, 0.5 - 1e-7]], dtype=torch.float64)
    model = PPCA(torch.zeros(2, dtype=torch.float64), W, variance)
    first = -log(2 * pi) - 0.5 * log(2e-14) - 0.125
    torch.testing.assert_close(
        model.log_prob(x), torch.tensor([first, first - 1.0], dtype=torch.float64), rtol=1e-6, atol=0
    )


def test_samples_match_mean_covariance_and_entropy() -> None:
    model = PPCA.fit(random_data(), 2)
    x = model.sample(100_000, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(torch.cov(x.mT), model.covariance, rtol=0.05, atol=0.1)
    torch.testing.assert_close(x.mean(0), model.mean, rtol=0, atol=0.05)
    expected = MultivariateNormal(model.mean, model.covariance).entropy()
    torch.testing.assert_close(-model.log_prob(x).mean(), expected, rtol=0, atol=0.02)


def test_codes_are_shrunk_principal_scores() -> None:
    """Code and reconstruction scale the score by √(λ_i − σ²) / λ_i and (λ_i − σ²) / λ_i."""
    x = random_data()
    model, pca = PPCA.fit(x, 3), PCA.fit(x, 3)
    shrinkage = (pca.explained_variance - model.variance) / pca.explained_variance
    torch.testing.assert_close(model.transform(x), pca.transform(x) * shrinkage.sqrt() / pca.explained_variance.sqrt())
    torch.testing.assert_close(model.reconstruct(x), pca.inverse_transform(pca.transform(x) * shrinkage))


def test_rotation_keeps_the_density_and_rotates_the_code() -> None:
    x, R = (
        random_data(),
        torch.linalg.qr(standard_normal(3, 3, seed=2))[0],
    )
    model = PPCA.fit(x, 3)
    torch.testing.assert_close(model.rotate(R).log_prob(x), model.log_prob(x))
    torch.testing.assert_close(model.rotate(R).transform(x), model.transform(x) @ R)


def test_constant_pixels_are_handled_in_single_precision() -> None:
    x = load_digits().train.x.flatten(1)
    single, double = PPCA.fit(x, 10), PPCA.fit(x.double(), 10)
    torch.testing.assert_close(single.log_prob(x).double(), double.log_prob(x.double()), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("latent", [1, 3])
def test_em_converges_to_the_closed_form(latent: int) -> None:
    x = random_data()
    closed_form = PPCA.fit(x, latent)
    models = list(ppca_em_iterates(x, latent, num_iterations=300, seed=3))
    assert len(models) == 301
    likelihood = torch.stack([model.log_prob(x).mean() for model in models])
    assert float(likelihood.diff().min()) > -1e-12
    torch.testing.assert_close(models[-1].covariance, closed_form.covariance, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ppca_em_step(closed_form, x).covariance, closed_form.covariance)


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="latent_dim must be smaller than features; got latent_dim=6, features=6"):
        PPCA.fit(random_data(), 6)
    flat = torch.randn(20, 1, dtype=torch.float64) * torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    with pytest.raises(ValueError, match="the noise variance must be positive for a density to exist; got σ²=0"):
        PPCA.fit(flat, 1)
    with pytest.raises(
        ValueError, match="need 1 ≤ latent_dim < features and num_iterations ≥ 0; got latent_dim=6, features=6"
    ):
        next(ppca_em_iterates(random_data(), 6, num_iterations=1))
