"""Ladder VAEs."""

import pytest
import torch
from torch import nn
from torch.distributions import Normal

from parnassus.latent.likelihood_estimation.importance_sampling import importance_likelihood
from parnassus.latent.variational.decoders import BernoulliDecoder, GaussianDecoder
from parnassus.latent.variational.ladder_vae import (
    LadderVAE,
    PosteriorRule,
    encoder_only_posterior,
    precision_weighted_posterior,
)
from parnassus.latent.variational.reparametrisation import GaussianParameters
from parnassus.layers import mlp

DOUBLE = torch.float64
A, B, S1, S0 = 1.5, 0.8, 0.7, 0.4  # z₁|z₂ ~ N(A z₂, S1²) and x|z₁ ~ N(B z₁, S0²)


def affine(weight: list[list[float]], bias: list[float]) -> nn.Linear:
    layer = nn.Linear(len(weight[0]), len(weight), dtype=DOUBLE)
    layer.weight, layer.bias = (nn.Parameter(torch.tensor(values, dtype=DOUBLE)) for values in (weight, bias))
    return layer


def log(value: float) -> float:
    return float(torch.tensor(value, dtype=DOUBLE).log())


def exact_model(rule: PosteriorRule = precision_weighted_posterior) -> LadderVAE:
    """Likelihoods N(x/B, S0²/B²) of z₁ and N(x/AB, (S1² + S0²/B²)/A²) of z₂."""
    variance = S0**2 / B**2
    encoder_heads = [
        affine([[1 / B], [0.0]], [0.0, log(variance)]),
        affine([[1 / (A * B)], [0.0]], [0.0, log((S1**2 + variance) / A**2)]),
    ]
    decoder = GaussianDecoder(affine([[B]], [0.0]), std=S0).double()
    prior_head = affine([[A], [0.0]], [0.0, log(S1**2)])
    return LadderVAE([nn.Identity(), nn.Identity()], encoder_heads, [prior_head], decoder, 1, posterior_rule=rule)


def small_model(rule: PosteriorRule = precision_weighted_posterior) -> LadderVAE:
    torch.manual_seed(0)
    return LadderVAE(
        [mlp((6, 8)), mlp((8, 5))],
        [nn.Linear(8, 6), nn.Linear(5, 4)],
        [nn.Linear(2, 6)],
        BernoulliDecoder(nn.Linear(3, 6)),
        2,
        posterior_rule=rule,
    )


def exact_log_evidence(x: torch.Tensor) -> torch.Tensor:
    log_prob: torch.Tensor = Normal(0.0, (B**2 * (A**2 + S1**2) + S0**2) ** 0.5).log_prob(x[:, 0])
    return log_prob


def test_precision_weighted_posterior_is_exact_for_a_linear_model() -> None:
    x = torch.tensor([[-1.0], [0.2], [3.0]], dtype=DOUBLE)
    torch.testing.assert_close(exact_model().log_weights(x, 5), exact_log_evidence(x).expand(5, 3))
    likelihood = importance_likelihood(exact_model(), x, samples=4)
    torch.testing.assert_close(likelihood.log_evidence, exact_log_evidence(x))
    torch.testing.assert_close(likelihood.effective_sample_size, torch.full((3,), 4.0, dtype=DOUBLE))


@torch.no_grad()
def test_bound_is_tight_only_with_the_precision_weighted_posterior() -> None:
    torch.manual_seed(0)
    x = torch.full((100_000, 1), 0.7, dtype=DOUBLE)
    ladder, encoder_only = (
        exact_model(rule).terms(x).negative_elbo for rule in (precision_weighted_posterior, encoder_only_posterior)
    )
    assert float(ladder.mean()) == pytest.approx(
        -float(exact_log_evidence(x)[0]), abs=4 * float(ladder.std()) / 100_000**0.5
    )
    assert float(encoder_only.mean()) > -float(exact_log_evidence(x)[0]) + 0.2


def test_precision_weighted_posterior_is_a_product_of_normals() -> None:
    first, second = (GaussianParameters(*torch.randn(2, 4, 3, dtype=DOUBLE)) for _ in range(2))
    product = precision_weighted_posterior(first, second)
    z = torch.randn(2, 4, 3, dtype=DOUBLE)

    def log_density(moments: GaussianParameters) -> torch.Tensor:
        log_prob: torch.Tensor = Normal(moments.mean, (moments.log_variance / 2).exp()).log_prob(z)
        return log_prob

    difference = log_density(first) + log_density(second) - log_density(product)
    torch.testing.assert_close(difference[0], difference[1])  # constant in z
    assert encoder_only_posterior(first, second) is first


@torch.no_grad()
def test_terms_and_log_weights_estimate_the_same_bound() -> None:
    model, x = small_model(), torch.tensor([1.0, 0, 1, 1, 0, 0]).expand(40_000, 6)
    terms, weights = model.terms(x), -model.log_weights(x, 1)[0]
    assert terms.rates.shape == (2, 40_000)
    error = float((terms.negative_elbo.var() + weights.var()).sqrt()) / 200
    assert abs(float(terms.negative_elbo.mean() - weights.mean())) < 4 * error


@torch.no_grad()
def test_beta_weights_the_rates() -> None:
    model, x = small_model(), torch.rand(5, 6).round()
    losses = []
    for beta in (0.0, 1.0, 3.0):
        torch.manual_seed(0)
        losses.append(model.loss(x, beta))
    torch.manual_seed(0)
    terms = model.terms(x)
    torch.testing.assert_close(losses[0], terms.distortion.mean())
    torch.testing.assert_close(losses[1], terms.negative_elbo.mean())
    torch.testing.assert_close(losses[2] - losses[0], 3 * terms.rates.sum(0).mean())


def test_every_parameter_has_a_gradient() -> None:
    model = small_model()
    model.loss(torch.rand(5, 6)).backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in model.parameters())


def test_samples_have_the_variance_of_the_model() -> None:
    torch.manual_seed(0)
    x = exact_model().float().sample(20_000)
    assert not x.requires_grad
    assert float(x.var()) == pytest.approx(B**2 * (A**2 + S1**2), rel=0.05)  # without decoder noise
    assert small_model().sample(5).shape == (5, 6)


def test_reconstruction_uses_the_requested_levels() -> None:
    x = torch.tensor([[1.0], [-2.0]], dtype=DOUBLE)
    model = exact_model()
    prior_mean = model.reconstruct(x, num_levels=0)
    torch.testing.assert_close(prior_mean, torch.zeros_like(prior_mean))
    coarse, fine = model.reconstruct(x, num_levels=1), model.reconstruct(x)
    torch.testing.assert_close(fine, model.reconstruct(x, num_levels=2))
    assert bool(((x - fine).abs() < (x - coarse).abs()).all())
    total = B**2 * (A**2 + S1**2) + S0**2
    torch.testing.assert_close(coarse, B * A * (A * B / total) * x)  # B A E[z₂|x]


def test_invalid_ladders_raise() -> None:
    with pytest.raises(ValueError, match="got 1 bottom_up, 2 encoder_heads, 1 prior_heads"):
        LadderVAE([nn.Identity()], [nn.Identity()] * 2, [nn.Identity()], nn.Identity(), 1)
    with pytest.raises(ValueError, match="top_dim must be positive; got top_dim=0"):
        LadderVAE([nn.Identity()], [nn.Identity()], [], nn.Identity(), 0)
