"""Conditional VAEs."""

import pytest
import torch
from torch import nn
from torch.distributions import Normal

from parnassus.latent.autoencoders.convolutional_networks import conv_decoder, conv_encoder
from parnassus.latent.likelihood_estimation.importance_sampling import importance_likelihood
from parnassus.latent.variational.conditional_vae import ConditionalVAE
from parnassus.latent.variational.decoders import BernoulliDecoder, GaussianDecoder
from parnassus.layers import mlp

DOUBLE = torch.float64


def exact_model() -> ConditionalVAE:
    """With x|z, y ~ N(2z + 3y, 1), x|y ~ N(3y, 5) and z|x, y ~ N(2(x − 3y)/5, 1/5): encoder and posterior agree."""
    encoder = nn.Linear(3, 2, dtype=DOUBLE)
    encoder.weight = nn.Parameter(torch.tensor([[0.4, 0.0, -1.2], [0.0, 0.0, 0.0]], dtype=DOUBLE))
    encoder.bias = nn.Parameter(torch.tensor([0.0, 0.2], dtype=DOUBLE).log().nan_to_num(neginf=0.0))
    layer = nn.Linear(3, 1, bias=False, dtype=DOUBLE)
    layer.weight = nn.Parameter(torch.tensor([[2.0, 0.0, 3.0]], dtype=DOUBLE))
    return ConditionalVAE(encoder, GaussianDecoder(layer), 1, 2)


def test_log_weights_match_the_evidence_of_each_class() -> None:
    model, x, label = exact_model(), torch.tensor([[0.5], [0.5], [-2.0]], dtype=DOUBLE), torch.tensor([0, 1, 1])
    evidence = Normal(3.0 * label, 5**0.5).log_prob(x[:, 0])
    torch.testing.assert_close(model.condition_on(label).log_weights(x, 4), evidence.expand(4, 3))
    torch.testing.assert_close(importance_likelihood(model.condition_on(label), x, samples=3).log_evidence, evidence)


def test_log_prob_by_class_matches_closed_form() -> None:
    x = torch.tensor([[0.1], [2.9], [1.5]], dtype=DOUBLE)
    actual = exact_model().log_prob_by_class(x, samples=2)
    expected = torch.stack([Normal(3.0 * label, 5**0.5).log_prob(x[:, 0]) for label in (0, 1)], 1)
    torch.testing.assert_close(actual, expected)


def test_samples_come_from_the_requested_class() -> None:
    torch.manual_seed(0)
    x = exact_model().sample(20_000, 1)
    assert x.shape == (20_000, 1)
    assert float(x.mean()) == pytest.approx(3.0, abs=0.06)
    assert float(x.var()) == pytest.approx(5.0, rel=0.05)


def test_every_parameter_has_a_gradient() -> None:
    torch.manual_seed(0)
    model = ConditionalVAE(mlp((9, 8, 4)), BernoulliDecoder(mlp((5, 8, 6))), 2, 3)
    model.loss(torch.rand(7, 6), torch.arange(7) % 3).backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in model.parameters())


def test_class_is_passed_to_convolutions_as_channels() -> None:
    encoder = conv_encoder((1 + 3, 8, 8), 4, width=4)
    model = ConditionalVAE(encoder, BernoulliDecoder(conv_decoder(2 + 3, (1, 8, 8), width=4)), 2, 3)
    x, label = torch.rand(5, 1, 8, 8), torch.tensor([0, 1, 2, 2, 0])
    assert model.decode(torch.zeros(5, 2), label).shape == x.shape
    assert model.log_prob_by_class(x, samples=2).shape == (5, 3)
    first, second = (model.condition_on(torch.full((5,), index)).encode(x) for index in (0, 1))
    assert not torch.allclose(first, second)


def test_invalid_classes_raise_value_error() -> None:
    with pytest.raises(ValueError, match="classes must be positive; got classes=0"):
        ConditionalVAE(nn.Identity(), nn.Identity(), 1, 0)
    with pytest.raises(ValueError, match="between 0 and 1; got 0 to 2"):
        exact_model().condition_on(torch.tensor([0, 2]))
