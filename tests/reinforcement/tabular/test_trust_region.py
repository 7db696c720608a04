"""Trust regions: the surrogate's slope, the curvature, the step's promises."""

import pytest
import torch

from parnassus.reinforcement.tabular.policy_gradient import expected_return, policy_gradient, softmax_policy
from parnassus.reinforcement.tabular.trust_region import (
    fisher_product,
    improvement_lower_bound,
    mean_kl,
    surrogate_return,
    trust_region_step,
)
from parnassus.reinforcement.textbook.cat import cat_decision_process

from ..cat_logits import logits

START = torch.tensor([0.2, 0.2, 0.2, 0.2, 0.2, 0.0], dtype=torch.float64)


def test_the_surrogate_touches_the_return() -> None:
    process = cat_decision_process(0.9)
    theta = logits().requires_grad_()
    old = softmax_policy(theta.detach(), process.allowed)
    surrogate = surrogate_return(process, old, softmax_policy(theta, process.allowed), START)
    torch.testing.assert_close(surrogate.detach(), expected_return(process, old, START))
    (slope,) = torch.autograd.grad(surrogate, theta)
    torch.testing.assert_close(slope, policy_gradient(process, old, START))


def test_fisher_is_the_mean_of_squared_scores() -> None:
    policy, visits, x = logits().softmax(-1), torch.rand(6, dtype=torch.float64), logits(1)
    expected = torch.zeros_like(x)
    for s in range(6):
        for a in range(3):
            score = torch.eye(3, dtype=torch.float64)[a] - policy[s]
            expected[s] += visits[s] * policy[s, a] * score * (score @ x[s])
    torch.testing.assert_close(fisher_product(policy, visits, x), expected)


def test_steps_on_the_cat_end_in_talking() -> None:
    process, theta = cat_decision_process(0.9), torch.zeros(6, 3, dtype=torch.float64)
    for _ in range(25):
        old = softmax_policy(theta, process.allowed)
        step = trust_region_step(process, theta, START, target_kl=0.005)
        new = softmax_policy(step.logits, process.allowed)
        assert float(mean_kl(process, old, new, START)) <= 0.005
        assert float(expected_return(process, new, START)) >= float(improvement_lower_bound(process, old, new, START))
        theta = step.logits
    assert float(softmax_policy(theta, process.allowed)[3, 1]) > 0.95


def test_no_step_where_nothing_is_better() -> None:
    """A process of one action has no gradient at all."""
    process = cat_decision_process(0.9)
    sure = torch.zeros(6, 3, dtype=torch.float64)
    sure[3, 1] = 60.0  # talking already, with certainty in float64
    step = trust_region_step(process, sure, START, target_kl=0.01)
    assert step.kl <= 0.01
    torch.testing.assert_close(softmax_policy(step.logits, process.allowed), softmax_policy(sure, process.allowed))


def test_what_cannot_work_gets_a_sentence() -> None:
    process, policy = cat_decision_process(1.0), cat_decision_process().uniform_policy()
    with pytest.raises(ValueError, match="the discount must be below 1"):
        improvement_lower_bound(process, policy, policy, START)
    with pytest.raises(ValueError, match="target_kl must be positive; got target_kl=0"):
        trust_region_step(process, logits(), START, target_kl=0.0)
