"""Importance-sampling estimates of log p(x) on a model with known evidence."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.latent.likelihood_estimation.importance_sampling import importance_likelihood
from parnassus.latent.variational.decoders import GaussianDecoder
from parnassus.latent.variational.deep_latent_gaussian import LinearGaussian
from parnassus.latent.variational.vae import VAE

DOUBLE = torch.float64


def make_model(*, widen: float = 1.5) -> tuple[VAE, LinearGaussian]:
    """A linear VAE with the exact posterior mean and `widen` times its variances, and the exact model."""
    torch.manual_seed(0)
    layer = nn.Linear(2, 3, dtype=DOUBLE)
    exact = LinearGaussian(layer.weight.detach(), layer.bias.detach(), 0.49 * torch.eye(3, dtype=DOUBLE))
    precision = torch.eye(2, dtype=DOUBLE) + exact.weight.mT @ exact.weight / 0.49
    to_mean = torch.linalg.solve(precision, exact.weight.mT) / 0.49
    encoder = nn.Linear(3, 4, dtype=DOUBLE)
    encoder.weight = nn.Parameter(torch.cat([to_mean, torch.zeros_like(to_mean)]))
    encoder.bias = nn.Parameter(torch.cat([-to_mean @ exact.offset, (widen / precision.diagonal()).log()]))
    return VAE(encoder, GaussianDecoder(layer, std=0.7).double(), 2), exact


class FixedWeights:
    """A model with given log weights."""

    def __init__(self, log_weights: Tensor) -> None:
        self.log_weights_of_all = log_weights
        self.condition_on = 0

    def log_weights(self, x: Tensor, samples: int) -> Tensor:
        self.condition_on += samples
        return self.log_weights_of_all[self.condition_on - samples : self.condition_on, : len(x)]


def test_estimate_agrees_with_the_exact_evidence() -> None:
    model, exact = make_model()
    x = exact.evidence.sample((20,))
    result = importance_likelihood(model, x, samples=4_000)
    error = (result.log_evidence - exact.evidence.log_prob(x)).abs()
    assert bool((error < 5 * result.relative_standard_error).all())
    assert float(result.relative_standard_error.max()) < 0.03
    assert result.nll == pytest.approx(-float(exact.evidence.log_prob(x).mean()), abs=5 * result.nll_error)


def test_standard_error_and_bias_match_repeated_estimates() -> None:
    model, exact = make_model()
    x = exact.evidence.sample((1,)).expand(400, 3)
    result = importance_likelihood(model, x, samples=50)
    measured = float(result.log_evidence.std())
    assert float(result.relative_standard_error.mean()) == pytest.approx(measured, rel=0.15)
    bias = float(exact.evidence.log_prob(x[:1]) - result.log_evidence.mean())
    assert bias == pytest.approx(result.nll_bias, abs=4 * measured / 20)
    means = torch.stack([result.log_evidence[i::20].mean() for i in range(20)])  # of 20 rows each
    assert float(means.std()) == pytest.approx(result.nll_error * 20**0.5, rel=0.5)


def test_effective_sample_size_counts_equal_weights() -> None:
    weights = torch.tensor([[1.0, 1.0], [1.0, 1e-9], [1.0, 1e-9], [1.0, 1e-9]], dtype=DOUBLE).log()
    result = importance_likelihood(FixedWeights(weights), torch.zeros(2, 1, dtype=DOUBLE), samples=4)
    torch.testing.assert_close(result.effective_sample_size, torch.tensor([4.0, 1.0], dtype=DOUBLE))
    torch.testing.assert_close(result.log_evidence, torch.tensor([1.0, 0.25], dtype=DOUBLE).log())
    assert float(result.relative_standard_error[0]) == 0
    assert float(result.relative_standard_error[1]) == pytest.approx((4 / 3 * 0.75) ** 0.5, abs=1e-6)


def test_near_exact_posterior_has_large_effective_sample_size() -> None:
    model, exact = make_model(widen=1.0)
    x = exact.evidence.sample((3,))
    result = importance_likelihood(model, x, samples=200)
    assert float(result.effective_sample_size.min()) > 100  # the diagonal posterior is not exact


def test_chunks_do_not_change_the_estimate() -> None:
    weights = torch.randn(10, 1, dtype=DOUBLE)
    x = torch.zeros(1, 1, dtype=DOUBLE)
    single = importance_likelihood(FixedWeights(weights), x, samples=10)
    chunked = importance_likelihood(FixedWeights(weights), x, samples=10, chunk_size=3)
    torch.testing.assert_close(single.log_evidence, chunked.log_evidence)
    torch.testing.assert_close(single.effective_sample_size, chunked.effective_sample_size)


def test_invalid_input_raises() -> None:
    with pytest.raises(ValueError, match="at least two samples; got samples=1"):
        importance_likelihood(FixedWeights(torch.zeros(2, 1)), torch.zeros(1, 1), samples=1)
    with pytest.raises(ValueError, match="1 of 2 rows have a likelihood of 0"):
        importance_likelihood(FixedWeights(torch.tensor([[0.0, -torch.inf]] * 2)), torch.zeros(2, 1), samples=2)
