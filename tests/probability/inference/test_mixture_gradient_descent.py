"""Gradient descent on a mixture's likelihood."""

import pytest
import torch

from parnassus.probability import GaussianMixture, UnconstrainedMixture, fit_by_gradient_descent, kmeans_plus_plus_start


def gaussians() -> GaussianMixture:
    covariances = torch.tensor([[[1.0, 0.6], [0.6, 1.0]], [[0.5, -0.2], [-0.2, 2.0]]], dtype=torch.float64)
    means = torch.tensor([[-2.0, 0.0], [2.0, 1.0]], dtype=torch.float64)
    return GaussianMixture(torch.tensor([0.3, 0.7], dtype=torch.float64), means, covariances)


def test_free_parameters_stand_for_the_mixture_they_were_made_of() -> None:
    given, found = gaussians(), UnconstrainedMixture(gaussians()).mixture()
    torch.testing.assert_close(found.weights, given.weights)
    torch.testing.assert_close(found.covariances, given.covariances)


def test_every_parameter_gets_the_gradient_of_finite_differences() -> None:
    torch.manual_seed(0)
    x, model = gaussians().sample(50), UnconstrainedMixture(gaussians())
    model.loss(x).backward()
    for parameter in (model.logits, model.means, model.log_diagonal):
        with torch.no_grad():
            place = parameter.view(-1)
            heights = []
            for step in (1e-5, -2e-5):
                place[0] += step
                heights.append(model.loss(x))
            place[0] += 1e-5
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad.view(-1)[0], (heights[0] - heights[1]) / 2e-5, rtol=1e-5, atol=1e-8)


def test_one_component_ends_at_mean_and_covariance() -> None:
    torch.manual_seed(0)
    x = gaussians().sample(200)
    found, heights = fit_by_gradient_descent(x, kmeans_plus_plus_start(x, 1), steps=300)
    torch.testing.assert_close(found.means[0], x.mean(0), atol=1e-3, rtol=0)
    torch.testing.assert_close(found.covariances[0], x.T.cov(correction=0), atol=2e-2, rtol=0)
    assert heights.shape == (300,)
    assert float(heights[-1]) > float(heights[0])
    assert not found.means.requires_grad


def test_what_cannot_work_is_rejected() -> None:
    x = gaussians().sample(20)
    with pytest.raises(ValueError, match="need learning_rate > 0 and steps ≥ 1; got learning_rate=0"):
        fit_by_gradient_descent(x, gaussians(), learning_rate=0.0)
    with pytest.raises(ValueError, match="likelihood is not finite at step 0"):
        fit_by_gradient_descent(torch.full_like(x, torch.nan), gaussians())
