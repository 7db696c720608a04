"""Claims about actor-critic methods: TD errors, the gradients of actor and critic, and λ (book sec. 18.5)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.probability import seeded_generator, standard_normal
from parnassus.reinforcement.claims.random_processes import DISCOUNT, random_episodic_process, random_process
from parnassus.reinforcement.experience.generalised_advantage import generalised_advantages, td_errors
from parnassus.reinforcement.tabular.expected_advantage import expected_advantages
from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.policy_gradient import (
    discounted_td_errors,
    expected_return,
    mean_and_variance,
    path_td_errors,
    policy_gradient,
    reinforce_estimates,
    softmax_policy,
)
from parnassus.reinforcement.tabular.rollout import Rollout, rollout
from parnassus.reinforcement.tabular.trajectories import enumerate_trajectories
from parnassus.reinforcement.textbook.cat import ACTIONS, STATES, cat_decision_process


@claim("B18.5-1")
def the_expected_td_error_is_the_advantage() -> Evidence:
    """With v = V^π, E[δ | s, a] = A(s, a); and E[Σ_t γ^t δ_t ∇log π] = ∇J (book eqs. 18.11-18.12)."""
    process = random_process(4, 3, seed=5)
    policy = softmax_policy(standard_normal(4, 3, seed=6), process.allowed)
    values = process.state_values(policy)
    shape = process.transition.shape
    errors = td_errors(
        process.reward,
        values[:, None, None].expand(shape),
        values.expand(shape),
        torch.zeros(shape, dtype=torch.bool),
        gamma=DISCOUNT,
    )
    mean = (process.transition * errors).sum(-1)
    start = torch.full((4,), 0.25, dtype=torch.float64)
    actor = process.occupancy(policy, start)[:, None] * policy * (mean - (policy * mean).sum(-1, keepdim=True))
    return all_of(
        advantage=close(mean, process.advantages(policy), atol=1e-12),
        actor=close(actor, policy_gradient(process, policy, start), atol=1e-12),
    )


EPISODE_START = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)


def actor_gradients() -> tuple[Tensor, Tensor, MarkovDecisionProcess, Tensor]:
    """Means of Σ δ_t ∇log π and Σ γ^t δ_t ∇log π over all paths of an episodic process; the process; the policy."""
    process = random_episodic_process(seed=1)
    policy = softmax_policy(standard_normal(4, 2, seed=2), process.allowed)
    paths, values = enumerate_trajectories(process, EPISODE_START, 3), process.state_values(policy)
    means = [
        mean_and_variance(
            paths.probabilities(policy), reinforce_estimates(paths, policy, weights(paths, values, DISCOUNT))
        )[0]
        for weights in (path_td_errors, discounted_td_errors)
    ]
    return means[0], means[1], process, policy


@erratum("B18.5-1", printed="∇J = E[Σ_t δ_t ∇log π]", right="∇J = E[Σ_t γ^t δ_t ∇log π]")
def the_printed_actor_gradient_omits_the_discount() -> Correction:
    """Without the γ^t of eq. 18.9 late states count too much; by enumeration (book eq. 18.11)."""
    errors, discounted, process, policy = actor_gradients()
    gradient = policy_gradient(process, policy, EPISODE_START)
    return Correction(printed=close(errors, gradient, atol=1e-3), corrected=close(discounted, gradient, atol=1e-12))


@claim("B18.5-1")
def both_actor_gradients_are_exact() -> Evidence:
    """E[Σ δ_t ∇log π] = Σ_s n(s) π A with n the expected visits, E[Σ γ^t δ_t ∇log π] = ∇J (book eq. 18.11)."""
    errors, discounted, process, policy = actor_gradients()
    visits = process.with_discount(1.0).occupancy(policy, EPISODE_START)
    leaf = policy.log().clamp(min=-50).requires_grad_()
    returns = expected_return(process, softmax_policy(leaf, process.allowed), EPISODE_START)
    (by_autograd,) = torch.autograd.grad(returns, leaf)
    return all_of(
        without_discount=close(errors, visits[:, None] * policy * process.advantages(policy), atol=1e-12),
        with_discount=close(discounted, by_autograd, atol=1e-12),
    )


@claim("B18.5-1")
def the_critic_uses_a_semi_gradient() -> Evidence:
    """With the target detached ∇½δ² = −δ ∇v(s); the full gradient differs (book eq. 18.12)."""
    features = standard_normal(2, 32, 5)
    weights = standard_normal(5, seed=1).requires_grad_()
    rewards, not_terminal = (
        standard_normal(32, seed=2),
        torch.zeros(32, dtype=torch.bool),
    )
    here, there = (each @ weights for each in features)
    delta = td_errors(rewards, here, there, not_terminal, gamma=DISCOUNT)
    held = td_errors(rewards, here, there.detach(), not_terminal, gamma=DISCOUNT)
    (semi,) = torch.autograd.grad(held.square().mean() / 2, weights, retain_graph=True)
    (full,) = torch.autograd.grad(delta.square().mean() / 2, weights)
    by_hand = -(delta.detach()[:, None] * features[0]).mean(0)
    return all_of(
        semi_gradient=close(semi, by_hand, atol=1e-14),
        full_gradient_differs=greater_equal((full - by_hand).abs().max(), 0.05),
    )


def sample_rollout(process: MarkovDecisionProcess, policy: Tensor, envs: int) -> Rollout:
    start = torch.zeros(process.num_states, dtype=torch.float64)
    start[0] = 1
    return rollout(process, policy, start, steps=60, n_envs=envs, generator=seeded_generator())


@claim("B18.5-1")
def lambda_trades_bias_for_variance() -> Evidence:
    """With an inexact critic the bias decreases to 0 as λ → 1 and the variance grows (Schulman et al. 2016)."""
    process = random_process(4, 3, seed=7)
    policy = process.uniform_policy()
    values = process.state_values(policy)
    wrong = torch.zeros_like(values)  # an untrained critic
    steps = sample_rollout(process, policy, 4_000)
    bias, variance, sampled = [], [], []
    for decay in (0.0, 0.5, 0.9, 1.0):
        expected = expected_advantages(process, policy, wrong, decay)
        bias.append((expected + wrong[:, None] - process.q_values(values)).abs().max())
        estimate = generalised_advantages(
            steps.rewards,
            wrong[steps.states],
            wrong[steps.next_states],
            steps.terminated,
            steps.truncated,
            gamma=DISCOUNT,
            gae_lambda=decay,
        )[0]
        variance.append(estimate.var())
        first = [estimate[steps.actions[0] == a].mean() - expected[0, a] for a in range(3)]
        sampled.append(torch.stack(first).abs().max())
    return all_of(
        bias_falls=less_equal(torch.stack(bias).diff(), 0.0),
        unbiased_at_lambda_one=close(bias[-1], 0.0, atol=1e-12),
        variance_grows=greater_equal(torch.stack(variance).diff(), 0.0),
        samples_match_the_expectation=less_equal(torch.stack(sampled), 0.25),
        unbiased_with_the_true_critic=close(
            expected_advantages(process, policy, values, 0.3), process.advantages(policy), atol=1e-12
        ),
    )


@erratum("B18.5-1", printed="δ = r + γ v(s′) − v(s) at every step", right="δ = r − v(s) where the episode ends")
def td_errors_must_mask_terminal_states() -> Correction:
    """A nonzero critic at a terminal state changes δ there, unless terminal states are masked (book sec. 18.5)."""
    process = cat_decision_process(0.9)
    policy = process.uniform_policy()
    values = process.state_values(policy)
    unmasked = values.clone()
    unmasked[-1] = 3.0  # never trained
    relaxed, stroke, asleep = STATES.index("relaxed"), ACTIONS.index("stroke"), STATES.index("sleeping")
    advantage = process.advantages(policy)[relaxed, stroke]
    reward, over = process.reward[relaxed, stroke, asleep], process.terminal[asleep]
    printed, right = (
        td_errors(reward, unmasked[relaxed], unmasked[asleep], end, gamma=0.9) for end in (torch.zeros_like(over), over)
    )
    return Correction(printed=close(printed, advantage, atol=1e-6), corrected=close(right, advantage, atol=1e-12))
