"""Decoders compared with closed-form densities."""

from math import exp, log, log1p, pi

import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from parnassus.latent.variational.decoders import BernoulliDecoder, GaussianDecoder, HeteroscedasticGaussianDecoder
from parnassus.latent.variational.reparametrisation import independent_normal

DOUBLE = torch.float64


def test_bernoulli_decoder_matches_cross_entropy_for_grey_values() -> None:
    torch.manual_seed(0)
    network, z, x = nn.Linear(2, 5), torch.randn(3, 2), torch.rand(3, 5)
    expected = binary_cross_entropy_with_logits(network(z), x, reduction="none").sum(1)
    torch.testing.assert_close(-BernoulliDecoder(network)(z).log_prob(x), expected)


def test_bernoulli_decoder_is_normalised_over_binary_images() -> None:
    torch.manual_seed(0)
    decoded = BernoulliDecoder(nn.Linear(2, 3))(torch.randn(1, 2))
    images = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * 3)
    torch.testing.assert_close(decoded.log_prob(images).exp().sum(), torch.tensor(1.0))
    assert set(decoded.sample((10,)).unique().tolist()) <= {0.0, 1.0}


def test_gaussian_decoder_matches_closed_form() -> None:
    torch.manual_seed(0)
    network, z, x = nn.Linear(2, 5, dtype=DOUBLE), torch.randn(3, 2, dtype=DOUBLE), torch.rand(3, 5, dtype=DOUBLE)
    error = (network(z) - x).square().sum(1)
    decoder = GaussianDecoder(network, std=0.3).double()
    torch.testing.assert_close(-decoder(z).log_prob(x), error / 0.18 + 2.5 * log(2 * pi * 0.09))


def test_learned_std_of_a_gaussian_decoder_is_the_root_mean_square_error() -> None:
    torch.manual_seed(0)
    network, x = nn.Linear(2, 5, dtype=DOUBLE).requires_grad_(requires_grad=False), torch.randn(40, 5, dtype=DOUBLE)
    decoder = GaussianDecoder(network).double()
    z = torch.zeros(40, 2, dtype=DOUBLE)
    optimizer = torch.optim.Adam([decoder.log_std], lr=0.02)
    for _ in range(400):
        optimizer.zero_grad()
        (-decoder(z).log_prob(x).mean()).backward()
        optimizer.step()
    torch.testing.assert_close(decoder.log_std.exp(), (network(z) - x).square().mean().sqrt(), rtol=1e-4, atol=0)


def test_fixed_std_is_not_trainable() -> None:
    assert not GaussianDecoder(nn.Identity(), std=0.5, learned=False).log_std.requires_grad


def test_heteroscedastic_decoder_matches_closed_form() -> None:
    z, x = torch.zeros(1, 1), torch.tensor([[1.0, 2.0]])
    network = nn.Linear(1, 4)
    network.bias = nn.Parameter(torch.tensor([1.0, 0.0, 0.5, 50.0]))
    decoded = HeteroscedasticGaussianDecoder(network, min_std=0.01)(z)
    torch.testing.assert_close(decoded.mean, torch.tensor([[1.0, 0.0]]))
    std = torch.tensor([log1p(exp(0.5)) + 0.01, 50.01])
    expected = -(std.log() + log(2 * pi) / 2 + (x - decoded.mean).square() / (2 * std.square())).sum(1)
    torch.testing.assert_close(decoded.log_prob(x), expected)


def test_min_std_bounds_the_standard_deviation() -> None:
    network = nn.Linear(1, 2)
    network.bias = nn.Parameter(torch.tensor([0.0, -1000.0]))
    decoded = HeteroscedasticGaussianDecoder(network, min_std=0.1)(torch.zeros(1, 1))
    torch.testing.assert_close(decoded.variance.sqrt(), torch.tensor([[0.1]]))


def test_independent_normal_has_one_density_per_row() -> None:
    mean = torch.randn(4, 3, 2, 2)
    assert independent_normal(mean, torch.tensor(0.5)).log_prob(mean).shape == (4,)
    assert independent_normal(mean, torch.rand(3, 2, 2) + 0.1).log_prob(mean).shape == (4,)


def test_odd_number_of_outputs_raises_value_error() -> None:
    with pytest.raises(ValueError, match="as many means as standard deviations; got 3 values"):
        HeteroscedasticGaussianDecoder(nn.Linear(1, 3))(torch.zeros(2, 1))


@pytest.mark.parametrize("std", [0.0, -1.0, float("nan")])
def test_non_positive_std_raises_value_error(std: float) -> None:
    with pytest.raises(ValueError, match="std must be positive; got std="):
        GaussianDecoder(nn.Identity(), std=std)
    with pytest.raises(ValueError, match="min_std must be positive; got min_std="):
        HeteroscedasticGaussianDecoder(nn.Identity(), min_std=std)
