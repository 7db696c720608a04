"""Claims about REINFORCE, baselines and actor-critic methods (book secs. 18.4, 18.5)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.probability import standard_normal
from parnassus.reinforcement.claims.random_processes import DISCOUNT, random_process
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.policy_gradient import (
    expected_return,
    mean_and_variance,
    optimal_baseline,
    policy_gradient,
    reinforce_estimates,
    return_weights,
    softmax_policy,
)
from parnassus.reinforcement.tabular.trajectories import TrajectoryDistribution, enumerate_trajectories
from parnassus.reinforcement.textbook.cat import ACTIONS, STATES, cat_decision_process

HORIZON = 3


def small_problem() -> tuple[TrajectoryDistribution, Tensor, Tensor, Tensor]:
    """All paths of three steps in a small process; logits, policy and ∇J by finite differences."""
    process, start = random_process(), torch.tensor([0.7, 0.3], dtype=torch.float64)
    paths = enumerate_trajectories(process, start, HORIZON)
    logits = standard_normal(2, 2, seed=1)
    gradient, step = torch.zeros_like(logits), 1e-5
    for entry in range(4):
        shift = step * torch.eye(4, dtype=torch.float64)[entry].view(2, 2)
        above, below = (_return(paths, process, logits + sign * shift) for sign in (1, -1))
        gradient.view(-1)[entry] = (above - below) / (2 * step)
    return paths, logits, softmax_policy(logits, process.allowed), gradient


def _return(paths: TrajectoryDistribution, process: MarkovDecisionProcess, logits: Tensor) -> Tensor:
    return paths.probabilities(softmax_policy(logits, process.allowed)) @ paths.returns(DISCOUNT)[:, 0]


def powers(paths: TrajectoryDistribution) -> Tensor:
    return DISCOUNT ** torch.arange(paths.actions.shape[1], dtype=torch.float64)


@claim("B18.4-1")
def reinforce_is_unbiased() -> Evidence:
    """Over all 128 paths of a small process the mean of Σ_t γ^t G_t ∇log π is ∇J (book eqs. 18.9-18.10)."""
    paths, logits, policy, gradient = small_problem()
    probabilities = paths.probabilities(policy)
    mean, _ = mean_and_variance(probabilities, reinforce_estimates(paths, policy, return_weights(paths, DISCOUNT)))
    leaf = logits.clone().requires_grad_()
    (by_autograd,) = torch.autograd.grad(_return(paths, random_process(), leaf), leaf)
    regrouped = powers(paths) * paths.rewards  # Σ_t Σ_{k≥t} γ^k r_k ∇log π(a_t|s_t)
    regrouped_mean, _ = mean_and_variance(
        probabilities, reinforce_estimates(paths, policy, regrouped.flip(1).cumsum(1).flip(1))
    )
    return all_of(
        probabilities_sum_to_one=close(probabilities.sum(), 1.0, atol=1e-14),
        finite_differences=close(mean, gradient, atol=1e-9),
        autograd=close(mean, by_autograd, atol=1e-14),
        regrouped=close(regrouped_mean, mean, atol=1e-14),
    )


@claim("B18.4-1")
def the_policy_gradient_theorem_is_exact() -> Evidence:
    """∂J/∂θ(s, a) = d(s) π(a|s) A(s, a) equals the derivative through Bellman's equations (book eq. 18.9)."""
    gaps = []
    for process in (random_process(6, 4, seed=3), cat_decision_process(0.9)):
        logits = standard_normal(process.num_states, process.num_actions, seed=4).requires_grad_()
        start = process.uniform_policy().new_full((process.num_states,), 1 / process.num_states)
        policy = softmax_policy(logits, process.allowed)
        (by_autograd,) = torch.autograd.grad(expected_return(process, policy, start), logits)
        gaps.append((policy_gradient(process, policy.detach(), start) - by_autograd).abs().max())
    return close(torch.stack(gaps), 0.0, atol=1e-12)


@claim("B18.4-1")
def gradient_ascent_finds_the_optimal_policy() -> Evidence:
    """Gradient ascent on J increases the return at every step, up to the optimum (book eq. 18.10)."""
    process, relaxed, talk = cat_decision_process(0.9), STATES.index("relaxed"), ACTIONS.index("talk")
    start = torch.tensor([0.0, 1, 0, 0, 0, 0], dtype=torch.float64)
    logits, returns = torch.zeros(6, 3, dtype=torch.float64), []
    for _ in range(60):
        policy = softmax_policy(logits, process.allowed)
        returns.append(expected_return(process, policy, start))
        logits = logits + policy_gradient(process, policy, start)
    return all_of(
        increments=greater_equal(torch.stack(returns).diff(), 0.0),
        probability_of_talking=greater_equal(softmax_policy(logits, process.allowed)[relaxed, talk], 0.97),
    )


