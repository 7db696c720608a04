"""Claims about gradients of policies: REINFORCE, baselines, actor and critic (book secs. 18.4, 18.5)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.reinforcement.advantage import generalised_advantages, td_errors
from parnassus.reinforcement.cat import ACTIONS, MOODS, cat_decisions
from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.expected_advantage import expected_advantages
from parnassus.reinforcement.policy_gradient import (
    expected_return,
    mean_and_variance,
    policy_gradient,
    quietest_baseline,
    reinforce,
    return_weights,
    softmax_policy,
)
from parnassus.reinforcement.rollout import Rollout, rollout
from parnassus.reinforcement.trajectories import Trajectories, trajectories

DISCOUNT, HORIZON = 0.9, 3


def source(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_process(states: int = 2, actions: int = 2, seed: int = 0) -> MarkovDecisionProcess:
    """Transitions and rewards by chance, no end."""
    chance = source(seed)
    transition = torch.rand(states, actions, states, generator=chance, dtype=torch.float64)
    return MarkovDecisionProcess(
        transition / transition.sum(-1, keepdim=True),
        torch.randn(states, actions, states, generator=chance, dtype=torch.float64),
        DISCOUNT,
        torch.zeros(states, dtype=torch.bool),
        torch.ones(states, actions, dtype=torch.bool),
    )


def small_problem() -> tuple[Trajectories, Tensor, Tensor, Tensor]:
    """All paths of three steps with two states and two actions; logits, policy and the gradient of J by differences."""
    process, start = random_process(), torch.tensor([0.7, 0.3], dtype=torch.float64)
    paths = trajectories(process, start, HORIZON)
    logits = torch.randn(2, 2, generator=source(1), dtype=torch.float64)
    gradient, small = torch.zeros_like(logits), 1e-5
    for entry in range(4):
        shift = small * torch.eye(4, dtype=torch.float64)[entry].view(2, 2)
        above, below = (_return(paths, process, logits + sign * shift) for sign in (1, -1))
        gradient.view(-1)[entry] = (above - below) / (2 * small)
    return paths, logits, softmax_policy(logits, process.allowed), gradient


def _return(paths: Trajectories, process: MarkovDecisionProcess, logits: Tensor) -> Tensor:
    return paths.probabilities(softmax_policy(logits, process.allowed)) @ paths.returns(DISCOUNT)[:, 0]


def powers(paths: Trajectories) -> Tensor:
    return DISCOUNT ** torch.arange(paths.actions.shape[1], dtype=torch.float64)


@claim("B18.4-1")
def reinforce_is_the_gradient_on_average() -> Evidence:
    """Over all 128 paths of a small process the mean of Σ_t γ^t G_t ∇log π is ∇J (book eqs. 18.9-18.10)."""
    paths, logits, policy, gradient = small_problem()
    probabilities = paths.probabilities(policy)
    mean, _ = mean_and_variance(probabilities, reinforce(paths, policy, return_weights(paths, DISCOUNT)))
    free = logits.clone().requires_grad_()
    (by_autograd,) = torch.autograd.grad(_return(paths, random_process(), free), free)
    regrouped = powers(paths) * paths.rewards  # Σ_t Σ_{k≥t} γ^k r_k ∇log π(a_t|s_t)
    again, _ = mean_and_variance(probabilities, reinforce(paths, policy, regrouped.flip(1).cumsum(1).flip(1)))
    return all_of(
        all_paths=close(probabilities.sum(), 1.0, atol=1e-14),
        differences=close(mean, gradient, atol=1e-9),
        autograd=close(mean, by_autograd, atol=1e-14),
        regrouped=close(again, mean, atol=1e-14),
    )


@claim("B18.4-1")
def the_theorem_is_exact_without_an_end() -> Evidence:
    """∂J/∂θ(s, a) = d(s) π(a|s) A(s, a) equals the derivative through Bellman's equations (book eq. 18.9)."""
    gaps = []
    for process in (random_process(6, 4, seed=3), cat_decisions(0.9)):
        logits = torch.randn(process.states, process.actions, generator=source(4), dtype=torch.float64).requires_grad_()
        start = process.uniform_policy().new_full((process.states,), 1 / process.states)
        policy = softmax_policy(logits, process.allowed)
        (by_autograd,) = torch.autograd.grad(expected_return(process, policy, start), logits)
        gaps.append((policy_gradient(process, policy.detach(), start) - by_autograd).abs().max())
    return close(torch.stack(gaps), 0.0, atol=1e-12)


@claim("B18.4-1")
def ascent_teaches_the_owner_to_talk() -> Evidence:
    """Gradient ascent on J raises the return at every step and ends at the best policy (book eq. 18.10)."""
    process, relaxed, talk = cat_decisions(0.9), MOODS.index("relaxed"), ACTIONS.index("talk")
    start = torch.tensor([0.0, 1, 0, 0, 0, 0], dtype=torch.float64)
    logits, returns = torch.zeros(6, 3, dtype=torch.float64), []
    for _ in range(60):
        policy = softmax_policy(logits, process.allowed)
        returns.append(expected_return(process, policy, start))
        logits = logits + policy_gradient(process, policy, start)
    return all_of(
        rises=at_least(torch.stack(returns).diff(), 0.0),
        talks=at_least(softmax_policy(logits, process.allowed)[relaxed, talk], 0.97),
    )


