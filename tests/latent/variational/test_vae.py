"""VAEs on models with known evidence."""

from math import log, pi

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Independent, Normal, kl_divergence

from parnassus.latent.variational.decoders import BernoulliDecoder, GaussianDecoder
from parnassus.latent.variational.iwae import ImportanceWeightedELBO
from parnassus.latent.variational.reparametrisation import reparametrise, standard_normal_kl
from parnassus.latent.variational.vae import VAE
from parnassus.layers import mlp

DOUBLE = torch.float64


class Constant(nn.Module):
    """Return the same values for every row."""

    def __init__(self, values: Tensor) -> None:
        super().__init__()
        self.values = nn.Parameter(values)

    def forward(self, x: Tensor) -> Tensor:
        return self.values.expand(len(x), -1)


def make_linear(weight: Tensor) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
    layer.weight = nn.Parameter(weight)
    return layer


def exact_vae() -> VAE:
    """With z ~ N(0, 1) and x|z ~ N(2z, 1), x ~ N(0, 5) and z|x ~ N(2x/5, 1/5): encoder and posterior agree."""
    encoder = nn.Linear(1, 2, dtype=DOUBLE)
    encoder.weight = nn.Parameter(torch.tensor([[0.4], [0.0]], dtype=DOUBLE))
    encoder.bias = nn.Parameter(torch.tensor([0.0, -log(5)], dtype=DOUBLE))
    decoder = GaussianDecoder(make_linear(torch.tensor([[2.0]], dtype=DOUBLE)))
    return VAE(encoder, decoder, 1)


def small_vae(latent: int = 3) -> VAE:
    torch.manual_seed(0)
    return VAE(mlp((6, 8, 2 * latent)), BernoulliDecoder(mlp((latent, 8, 6))), latent)


def test_standard_normal_kl_matches_torch() -> None:
    torch.manual_seed(1)
    mean, log_variance = torch.randn(2, 5, 3, dtype=DOUBLE)
    q = Independent(Normal(mean, (log_variance / 2).exp()), 1)
    p = Independent(Normal(torch.zeros(3, dtype=DOUBLE), torch.ones(3, dtype=DOUBLE)), 1)
    torch.testing.assert_close(standard_normal_kl(mean, log_variance), kl_divergence(q, p))


def test_log_weights_with_the_exact_posterior_equal_the_evidence() -> None:
    vae, x = exact_vae(), torch.tensor([[-1.0], [0.3], [2.0]], dtype=DOUBLE)
    evidence = Normal(0.0, 5**0.5).log_prob(x[:, 0])
    weights = vae.log_weights(x, 7)
    assert weights.shape == (7, 3)
    torch.testing.assert_close(weights, evidence.expand(7, 3))
    torch.testing.assert_close(vae.log_prob(x, samples=2), evidence)


def test_negative_elbo_with_the_exact_posterior_equals_the_evidence() -> None:
    torch.manual_seed(0)
    vae, x = exact_vae(), torch.tensor([[0.7]], dtype=DOUBLE)
    terms = vae.terms(x.expand(200_000, 1))
    evidence = Normal(0.0, 5**0.5).log_prob(x[0, 0])
    torch.testing.assert_close(terms.negative_elbo.mean(), -evidence, atol=0.01, rtol=0)
    torch.testing.assert_close(terms.rate[0], standard_normal_kl(*vae.posterior_parameters(x))[0])


def test_terms_and_log_weights_estimate_the_same_bound() -> None:
    vae = small_vae().requires_grad_(requires_grad=False)
    x = torch.rand(1, 6).round().expand(40_000, 6)
    negative_elbos, negative_log_weights = vae.terms(x).negative_elbo, -vae.log_weights(x, 1)[0]
    error = float(
        (negative_elbos.var() / len(negative_elbos) + negative_log_weights.var() / len(negative_log_weights)).sqrt()
    )
    assert abs(float(negative_elbos.mean() - negative_log_weights.mean())) < 4 * error