@erratum("B18.4-1", printed="G_t = Σ_{k>t} γ^{k−t−1} r_k with r_t after a_t", right="G_t = Σ_{k≥t} γ^{k−t} r_k")
def the_printed_return_omits_the_reward_of_the_action() -> Correction:
    """With s_0, a_0, r_0, s_1, … the return must begin at r_t; from r_{t+1} on it gives another gradient."""
    paths, _, policy, gradient = small_problem()
    probabilities = paths.probabilities(policy)
    later = torch.cat([paths.returns(DISCOUNT)[:, 1:], torch.zeros(len(paths.rewards), 1).double()], 1)
    printed, _ = mean_and_variance(probabilities, reinforce_estimates(paths, policy, powers(paths) * later))
    right, _ = mean_and_variance(probabilities, reinforce_estimates(paths, policy, return_weights(paths, DISCOUNT)))
    return Correction(printed=close(printed, gradient, atol=1e-2), corrected=close(right, gradient, atol=1e-9))


@erratum("B18.4-1", printed="∇J = E[γ^t G_t ∇log π(a_t|s_t)]", right="∇J = E[Σ_t γ^t G_t ∇log π(a_t|s_t)]")
def the_printed_theorem_omits_the_sum_over_time() -> Correction:
    """No single t gives the gradient: the sum over t belongs inside the expectation (book eq. 18.9)."""
    paths, _, policy, gradient = small_problem()
    probabilities, weights = paths.probabilities(policy), return_weights(paths, DISCOUNT)
    single_terms = [
        mean_and_variance(probabilities, reinforce_estimates(paths, policy, weights * torch.eye(HORIZON).double()[t]))[
            0
        ]
        for t in range(HORIZON)
    ]
    nearest = min(single_terms, key=lambda part: float((part - gradient).abs().max()))
    return Correction(
        printed=close(nearest, gradient, atol=1e-2),
        corrected=close(torch.stack(single_terms).sum(0), gradient, atol=1e-9),
    )


@claim("B18.4-2")
def baselines_are_unbiased_and_can_reduce_the_variance() -> Evidence:
    """Any b(s) has bias 0; V(s) and the optimal b(s) reduce the variance (book sec. 18.4)."""
    paths, _, policy, gradient = small_problem()
    probabilities, before = paths.probabilities(policy), paths.states[:, :-1]
    optimal = optimal_baseline(paths, policy, DISCOUNT)
    value = random_process().state_values(policy) * (1 - DISCOUNT**HORIZON)
    baselines: dict[str, Tensor | float] = {
        "none": 0.0,
        "value": value[before],
        "optimal": optimal[before],
        "bad": torch.tensor([5.0, -7.0])[before],
    }
    moments = {
        name: mean_and_variance(
            probabilities, reinforce_estimates(paths, policy, return_weights(paths, DISCOUNT, baseline))
        )
        for name, baseline in baselines.items()
    }
    perturbed = [
        mean_and_variance(
            probabilities, reinforce_estimates(paths, policy, return_weights(paths, DISCOUNT, (optimal + e)[before]))
        )[1]
        for e in torch.tensor([[0.1, 0], [-0.1, 0], [0, 0.1], [0, -0.1]], dtype=torch.float64)
    ]
    return all_of(
        bias=close(torch.stack([mean for mean, _ in moments.values()]), gradient, atol=1e-8),
        variance_with_values=less_equal(moments["value"][1] / moments["none"][1], 0.95),
        variance_with_the_optimum=less_equal(moments["optimal"][1], moments["value"][1]),
        variance_near_the_optimum=greater_equal(torch.stack(perturbed), moments["optimal"][1]),
        variance_with_a_bad_baseline=greater_equal(moments["bad"][1] / moments["none"][1], 5.0),
    )


@claim("B18.4-2")
def action_dependent_baselines_are_biased() -> Evidence:
    """With b(s, a) = Q(s, a) the expected gradient is 0 (book sec. 18.4)."""
    paths, _, policy, gradient = small_problem()
    probabilities, weights = paths.probabilities(policy), return_weights(paths, DISCOUNT)
    baseline = (weights * probabilities[:, None]).new_zeros(weights.shape)
    key = torch.stack([paths.states[:, :-1], paths.actions], -1)
    for t in range(HORIZON):  # E[γ^t G_t | s_t, a_t], exactly
        for s in range(2):
            for a in range(2):
                here = (key[:, t] == torch.tensor([s, a])).all(-1)
                baseline[here, t] = (probabilities[here] @ weights[here, t]) / probabilities[here].sum()
    mean, _ = mean_and_variance(probabilities, reinforce_estimates(paths, policy, weights - baseline))
    return all_of(mean=close(mean, 0.0, atol=1e-12), true_gradient=greater_equal(gradient.abs().max(), 0.05))
