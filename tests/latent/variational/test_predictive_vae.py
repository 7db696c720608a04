"""VAEs with a prediction head."""

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


def make_model(gamma: float) -> PredictiveVAE:
    torch.manual_seed(0)
    return PredictiveVAE(VAE(mlp((6, 8, 4)), BernoulliDecoder(mlp((2, 8, 6))), 2), nn.Linear(2, 3), gamma=gamma)


def compute_loss(gamma: float) -> torch.Tensor:
    model, x = make_model(gamma), torch.linspace(0, 1, 48).view(8, 6)
    torch.manual_seed(1)
    return model.loss(x, LABEL)


def test_gamma_weights_only_the_cross_entropy() -> None:
    model, x = make_model(1.0), torch.linspace(0, 1, 48).view(8, 6)
    torch.manual_seed(1)
    bound = model.vae.terms(x).negative_elbo.mean()
    torch.manual_seed(1)
    mean, log_variance = model.vae.posterior_parameters(x)
    z = mean + (log_variance / 2).exp() * torch.randn_like(mean)
    label_loss = cross_entropy(model.head(z), LABEL)
    for gamma in (0.5, 1.0, 20.0):
        torch.testing.assert_close(compute_loss(gamma), bound + gamma * label_loss)


def test_gamma_zero_stops_label_gradients_to_the_encoder() -> None:
    gradients, x = [], torch.linspace(0, 1, 48).view(8, 6)
    for model in (make_model(0.0), make_model(5.0)):
        torch.manual_seed(1)
        weights = model.vae.get_parameter("encoder.0.weight"), model.head.get_parameter("weight")
        encoder_gradient, head_gradient = torch.autograd.grad(model.loss(x, LABEL), weights)
        gradients.append(encoder_gradient)
        assert bool(head_gradient.any())
    plain = make_model(0.0).vae
    torch.manual_seed(1)
    (expected,) = torch.autograd.grad(plain.loss(x), plain.get_parameter("encoder.0.weight"))
    torch.testing.assert_close(gradients[0], expected)
    assert not torch.allclose(gradients[0], gradients[1])


def test_class_probabilities_use_the_posterior_mean() -> None:
    model, x = make_model(1.0), torch.rand(5, 6)
    probabilities = model.class_probabilities(x)
    torch.testing.assert_close(probabilities.sum(1), torch.ones(5))
    torch.testing.assert_close(probabilities, model.head(model.vae.encode(x)).softmax(1))


def test_information_of_a_code_that_determines_the_class() -> None:
    """Rows at ±1 are encoded as ±50 with unit variance: I(X, Z) = I(Z, Y) = log 2."""
    encoder = nn.Linear(1, 2)
    encoder.weight, encoder.bias = nn.Parameter(torch.tensor([[50.0], [0.0]])), nn.Parameter(torch.zeros(2))
    decoder = GaussianDecoder(nn.Linear(1, 1), std=1.0, learned=False)
    head = nn.Linear(1, 2)
    head.weight, head.bias = nn.Parameter(torch.tensor([[-1.0], [1.0]])), nn.Parameter(torch.zeros(2))
    x, label = torch.tensor([[-1.0], [1.0]]).repeat(10, 1), torch.arange(20) % 2
    metrics = evaluate_code(PredictiveVAE(VAE(encoder, decoder, 1), head), x, label, num_draws=50)
    assert metrics.information == pytest.approx(log(2), abs=1e-6)
    assert metrics.label_information == pytest.approx(log(2), abs=1e-6)
    uninformed = PredictiveVAE(VAE(encoder, decoder, 1), nn.Linear(1, 2))
    nn.init.zeros_(uninformed.head.get_parameter("weight"))
    nn.init.zeros_(uninformed.head.get_parameter("bias"))
    assert evaluate_code(uninformed, x, label).label_information == pytest.approx(0, abs=1e-6)


@torch.no_grad()
def test_distortion_matches_the_vae() -> None:
    model, x = make_model(1.0), torch.linspace(0, 1, 48).view(8, 6)
    torch.manual_seed(0)
    metrics = evaluate_code(model, x, LABEL, num_draws=4_000)
    distortion = torch.stack([model.vae.terms(x).distortion.mean() for _ in range(400)])
    assert metrics.distortion == pytest.approx(float(distortion.mean()), abs=5 * float(distortion.std()) / 20)


def test_negative_gamma_raises_value_error() -> None:
    with pytest.raises(ValueError, match="must not be negative; got gamma=-1"):
        PredictiveVAE(VAE(nn.Identity(), nn.Identity(), 1), nn.Identity(), gamma=-1.0)