def test_loss_is_the_mean_of_the_objective() -> None:
    vae, x = small_vae(), torch.rand(5, 6)
    torch.manual_seed(3)
    loss = vae.loss(x)
    torch.manual_seed(3)
    torch.testing.assert_close(loss, vae.terms(x).negative_elbo.mean())
    vae.objective = ImportanceWeightedELBO(4)
    torch.manual_seed(3)
    weighted = vae.loss(x)
    torch.manual_seed(3)
    torch.testing.assert_close(weighted, -(vae.log_weights(x, 4).exp().mean(0)).log().mean())


def test_log_joint_matches_closed_form() -> None:
    vae, x, z = exact_vae(), torch.tensor([[0.5]], dtype=DOUBLE), torch.tensor([[[0.1]], [[-2.0]]], dtype=DOUBLE)
    expected = -log(2 * pi) - (z.square() + (x - 2 * z).square())[..., 0] / 2
    torch.testing.assert_close(vae.log_joint(x, z), expected)


def test_log_likelihood_is_batched() -> None:
    vae, x, z = small_vae(), torch.rand(4, 6), torch.randn(5, 2, 4, 3)
    batched = vae.log_likelihood(x, z)
    assert batched.shape == (5, 2, 4)
    torch.testing.assert_close(batched[3, 1], vae.log_likelihood(x, z[3, 1]))


def test_every_parameter_has_a_gradient() -> None:
    vae = small_vae()
    vae.loss(torch.rand(5, 6)).backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in vae.parameters())


def test_reparametrised_samples_have_exact_moments_and_gradients() -> None:
    torch.manual_seed(0)
    mean = torch.tensor([1.0, -2.0], dtype=DOUBLE, requires_grad=True)
    log_variance = torch.tensor([log(0.25), log(4.0)], dtype=DOUBLE, requires_grad=True)
    z = reparametrise(mean.expand(100_000, 2), log_variance.expand(100_000, 2))
    torch.testing.assert_close(z.mean(0), mean, atol=0.03, rtol=0)
    torch.testing.assert_close(z.std(0), torch.tensor([0.5, 2.0], dtype=DOUBLE), rtol=0.02, atol=0)
    z.square().mean(0).sum().backward()
    torch.testing.assert_close(mean.grad, torch.tensor([2.0, -4.0], dtype=DOUBLE), rtol=0.02, atol=0)
    torch.testing.assert_close(log_variance.grad, torch.tensor([0.25, 4.0], dtype=DOUBLE), rtol=0.03, atol=0)


def test_samples_have_the_moments_of_the_model() -> None:
    torch.manual_seed(0)
    x = exact_vae().sample(50_000)
    assert x.shape == (50_000, 1)
    assert not x.requires_grad
    assert abs(float(x.mean())) < 0.05
    assert float(x.var()) == pytest.approx(5.0, rel=0.04)


def test_reconstruction_decodes_the_posterior_mean() -> None:
    x = torch.tensor([[1.0], [-3.0]], dtype=DOUBLE)
    torch.testing.assert_close(exact_vae().reconstruct(x), 0.8 * x)


def test_images_keep_their_shape() -> None:
    decoder = nn.Sequential(nn.Linear(2, 12), nn.Unflatten(1, (3, 2, 2)))
    vae = VAE(nn.Sequential(nn.Flatten(), nn.Linear(12, 4)), BernoulliDecoder(decoder), 2)
    assert vae.sample(5).shape == vae.reconstruct(torch.rand(5, 3, 2, 2)).shape == (5, 3, 2, 2)
    assert vae.log_weights(torch.rand(5, 3, 2, 2), 6).shape == (6, 5)


def test_invalid_models_raise() -> None:
    with pytest.raises(ValueError, match="latent_dim must be positive; got latent_dim=0"):
        VAE(nn.Identity(), nn.Identity(), 0)
    vae = VAE(Constant(torch.zeros(3)), BernoulliDecoder(nn.Linear(2, 4)), 2)
    with pytest.raises(ValueError, match=r"2·latent_dim = 4 values per row; got shape \(7, 3\)"):
        vae.loss(torch.rand(7, 4))
