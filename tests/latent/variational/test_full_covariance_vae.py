"""The full-covariance VAE: parameters, samples and rate."""

import pytest
import torch
from torch import nn
from torch.distributions import MultivariateNormal, kl_divergence

from parnassus.latent.variational.decoders import BernoulliDecoder
from parnassus.latent.variational.full_covariance_vae import (
    FullCovarianceVAE,
    gaussian_from_parameters,
    num_gaussian_parameters,
    reparametrise_full_covariance,
)

DOUBLE = torch.float64


def small_vae() -> FullCovarianceVAE:
    torch.manual_seed(0)
    return FullCovarianceVAE(nn.Linear(4, num_gaussian_parameters(2)), BernoulliDecoder(nn.Linear(2, 4)), 2)


def test_parameters_fill_the_lower_triangle_by_rows() -> None:
    normal = gaussian_from_parameters(torch.tensor([[1.0, 2.0, 0.0, -0.5, 0.7]]), 2)
    torch.testing.assert_close(normal.mean, torch.tensor([[1.0, 2.0]]))
    expected = torch.tensor([[[1.0, 0.0], [-0.5, float(torch.tensor(0.7).exp())]]])
    torch.testing.assert_close(normal.scale_tril, expected)


def test_samples_have_the_covariance_of_the_factor() -> None:
    torch.manual_seed(0)
    factor = torch.tensor([[1.0, -0.4], [0.6, 0.5]], dtype=DOUBLE)
    mean = torch.tensor([2.0, -1.0], dtype=DOUBLE)
    z = reparametrise_full_covariance(mean.expand(100_000, 2), factor.expand(100_000, 2, 2))
    torch.testing.assert_close(z.mean(0), mean, rtol=0, atol=0.02)
    torch.testing.assert_close(z.T.cov(), factor @ factor.mT, rtol=0, atol=0.03)


def test_gradients_reach_mean_and_factor() -> None:
    mean, factor = torch.zeros(3, 2, requires_grad=True), torch.eye(2).repeat(3, 1, 1).requires_grad_()
    reparametrise_full_covariance(mean, factor).square().sum().backward()
    assert mean.grad is not None
    assert factor.grad is not None
    assert bool(factor.grad.all())


def test_rate_matches_kl_divergence() -> None:
    vae, x = small_vae(), torch.rand(5, 4)
    q = vae.posterior(x)
    expected = kl_divergence(q, MultivariateNormal(torch.zeros(2), torch.eye(2)))
    torch.testing.assert_close(vae.terms(x).rate, expected)


def test_vae_interface() -> None:
    vae, x = small_vae(), torch.rand(5, 4)
    assert vae.sample(3).shape == (3, 4)
    assert vae.log_weights(x, 6).shape == (6, 5)
    torch.testing.assert_close(vae.encode(x), vae.encoder(x)[:, :2])
    vae.loss(x).backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in vae.parameters())


def test_terms_and_log_weights_estimate_the_same_bound() -> None:
    vae = small_vae().requires_grad_(requires_grad=False)
    x = torch.rand(1, 4).expand(30_000, 4)
    negative_elbos, negative_log_weights = vae.terms(x).negative_elbo, -vae.log_weights(x, 1)[0]
    error = float(
        (negative_elbos.var() / len(negative_elbos) + negative_log_weights.var() / len(negative_log_weights)).sqrt()
    )
    assert abs(float(negative_elbos.mean() - negative_log_weights.mean())) < 4 * error


def test_wrong_number_of_parameters_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"in 2 dimensions has 5 parameters; got shape \(3, 4\)"):
        gaussian_from_parameters(torch.zeros(3, 4), 2)
