"""Likelihood and BIC by the number of components."""

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.latent.linear.covariance_spectrum import spectrum_by_eigh
from parnassus.latent.linear.number_of_components import bic_by_size, log_likelihood_by_size, num_free_parameters
from parnassus.latent.linear.probabilistic_pca import PPCA


def random_data() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    return torch.randn(150, 5, generator=generator, dtype=torch.float64) @ mixing


def test_likelihood_by_size_matches_fitted_models() -> None:
    x = random_data()
    likelihoods = log_likelihood_by_size(spectrum_by_eigh(x).eigenvalues, len(x))
    fitted = torch.stack([PPCA.fit(x, latent).log_prob(x).sum() for latent in range(1, 5)])
    torch.testing.assert_close(likelihoods[1:], fitted)
    isotropic = MultivariateNormal(x.mean(0), torch.eye(5, dtype=torch.float64) * x.var(0, correction=0).mean())
    torch.testing.assert_close(likelihoods[0], isotropic.log_prob(x).sum())


@pytest.mark.parametrize(("features", "latent", "count"), [(2, 0, 3), (2, 1, 5), (3, 1, 7), (3, 2, 9), (5, 4, 20)])
def test_number_of_free_parameters(features: int, latent: int, count: int) -> None:
    """K = N − 1 gives the number for a mean and a full covariance, N + N (N + 1) / 2."""
    assert num_free_parameters(features, latent) == count


def test_bic_matches_its_definition() -> None:
    eigenvalues = spectrum_by_eigh(random_data()).eigenvalues
    expected = [
        -2 * float(value) + num_free_parameters(5, latent) * float(torch.tensor(150.0, dtype=torch.float64).log())
        for latent, value in enumerate(log_likelihood_by_size(eigenvalues, 150))
    ]
    torch.testing.assert_close(bic_by_size(eigenvalues, 150), torch.tensor(expected, dtype=torch.float64))


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="every eigenvalue must be positive"):
        log_likelihood_by_size(torch.tensor([1.0, 0.0]), 10)
    with pytest.raises(ValueError, match="need at least one eigenvalue and one row; got 2 eigenvalues, count=0"):
        log_likelihood_by_size(torch.ones(2), 0)
    with pytest.raises(ValueError, match="0 ≤ latent_dim < features; got latent_dim=3, features=3"):
        num_free_parameters(3, 3)
