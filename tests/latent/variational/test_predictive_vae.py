"""The VAE with a prediction head: terms of its loss, and metrics on models with known values."""

from math import log

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from parnassus.latent.variational.decoders import BernoulliDecoder, GaussianDecoder
from parnassus.latent.variational.predictive_vae import PredictiveVAE, evaluate_code
from parnassus.latent.variational.vae import VAE
from parnassus.layers import mlp

LABEL = torch.arange(8) % 3


def model(gamma: float) -> PredictiveVAE:
    torch.manual_seed(0)
    return PredictiveVAE(VAE(mlp((6, 8, 4)), BernoulliDecoder(mlp((2, 8, 6))), 2), nn.Linear(2, 3), gamma=gamma)


def loss(gamma: float) -> torch.Tensor:
    predicting, x = model(gamma), torch.linspace(0, 1, 48).view(8, 6)
    torch.manual_seed(1)
    return predicting.loss(x, LABEL)


def test_gamma_weights_only_the_cross_entropy() -> None:
    predicting, x = model(1.0), torch.linspace(0, 1, 48).view(8, 6)
    torch.manual_seed(1)
    bound = predicting.vae.terms(x).negative_elbo.mean()
    torch.manual_seed(1)
    mean, log_variance = predicting.vae.posterior_parameters(x)
    z = mean + (log_variance / 2).exp() * torch.randn_like(mean)
    named = cross_entropy(predicting.head(z), LABEL)
    for gamma in (0.5, 1.0, 20.0):
        torch.testing.assert_close(loss(gamma), bound + gamma * named)


def test_with_gamma_zero_only_the_head_has_a_gradient_from_the_labels() -> None:
    slopes, x = [], torch.linspace(0, 1, 48).view(8, 6)
    for predicting in (model(0.0), model(5.0)):
        torch.manual_seed(1)
        weights = predicting.vae.get_parameter("encoder.0.weight"), predicting.head.get_parameter("weight")
        of_code, of_head = torch.autograd.grad(predicting.loss(x, LABEL), weights)
        slopes.append(of_code)
        assert bool(of_head.any())
    plain = model(0.0).vae
    torch.manual_seed(1)
    (alone,) = torch.autograd.grad(plain.loss(x), plain.get_parameter("encoder.0.weight"))
    torch.testing.assert_close(slopes[0], alone)
    assert not torch.allclose(slopes[0], slopes[1])


def test_probabilities_are_those_of_the_posterior_mean() -> None:
    predicting, x = model(1.0), torch.rand(5, 6)
    found = predicting.class_probabilities(x)
    torch.testing.assert_close(found.sum(1), torch.ones(5))
    torch.testing.assert_close(found, predicting.head(predicting.vae.encode(x)).softmax(1))


def test_a_code_that_determines_the_class_has_its_full_information() -> None:
    """Rows at ±1 coded as ±50 with no noise to speak of: I(X, Z) = I(Z, Y) = log 2."""
    encoder = nn.Linear(1, 2)
    encoder.weight, encoder.bias = nn.Parameter(torch.tensor([[50.0], [0.0]])), nn.Parameter(torch.zeros(2))
    decoder = GaussianDecoder(nn.Linear(1, 1), std=1.0, learned=False)
    head = nn.Linear(1, 2)
    head.weight, head.bias = nn.Parameter(torch.tensor([[-1.0], [1.0]])), nn.Parameter(torch.zeros(2))
    x, label = torch.tensor([[-1.0], [1.0]]).repeat(10, 1), torch.arange(20) % 2
    goals = evaluate_code(PredictiveVAE(VAE(encoder, decoder, 1), head), x, label, num_draws=50)
    assert goals.information == pytest.approx(log(2), abs=1e-6)
    assert goals.label_information == pytest.approx(log(2), abs=1e-6)
    deaf = PredictiveVAE(VAE(encoder, decoder, 1), nn.Linear(1, 2))
    nn.init.zeros_(deaf.head.get_parameter("weight"))
    nn.init.zeros_(deaf.head.get_parameter("bias"))
    assert evaluate_code(deaf, x, label).label_information == pytest.approx(0, abs=1e-6)


@torch.no_grad()
def test_the_distortion_is_that_of_the_vae() -> None:
    predicting, x = model(1.0), torch.linspace(0, 1, 48).view(8, 6)
    torch.manual_seed(0)
    goals = evaluate_code(predicting, x, LABEL, num_draws=4_000)
    distortion = torch.stack([predicting.vae.terms(x).distortion.mean() for _ in range(400)])
    assert goals.distortion == pytest.approx(float(distortion.mean()), abs=5 * float(distortion.std()) / 20)


def test_a_wrong_weight_raises() -> None:
    with pytest.raises(ValueError, match="must not be negative; got gamma=-1"):
        PredictiveVAE(VAE(nn.Identity(), nn.Identity(), 1), nn.Identity(), gamma=-1.0)
