"""Trust regions: surrogate, Fisher matrix and step."""

import pytest
import torch

from parnassus.reinforcement.tabular.policy_gradient import expected_return, policy_gradient, softmax_policy
from parnassus.reinforcement.tabular.trust_region import (
    fisher_product,
    improvement_lower_bound,
    occupancy_weighted_kl,
    surrogate_return,
    trust_region_step,
)
from parnassus.reinforcement.textbook.cat import cat_decision_process

from ..cat_logits import random_logits

START = torch.tensor([0.2, 0.2, 0.2, 0.2, 0.2, 0.0], dtype=torch.float64)


def test_surrogate_matches_return_and_gradient_at_the_old_policy() -> None:
    process = cat_decision_process(0.9)
    theta = random_logits().requires_grad_()
    old = softmax_policy(theta.detach(), process.allowed)
    surrogate = surrogate_return(process, old, softmax_policy(theta, process.allowed), START)
    torch.testing.assert_close(surrogate.detach(), expected_return(process, old, START))
    (gradient,) = torch.autograd.grad(surrogate, theta)
    torch.testing.assert_close(gradient, policy_gradient(process, old, START))


def test_fisher_product_matches_the_mean_of_squared_scores() -> None:
    policy, visits, x = random_logits().softmax(-1), torch.rand(6, dtype=torch.float64), random_logits(1)
    expected = torch.zeros_like(x)
    for s in range(6):
        for a in range(3):
            score = torch.eye(3, dtype=torch.float64)[a] - policy[s]
            expected[s] += visits[s] * policy[s, a] * score * (score @ x[s])
    torch.testing.assert_close(fisher_product(policy, visits, x), expected)


def test_steps_respect_the_bounds_and_reach_the_optimal_policy() -> None:
    process, theta = cat_decision_process(0.9), torch.zeros(6, 3, dtype=torch.float64)
    for _ in range(25):
        old = softmax_policy(theta, process.allowed)
        step = trust_region_step(process, theta, START, target_kl=0.005)
        new = softmax_policy(step.logits, process.allowed)
        assert float(occupancy_weighted_kl(process, old, new, START)) <= 0.005
        assert float(expected_return(process, new, START)) >= float(improvement_lower_bound(process, old, new, START))
        theta = step.logits
    assert float(softmax_policy(theta, process.allowed)[3, 1]) > 0.95


def test_deterministic_policy_with_zero_gradient_does_not_change() -> None:

    process = cat_decision_process(0.9)
    theta = torch.zeros(6, 3, dtype=torch.float64)
    theta[3, 1] = 60.0  # talks with probability 1 in float64
    step = trust_region_step(process, theta, START, target_kl=0.01)
    assert step.kl <= 0.01
    torch.testing.assert_close(softmax_policy(step.logits, process.allowed), softmax_policy(theta, process.allowed))


def test_invalid_arguments_raise_value_error() -> None:
    process, policy = cat_decision_process(1.0), cat_decision_process().uniform_policy()
    with pytest.raises(ValueError, match="the discount must be below 1"):
        improvement_lower_bound(process, policy, policy, START)
    with pytest.raises(ValueError, match="target_kl must be positive; got target_kl=0"):
        trust_region_step(process, random_logits(), START, target_kl=0.0)
