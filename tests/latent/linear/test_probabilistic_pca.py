"""Probabilistic PCA against torch's normals, hand calculations and limits."""

from math import log, pi

import pytest
import torch
from sklearn import decomposition
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.data import load_digits
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.probabilistic_pca import PPCA, ppca_em_iterates, ppca_em_step


def cloud(rows: int = 200, features: int = 6) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    mix = torch.randn(features, features, generator=generator, dtype=torch.float64)
    return torch.randn(rows, features, generator=generator, dtype=torch.float64) @ mix + 7


def test_a_single_direction_by_hand() -> None:
    """W = (2, 0)ᵀ, σ² = 1, μ = 0: C = diag(5, 1), M = 5, so that ν | x ~ N(2 x₁ / 5, 1 / 5)."""
    model = PPCA(torch.zeros(2), torch.tensor([[2.0], [0.0]]), torch.tensor(1.0))
    x = torch.tensor([[3.0, -1.0]])
    torch.testing.assert_close(model.covariance, torch.tensor([[5.0, 0.0], [0.0, 1.0]]))
    torch.testing.assert_close(model.posterior(x).mean, torch.tensor([[1.2]]))
    torch.testing.assert_close(model.posterior(x).covariance_matrix, torch.tensor([[[0.2]]]))
    torch.testing.assert_close(model.reconstruct(x), torch.tensor([[2.4, 0.0]]))
    assert float(model.log_prob(x)) == pytest.approx(-log(2 * pi) - log(5) / 2 - (9 / 5 + 1) / 2)


def test_the_density_is_the_normal_of_its_covariance() -> None:
    x = cloud()
    for latent in (1, 3, 5):
        model = PPCA.fit(x, latent)
        expected = MultivariateNormal(model.mean, model.covariance).log_prob(x)
        torch.testing.assert_close(model.log_prob(x), expected)


def test_scikit_learn_has_the_same_density() -> None:
    """Its variances divide by M − 1, so the score is compared after putting that back."""
    x = cloud(5_000)
    theirs = decomposition.PCA(3).fit(x.numpy())
    assert float(PPCA.fit(x, 3).log_prob(x).mean()) == pytest.approx(theirs.score(x.numpy()), abs=1e-6)


def test_small_noise_causes_no_cancellation() -> None:
    """σ² = 10⁻¹⁴ beside variances of 1: Woodbury's difference of two numbers of size 10¹⁴ would lose every digit."""
    W = torch.tensor([[1.0], [1.0]], dtype=torch.float64)
    variance = torch.tensor(1e-14, dtype=torch.float64)
    x = torch.tensor([[0.5, 0.5], [0.5 + 1e-7, 0.5 - 1e-7]], dtype=torch.float64)
    model = PPCA(torch.zeros(2, dtype=torch.float64), W, variance)
    first = -log(2 * pi) - 0.5 * log(2e-14) - 0.125
    torch.testing.assert_close(
        model.log_prob(x), torch.tensor([first, first - 1.0], dtype=torch.float64), rtol=1e-6, atol=0
    )


def test_draws_follow_the_density() -> None:
    model = PPCA.fit(cloud(), 2)
    x = model.sample(100_000, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(torch.cov(x.mT), model.covariance, rtol=0.05, atol=0.1)
    torch.testing.assert_close(x.mean(0), model.mean, rtol=0, atol=0.05)
    expected = MultivariateNormal(model.mean, model.covariance).entropy()
    torch.testing.assert_close(-model.log_prob(x).mean(), expected, rtol=0, atol=0.02)


def test_codes_are_shrunk_principal_scores() -> None:
    """Along axis i the code is √(λ_i − σ²) / λ_i times the score, and the copy (λ_i − σ²) / λ_i times it."""
    x = cloud()
    model, pca = PPCA.fit(x, 3), PCA.fit(x, 3)
    kept = (pca.explained_variance - model.variance) / pca.explained_variance
    torch.testing.assert_close(model.transform(x), pca.transform(x) * kept.sqrt() / pca.explained_variance.sqrt())
    torch.testing.assert_close(model.reconstruct(x), pca.inverse_transform(pca.transform(x) * kept))


def test_rotated_weights_are_the_same_density_and_turn_the_code() -> None:
    x, R = (
        cloud(),
        torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64))[0],
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
    x = cloud()
    best = PPCA.fit(x, latent)
    models = list(ppca_em_iterates(x, latent, num_iterations=300, seed=3))
    assert len(models) == 301
    likelihood = torch.stack([model.log_prob(x).mean() for model in models])
    assert float(likelihood.diff().min()) > -1e-12
    torch.testing.assert_close(models[-1].covariance, best.covariance, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ppca_em_step(best, x).covariance, best.covariance)


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="latent_dim must be smaller than features; got latent_dim=6, features=6"):
        PPCA.fit(cloud(), 6)
    flat = torch.randn(20, 1, dtype=torch.float64) * torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    with pytest.raises(ValueError, match="the noise variance must be positive for a density to exist; got σ²=0"):
        PPCA.fit(flat, 1)
    with pytest.raises(
        ValueError, match="need 1 ≤ latent_dim < features and num_iterations ≥ 0; got latent_dim=6, features=6"
    ):
        next(ppca_em_iterates(cloud(), 6, num_iterations=1))
