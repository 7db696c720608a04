"""Exact policy gradients and REINFORCE estimates."""

import pytest
import torch

from parnassus.reinforcement.tabular.policy_gradient import (
    expected_return,
    mean_and_variance,
    optimal_baseline,
    policy_gradient,
    reinforce_estimates,
    return_weights,
    softmax_policy,
)
from parnassus.reinforcement.tabular.trajectories import enumerate_trajectories
from parnassus.reinforcement.textbook.cat import cat_decision_process

from ..cat_logits import random_logits

START = torch.tensor([0.0, 0.0, 0.5, 0.5, 0.0, 0.0], dtype=torch.float64)


def test_softmax_policy_over_allowed_actions() -> None:
    process = cat_decision_process()
    policy = softmax_policy(random_logits(), process.allowed)
    process.check_policy(policy)
    torch.testing.assert_close(policy[3, 1:], random_logits()[3, 1:].softmax(-1))


def test_policy_gradient_matches_finite_differences() -> None:
    process, theta, step = cat_decision_process(0.8), random_logits(), 1e-6
    exact = policy_gradient(process, softmax_policy(theta, process.allowed), START)
    for s, a in ((3, 1), (3, 2), (2, 0)):
        shift = torch.zeros_like(theta)
        shift[s, a] = step
        above, below = (
            expected_return(process, softmax_policy(theta + sign * shift, process.allowed), START) for sign in (1, -1)
        )
        assert float(exact[s, a]) == pytest.approx(float(above - below) / (2 * step), abs=1e-7)


def test_reinforce_estimates_match_autograd() -> None:
    """Each estimate is the gradient of Σ_t w_t log π(a_t|s_t)."""
    process = cat_decision_process(0.8)
    trajectories = enumerate_trajectories(process, START, 4)
    theta = random_logits().requires_grad_()
    policy = softmax_policy(theta, process.allowed)
    weights = return_weights(trajectories, 0.8)
    estimates = reinforce_estimates(trajectories, policy.detach(), weights)
    for row in range(0, len(weights), 3):
        log_probs = policy[trajectories.states[row, :-1], trajectories.actions[row]].log()
        total = (torch.where(trajectories.active[row], log_probs, 0) * weights[row]).sum()
        (gradient,) = torch.autograd.grad(total, theta, retain_graph=True)
        torch.testing.assert_close(estimates[row], gradient)


def test_estimates_are_unbiased_and_the_optimal_baseline_reduces_variance() -> None:
    process = cat_decision_process(0.8)
    trajectories = enumerate_trajectories(process, START, 4)
    theta = random_logits().requires_grad_()
    probabilities = trajectories.probabilities(softmax_policy(theta, process.allowed))
    (gradient,) = torch.autograd.grad(probabilities @ trajectories.returns(0.8)[:, 0], theta)
    policy, probabilities = softmax_policy(theta, process.allowed).detach(), probabilities.detach()
    baseline = optimal_baseline(trajectories, policy, 0.8)
    plain, reduced = (
        mean_and_variance(
            probabilities, reinforce_estimates(trajectories, policy, return_weights(trajectories, 0.8, b))
        )
        for b in (0.0, baseline[trajectories.states[:, :-1]])
    )
    torch.testing.assert_close(plain[0], gradient)
    torch.testing.assert_close(reduced[0], gradient)
    assert float(reduced[1]) < 0.5 * float(plain[1])


def test_return_weights_match_hand_computation() -> None:
    trajectories = enumerate_trajectories(cat_decision_process(0.5), torch.tensor([0.0, 0, 0, 1, 0, 0]).double(), 2)
    is_talking = trajectories.actions[:, 0] == 1
    assert return_weights(trajectories, 0.5)[is_talking][0].tolist() == [2.5, 0.5]
    assert return_weights(trajectories, 0.5, 1.0)[is_talking][0].tolist() == [1.5, 0.0]


def test_steps_after_the_end_do_not_contribute() -> None:
    """Steps after the end have no weight even with a baseline."""
    process = cat_decision_process(0.8)
    trajectories = enumerate_trajectories(process, START, 4)
    estimates = reinforce_estimates(trajectories, process.uniform_policy(), return_weights(trajectories, 0.8, 1.0))
    assert bool((estimates[:, process.terminal] == 0).all())
    assert not bool(trajectories.active.all())