@erratum("B18.4-1", printed="G_t = Σ_{k>t} γ^{k−t−1} r_k with r_t after a_t", right="G_t = Σ_{k≥t} γ^{k−t} r_k")
def the_printed_return_leaves_out_what_the_action_earned() -> Correction:
    """With s_0, a_0, r_0, s_1, … the return must begin at r_t; from r_{t+1} on the gradient is another."""
    paths, _, policy, gradient = small_problem()
    probabilities = paths.probabilities(policy)
    later = torch.cat([paths.returns(DISCOUNT)[:, 1:], torch.zeros(len(paths.rewards), 1).double()], 1)
    printed, _ = mean_and_variance(probabilities, reinforce(paths, policy, powers(paths) * later))
    right, _ = mean_and_variance(probabilities, reinforce(paths, policy, return_weights(paths, DISCOUNT)))
    return Correction(printed=close(printed, gradient, atol=1e-2), corrected=close(right, gradient, atol=1e-9))


@erratum("B18.4-1", printed="∇J = E[γ^t G_t ∇log π(a_t|s_t)]", right="∇J = E[Σ_t γ^t G_t ∇log π(a_t|s_t)]")
def the_printed_theorem_has_no_sum_over_time() -> Correction:
    """No single t gives the gradient: the sum over t belongs inside the mean (book eq. 18.9)."""
    paths, _, policy, gradient = small_problem()
    probabilities, weights = paths.probabilities(policy), return_weights(paths, DISCOUNT)
    alone = [
        mean_and_variance(probabilities, reinforce(paths, policy, weights * torch.eye(HORIZON).double()[t]))[0]
        for t in range(HORIZON)
    ]
    nearest = min(alone, key=lambda part: float((part - gradient).abs().max()))
    return Correction(
        printed=close(nearest, gradient, atol=1e-2), corrected=close(torch.stack(alone).sum(0), gradient, atol=1e-9)
    )


@claim("B18.4-2")
def a_baseline_leaves_the_mean_and_cuts_the_variance() -> Evidence:
    """Any b(s) has bias 0; the mean return and the best b vary less; both by enumeration (book sec. 18.4)."""
    paths, _, policy, gradient = small_problem()
    probabilities, before = paths.probabilities(policy), paths.states[:, :-1]
    best = quietest_baseline(paths, policy, DISCOUNT)
    value = random_process().values_of(policy) * (1 - DISCOUNT**HORIZON)
    baselines: dict[str, Tensor | float] = {
        "none": 0.0,
        "value": value[before],
        "best": best[before],
        "wild": torch.tensor([5.0, -7.0])[before],
    }
    moments = {
        name: mean_and_variance(probabilities, reinforce(paths, policy, return_weights(paths, DISCOUNT, baseline)))
        for name, baseline in baselines.items()
    }
    nudged = [
        mean_and_variance(probabilities, reinforce(paths, policy, return_weights(paths, DISCOUNT, (best + e)[before])))[
            1
        ]
        for e in torch.tensor([[0.1, 0], [-0.1, 0], [0, 0.1], [0, -0.1]], dtype=torch.float64)
    ]
    return all_of(
        bias=close(torch.stack([mean for mean, _ in moments.values()]), gradient, atol=1e-8),
        value_is_quieter=at_most(moments["value"][1] / moments["none"][1], 0.95),
        best_is_quieter_still=at_most(moments["best"][1], moments["value"][1]),
        none_near_it_is_better=at_least(torch.stack(nudged), moments["best"][1]),
        a_wild_one_is_loud=at_least(moments["wild"][1] / moments["none"][1], 5.0),
    )


@claim("B18.4-2")
def a_baseline_that_knows_the_action_biases() -> Evidence:
    """With b(s, a) = Q(s, a) nothing is left of the gradient: the mean moves (book sec. 18.4)."""
    paths, _, policy, gradient = small_problem()
    probabilities, weights = paths.probabilities(policy), return_weights(paths, DISCOUNT)
    told = (weights * probabilities[:, None]).new_zeros(weights.shape)
    key = torch.stack([paths.states[:, :-1], paths.actions], -1)
    for t in range(HORIZON):  # E[γ^t G_t | s_t, a_t], exactly
        for s in range(2):
            for a in range(2):
                here = (key[:, t] == torch.tensor([s, a])).all(-1)
                told[here, t] = (probabilities[here] @ weights[here, t]) / probabilities[here].sum()
    mean, _ = mean_and_variance(probabilities, reinforce(paths, policy, weights - told))
    return all_of(
        nothing_is_left=close(mean, 0.0, atol=1e-12), there_was_something=at_least(gradient.abs().max(), 0.05)
    )


