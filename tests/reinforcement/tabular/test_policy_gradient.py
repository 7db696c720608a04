"""Exact gradients against autograd and differences; estimates against them on average."""

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

from ..cat_logits import logits

START = torch.tensor([0.0, 0.0, 0.5, 0.5, 0.0, 0.0], dtype=torch.float64)


def test_a_softmax_over_what_is_allowed() -> None:
    process = cat_decision_process()
    policy = softmax_policy(logits(), process.allowed)
    process.require_policy(policy)
    torch.testing.assert_close(policy[3, 1:], logits()[3, 1:].softmax(-1))


def test_the_theorem_against_differences() -> None:
    process, theta, small = cat_decision_process(0.8), logits(), 1e-6
    exact = policy_gradient(process, softmax_policy(theta, process.allowed), START)
    for s, a in ((3, 1), (3, 2), (2, 0)):
        shift = torch.zeros_like(theta)
        shift[s, a] = small
        above, below = (
            expected_return(process, softmax_policy(theta + sign * shift, process.allowed), START) for sign in (1, -1)
        )
        assert float(exact[s, a]) == pytest.approx(float(above - below) / (2 * small), abs=1e-7)


def test_estimates_of_paths_by_autograd() -> None:
    """Row by row the estimate is the gradient of Σ_t w_t log π(a_t|s_t)."""
    process = cat_decision_process(0.8)
    paths = enumerate_trajectories(process, START, 4)
    theta = logits().requires_grad_()
    policy = softmax_policy(theta, process.allowed)
    weights = return_weights(paths, 0.8)
    found = reinforce_estimates(paths, policy.detach(), weights)
    for row in range(0, len(weights), 3):
        chosen = policy[paths.states[row, :-1], paths.actions[row]].log()
        total = (torch.where(paths.live[row], chosen, 0) * weights[row]).sum()
        (gradient,) = torch.autograd.grad(total, theta, retain_graph=True)
        torch.testing.assert_close(found[row], gradient)


def test_their_mean_is_the_gradient_and_the_quietest_is_quiet() -> None:
    process = cat_decision_process(0.8)
    paths = enumerate_trajectories(process, START, 4)
    theta = logits().requires_grad_()
    probabilities = paths.probabilities(softmax_policy(theta, process.allowed))
    (gradient,) = torch.autograd.grad(probabilities @ paths.returns(0.8)[:, 0], theta)
    policy, probabilities = softmax_policy(theta, process.allowed).detach(), probabilities.detach()
    baseline = optimal_baseline(paths, policy, 0.8)
    plain, quiet = (
        mean_and_variance(probabilities, reinforce_estimates(paths, policy, return_weights(paths, 0.8, each)))
        for each in (0.0, baseline[paths.states[:, :-1]])
    )
    torch.testing.assert_close(plain[0], gradient)
    torch.testing.assert_close(quiet[0], gradient)
    assert float(quiet[1]) < 0.5 * float(plain[1])


def test_weights_by_hand() -> None:
    paths = enumerate_trajectories(cat_decision_process(0.5), torch.tensor([0.0, 0, 0, 1, 0, 0]).double(), 2)
    talked = paths.actions[:, 0] == 1
    assert return_weights(paths, 0.5)[talked][0].tolist() == [2.5, 0.5]
    assert return_weights(paths, 0.5, 1.0)[talked][0].tolist() == [1.5, 0.0]


def test_what_comes_after_the_end_teaches_nothing() -> None:
    """A baseline would weigh steps that were never made, but for the mark that they are not live."""
    process = cat_decision_process(0.8)
    paths = enumerate_trajectories(process, START, 4)
    found = reinforce_estimates(paths, process.uniform_policy(), return_weights(paths, 0.8, 1.0))
    assert bool((found[:, process.terminal] == 0).all())
    assert not bool(paths.live.all())
