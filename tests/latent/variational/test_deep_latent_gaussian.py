"""Linear Gaussian models and full-covariance decoders."""

import pytest
import torch
from torch import nn

from parnassus.latent.variational.deep_latent_gaussian import FullCovarianceDecoder, LinearGaussian
from parnassus.latent.variational.full_covariance_vae import num_gaussian_parameters
from parnassus.probability import gaussian_kl

DOUBLE = torch.float64


def random_model() -> LinearGaussian:
    torch.manual_seed(0)
    root = torch.randn(4, 4, dtype=DOUBLE)
    covariance = root @ root.mT / 4 + 0.3 * torch.eye(4, dtype=DOUBLE)
    return LinearGaussian(torch.randn(4, 2, dtype=DOUBLE), torch.randn(4, dtype=DOUBLE), covariance)


def test_posterior_is_the_conditional_of_the_joint_gaussian() -> None:
    """Cov(z, x) C⁻¹ (x − b) and I − Cov(z, x) C⁻¹ Cov(x, z) with C the covariance of x."""
    exact, x = random_model(), torch.randn(5, 4, dtype=DOUBLE)
    gain = exact.weight.mT @ torch.linalg.inv(exact.evidence.covariance_matrix)
    posterior = exact.posterior(x)
    torch.testing.assert_close(posterior.mean, (x - exact.offset) @ gain.mT)
    torch.testing.assert_close(posterior.covariance_matrix[0], torch.eye(2, dtype=DOUBLE) - gain @ exact.weight)


def test_densities_satisfy_bayes_rule() -> None:
    exact, x, z = random_model(), torch.randn(5, 4, dtype=DOUBLE), torch.randn(5, 2, dtype=DOUBLE)
    prior = torch.distributions.Normal(torch.zeros(2, dtype=DOUBLE), 1.0).log_prob(z).sum(1)
    log_evidence = exact.likelihood(z).log_prob(x) + prior - exact.posterior(x).log_prob(z)
    torch.testing.assert_close(log_evidence, exact.evidence.log_prob(x))


def test_elbo_gap_is_the_kl_divergence_to_the_posterior() -> None:
    exact, x = random_model(), torch.randn(5, 4, dtype=DOUBLE)
    mean, covariance = torch.randn(5, 2, dtype=DOUBLE), torch.diag_embed(torch.rand(5, 2, dtype=DOUBLE) + 0.1)
    posterior = exact.posterior(x)
    gap = gaussian_kl(mean, covariance, posterior.mean, posterior.covariance_matrix)
    torch.testing.assert_close(exact.elbo(x, mean, covariance), exact.evidence.log_prob(x) - gap)


def test_samples_have_the_covariance_of_the_evidence() -> None:
    exact = random_model()
    x = exact.likelihood(torch.randn(100_000, 2, dtype=DOUBLE)).sample()
    torch.testing.assert_close(x.T.cov(), exact.evidence.covariance_matrix, rtol=0.03, atol=0.05)


def test_full_covariance_decoder_mean_and_gradients() -> None:
    torch.manual_seed(0)
    network = nn.Linear(2, num_gaussian_parameters(3), dtype=DOUBLE)
    z, x = torch.randn(4, 2, dtype=DOUBLE), torch.randn(4, 3, dtype=DOUBLE)
    decoded = FullCovarianceDecoder(network, 3)(z)
    torch.testing.assert_close(decoded.mean, network(z)[:, :3])
    assert decoded.log_prob(x).shape == (4,)
    decoded.log_prob(x).sum().backward()
    assert network.weight.grad is not None
    assert bool(network.weight.grad.all())


def test_zero_features_raise_value_error() -> None:
    with pytest.raises(ValueError, match="features must be positive; got features=0"):
        FullCovarianceDecoder(nn.Identity(), 0)