@claim("B18.5-1")
def the_critics_error_is_the_advantage_on_average() -> Evidence:
    """With v = V^π, E[δ | s, a] = A(s, a); and E[Σ_t γ^t δ_t ∇log π] = ∇J (book eqs. 18.11-18.12)."""
    process = random_process(4, 3, seed=5)
    policy = softmax_policy(torch.randn(4, 3, generator=source(6), dtype=torch.float64), process.allowed)
    values = process.values_of(policy)
    shape = process.transition.shape
    errors = td_errors(
        process.reward,
        values[:, None, None].expand(shape),
        values.expand(shape),
        torch.zeros(shape, dtype=torch.bool),
        discount=DISCOUNT,
    )
    mean = (process.transition * errors).sum(-1)
    start = torch.full((4,), 0.25, dtype=torch.float64)
    actor = process.occupancy(policy, start)[:, None] * policy * (mean - (policy * mean).sum(-1, keepdim=True))
    return all_of(
        advantage=close(mean, process.advantages_of(policy), atol=1e-12),
        actor=close(actor, policy_gradient(process, policy, start), atol=1e-12),
    )


@claim("B18.5-1")
def the_critics_gradient_holds_its_target() -> Evidence:
    """Autograd of ½δ² with the target detached is −δ ∇v(s); with the target let go it is another (book eq. 18.12)."""
    features = torch.randn(2, 32, 5, generator=source(), dtype=torch.float64)
    weights = torch.randn(5, generator=source(1), dtype=torch.float64).requires_grad_()
    rewards, going_on = torch.randn(32, generator=source(2), dtype=torch.float64), torch.zeros(32, dtype=torch.bool)
    here, there = (each @ weights for each in features)
    delta = td_errors(rewards, here, there, going_on, discount=DISCOUNT)
    held = td_errors(rewards, here, there.detach(), going_on, discount=DISCOUNT)
    (semi,) = torch.autograd.grad(held.square().mean() / 2, weights, retain_graph=True)
    (full,) = torch.autograd.grad(delta.square().mean() / 2, weights)
    by_hand = -(delta.detach()[:, None] * features[0]).mean(0)
    return all_of(held=close(semi, by_hand, atol=1e-14), let_go_differs=at_least((full - by_hand).abs().max(), 0.05))


def walked(process: MarkovDecisionProcess, policy: Tensor, envs: int) -> Rollout:
    start = torch.zeros(process.states, dtype=torch.float64)
    start[0] = 1
    return rollout(process, policy, start, steps=60, envs=envs, generator=source())


@claim("B18.5-1")
def lambda_trades_bias_for_noise() -> Evidence:
    """With a wrong critic the bias of Σ (γλ)^l δ falls to 0 as λ → 1, and its noise grows (Schulman et al. 2016)."""
    process = random_process(4, 3, seed=7)
    policy = process.uniform_policy()
    values = process.values_of(policy)
    wrong = torch.zeros_like(values)  # it has learned nothing yet
    seen = walked(process, policy, 4_000)
    bias, noise, sampled = [], [], []
    for decay in (0.0, 0.5, 0.9, 1.0):
        expected = expected_advantages(process, policy, wrong, decay)
        bias.append((expected + wrong[:, None] - process.q_values(values)).abs().max())
        estimate = generalised_advantages(
            seen.rewards,
            wrong[seen.states],
            wrong[seen.following],
            seen.terminated,
            seen.truncated,
            discount=DISCOUNT,
            decay=decay,
        )[0]
        noise.append(estimate.var())
        first = [estimate[seen.actions[0] == a].mean() - expected[0, a] for a in range(3)]
        sampled.append(torch.stack(first).abs().max())
    return all_of(
        bias_falls=at_most(torch.stack(bias).diff(), 0.0),
        none_is_left=close(bias[-1], 0.0, atol=1e-12),
        noise_grows=at_least(torch.stack(noise).diff(), 0.0),
        samples_meet_the_mean=at_most(torch.stack(sampled), 0.25),
        none_with_the_right_critic=close(
            expected_advantages(process, policy, values, 0.3), process.advantages_of(policy), atol=1e-12
        ),
    )


@erratum("B18.5-1", printed="δ = r + γ v(s′) − v(s) at every step", right="δ = r − v(s) where the episode ends")
def an_error_at_the_end_counts_nothing_after_it() -> Correction:
    """A critic that says anything of a terminal state moves δ there, unless the end is marked (book sec. 18.5)."""
    process = cat_decisions(0.9)
    policy = process.uniform_policy()
    values = process.values_of(policy)
    careless = values.clone()
    careless[-1] = 3.0  # nothing ever trains this entry
    relaxed, stroke, asleep = MOODS.index("relaxed"), ACTIONS.index("stroke"), MOODS.index("sleeping")
    advantage = process.advantages_of(policy)[relaxed, stroke]
    reward, over = process.reward[relaxed, stroke, asleep], process.terminal[asleep]
    printed, right = (
        td_errors(reward, careless[relaxed], careless[asleep], end, discount=0.9)
        for end in (torch.zeros_like(over), over)
    )
    return Correction(printed=close(printed, advantage, atol=1e-6), corrected=close(right, advantage, atol=1e-12))
