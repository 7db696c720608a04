"""Gradient descent on a mixture's likelihood."""

import pytest
import torch

from parnassus.probability import GaussianMixture, UnconstrainedMixture, fit_by_gradient_descent, kmeans_plus_plus_start


def make_mixture() -> GaussianMixture:
    covariances = torch.tensor([[[1.0, 0.6], [0.6, 1.0]], [[0.5, -0.2], [-0.2, 2.0]]], dtype=torch.float64)
    means = torch.tensor([[-2.0, 0.0], [2.0, 1.0]], dtype=torch.float64)
    return GaussianMixture(torch.tensor([0.3, 0.7], dtype=torch.float64), means, covariances)


def test_initial_parameters_represent_the_mixture() -> None:
    expected, mixture = make_mixture(), UnconstrainedMixture(make_mixture()).mixture()
    torch.testing.assert_close(mixture.weights, expected.weights)
    torch.testing.assert_close(mixture.covariances, expected.covariances)


def test_gradients_match_finite_differences() -> None:
    torch.manual_seed(0)
    x, model = make_mixture().sample(50), UnconstrainedMixture(make_mixture())
    model.loss(x).backward()
    for parameter in (model.logits, model.means, model.log_diagonal):
        with torch.no_grad():
            values = parameter.view(-1)
            losses = []
            for step in (1e-5, -2e-5):
                values[0] += step
                losses.append(model.loss(x))
            values[0] += 1e-5
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad.view(-1)[0], (losses[0] - losses[1]) / 2e-5, rtol=1e-5, atol=1e-8)


def test_one_component_converges_to_sample_mean_and_covariance() -> None:
    torch.manual_seed(0)
    x = make_mixture().sample(200)
    fitted, log_likelihoods = fit_by_gradient_descent(x, kmeans_plus_plus_start(x, 1), steps=300)
    torch.testing.assert_close(fitted.means[0], x.mean(0), atol=1e-3, rtol=0)
    torch.testing.assert_close(fitted.covariances[0], x.T.cov(correction=0), atol=2e-2, rtol=0)
    assert log_likelihoods.shape == (300,)
    assert float(log_likelihoods[-1]) > float(log_likelihoods[0])
    assert not fitted.means.requires_grad


def test_invalid_arguments_raise_value_error() -> None:
    x = make_mixture().sample(20)
    with pytest.raises(ValueError, match="need learning_rate > 0 and steps ≥ 1; got learning_rate=0"):
        fit_by_gradient_descent(x, make_mixture(), learning_rate=0.0)
    with pytest.raises(ValueError, match="likelihood is not finite at step 0"):
        fit_by_gradient_descent(torch.full_like(x, torch.nan), make_mixture())
