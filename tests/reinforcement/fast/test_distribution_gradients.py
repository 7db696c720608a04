"""Closed-form gradients of distributions compared with autograd."""

import pytest
import torch

from parnassus.reinforcement.agents.action_distributions import Categorical, DiagonalGaussian
from parnassus.reinforcement.fast.distribution_gradients import distribution_gradients


@pytest.mark.parametrize("entropy_weight", [0.0, -0.3])
def test_categorical_gradients_match_autograd(entropy_weight: float) -> None:
    torch.manual_seed(0)
    logits, log_prob_weights = torch.randn(2, 9, 4, dtype=torch.float64, requires_grad=True), torch.randn(2, 9).double()
    distribution, actions = Categorical(logits), torch.randint(4, (2, 9))
    objective = (
        log_prob_weights * distribution.log_prob(actions)
    ).sum() + entropy_weight * distribution.entropy().sum()
    (expected,) = torch.autograd.grad(objective, logits)
    gradients = distribution_gradients(Categorical(logits.detach()), actions, log_prob_weights, entropy_weight)
    torch.testing.assert_close(gradients.outputs, expected, atol=1e-13, rtol=0)
    assert gradients.log_std is None


@pytest.mark.parametrize("entropy_weight", [0.0, -0.3])
def test_gaussian_gradients_match_autograd(entropy_weight: float) -> None:
    torch.manual_seed(0)
    mean, log_prob_weights = torch.randn(2, 9, 3, dtype=torch.float64, requires_grad=True), torch.randn(2, 9).double()
    log_std = torch.randn(2, 1, 3, dtype=torch.float64, requires_grad=True)
    distribution, actions = DiagonalGaussian(mean, log_std), torch.randn(2, 9, 3).double()
    objective = (
        log_prob_weights * distribution.log_prob(actions)
    ).sum() + entropy_weight * distribution.entropy().sum()
    expected = torch.autograd.grad(objective, [mean, log_std])
    gradients = distribution_gradients(
        DiagonalGaussian(mean.detach(), log_std.detach()),
        actions,
        log_prob_weights,
        entropy_weight,
    )
    assert gradients.log_std is not None
    torch.testing.assert_close(gradients.outputs, expected[0], atol=1e-12, rtol=0)
    torch.testing.assert_close(gradients.log_std.sum(1, keepdim=True), expected[1], atol=1e-12, rtol=0)
