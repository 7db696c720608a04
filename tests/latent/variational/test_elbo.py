"""Objectives of a VAE on a model with known evidence."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from parnassus.latent.variational.decoders import GaussianDecoder
from parnassus.latent.variational.deep_latent_gaussian import LinearGaussian
from parnassus.latent.variational.elbo import NegativeELBO
from parnassus.latent.variational.iwae import ImportanceWeightedELBO
from parnassus.latent.variational.vae import VAE

DOUBLE = torch.float64


def make_model() -> tuple[VAE, LinearGaussian]:
    """A linear VAE with a random encoder and the exact model."""
    torch.manual_seed(0)
    layer = nn.Linear(2, 3, dtype=DOUBLE)
    vae = VAE(nn.Linear(3, 4, dtype=DOUBLE), GaussianDecoder(layer, std=0.7).double(), 2)
    return vae, LinearGaussian(layer.weight.detach(), layer.bias.detach(), 0.49 * torch.eye(3, dtype=DOUBLE))


def mean_and_error(values: Tensor) -> tuple[float, float]:
    return float(values.mean()), float(values.std() / len(values) ** 0.5)


@torch.no_grad()
def test_negative_elbo_matches_closed_form() -> None:
    vae, exact = make_model()
    x = torch.tensor([[0.5, -1.0, 0.3]], dtype=DOUBLE)
    mean, log_variance = vae.posterior_parameters(x)
    expected = -float(exact.elbo(x, mean, torch.diag_embed(log_variance.exp())))
    actual, error = mean_and_error(NegativeELBO()(vae, x.expand(20_000, 3)))
    assert abs(actual - expected) < 4 * error


@torch.no_grad()
def test_importance_weighted_bound_increases_with_samples_up_to_the_evidence() -> None:
    vae, exact = make_model()
    x = torch.tensor([[0.5, -1.0, 0.3]], dtype=DOUBLE)
    evidence = float(exact.evidence.log_prob(x))
    bounds = [mean_and_error(-ImportanceWeightedELBO(samples)(vae, x.expand(4_000, 3))) for samples in (1, 4, 16, 64)]
    for (low, low_error), (high, high_error) in pairwise(bounds):
        assert high > low + 3 * (low_error + high_error)
    assert bounds[-1][0] < evidence + 3 * bounds[-1][1]
    assert bounds[-1][0] > evidence - 0.1


@torch.no_grad()
def test_beta_weights_only_the_rate() -> None:
    vae, _ = make_model()
    x = torch.randn(5, 3, dtype=DOUBLE)
    values = []
    for beta in (0.0, 1.0, 4.0):
        torch.manual_seed(2)
        values.append(NegativeELBO(beta)(vae, x))
    torch.manual_seed(2)
    terms = vae.terms(x)
    torch.testing.assert_close(values[0], terms.distortion)
    torch.testing.assert_close(values[1], terms.negative_elbo)
    torch.testing.assert_close(values[2] - values[1], 3 * terms.rate)


@torch.no_grad()
def test_bound_with_one_sample_is_the_log_weight() -> None:
    vae, _ = make_model()
    x = torch.randn(5, 3, dtype=DOUBLE)
    torch.manual_seed(2)
    loss = ImportanceWeightedELBO(1)(vae, x)
    torch.manual_seed(2)
    torch.testing.assert_close(loss, -vae.log_weights(x, 1)[0])


def test_invalid_arguments_raise_value_error() -> None:
    for beta in (-0.1, float("nan")):
        with pytest.raises(ValueError, match="the weight of the rate, must not be negative; got beta="):
            NegativeELBO(beta)
    with pytest.raises(ValueError, match="samples must be positive; got samples=0"):
        ImportanceWeightedELBO(0)
