"""Claims about the losses and steps of agents with networks: each is its formula (book secs. 18.4, 18.5).

Networks without hidden layers and with one-hot observations are tables, so that every number can be computed by hand.
"""

from math import exp, log

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.probability import seeded_generator, standard_normal
from parnassus.reinforcement.agents.a2c import a2c_loss
from parnassus.reinforcement.agents.actor_critic import ActorCritic
from parnassus.reinforcement.agents.actor_parameters import ActorParameters
from parnassus.reinforcement.agents.ppo import ppo_loss
from parnassus.reinforcement.agents.reinforce import (
    EpisodeBatch,
    collect_episodes,
    gradient_variance,
    reinforce_objective,
    reinforce_weights,
)
from parnassus.reinforcement.agents.trpo import trust_region_update
from parnassus.reinforcement.claims.random_processes import DISCOUNT, random_episodic_process
from parnassus.reinforcement.environments import CartPole, Discrete, TensorEnvironments
from parnassus.reinforcement.experience.rollout_batch import RolloutBatch
from parnassus.reinforcement.fast.ppo_backward import ppo_backward
from parnassus.reinforcement.tabular.policy_gradient import expected_return, softmax_policy
from parnassus.reinforcement.tabular.trajectories import TrajectoryDistribution, enumerate_trajectories

STATES, ACTIONS, LEARNERS = 4, 3, 2


def tabular_actor_critic(num_learners: int = LEARNERS, actions: int = ACTIONS, seed: int = 0) -> ActorCritic:
    """An actor and a critic without hidden layers, with random weights."""
    torch.manual_seed(seed)
    model = ActorCritic(STATES, Discrete(actions), hidden=(), num_learners=num_learners).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return model


def random_rollout(rows: int = 40) -> RolloutBatch:
    """Random one-hot states, actions, old log-probabilities, advantages and returns of each learner."""
    generator = seeded_generator()
    states = torch.randint(STATES, (LEARNERS, rows), generator=generator)
    old = standard_normal(LEARNERS, STATES, ACTIONS, seed=1).log_softmax(-1)
    actions = torch.randint(ACTIONS, (LEARNERS, rows), generator=generator)
    log_probs = torch.stack([old[learner, states[learner], actions[learner]] for learner in range(LEARNERS)])
    advantages, returns = 2 * standard_normal(2, LEARNERS, rows, seed=2) + 0.5
    return RolloutBatch(torch.eye(STATES).double()[states], actions, log_probs, advantages, returns)


def policy_and_values(model: ActorCritic, learner: int) -> tuple[list[list[float]], list[float]]:
    """Log π(a|s) and v(s) of a learner, as a table, from the weights alone."""
    logits = (model.actor_head.weight + model.actor_head.bias)[learner].tolist()
    log_sums = [log(sum(exp(each) for each in row)) for row in logits]
    values = (model.critic_head.weight + model.critic_head.bias)[learner, :, 0].tolist()
    return [[each - total for each in row] for row, total in zip(logits, log_sums, strict=True)], values


def rows_of(batch: RolloutBatch, learner: int) -> list[tuple[int, int, float, float, float]]:
    """State, action, old log-probability, advantage and return of every row of a learner."""
    columns = (batch.observations.argmax(-1), batch.actions, batch.log_probs, batch.advantages, batch.returns)
    return list(zip(*(column[learner].tolist() for column in columns), strict=True))


@claim("B18.5-1")
def the_loss_of_a2c_is_its_formula() -> Evidence:
    """−E[Â log π] + c_v E(v − R)² − c_H E H(π), computed row by row from the weights (book eqs. 18.11-18.12)."""
    model, batch = tabular_actor_critic(), random_rollout()
    expected: list[float] = []
    for learner in range(LEARNERS):
        log_policy, values = policy_and_values(model, learner)
        total = 0.0
        for state, action, _, advantage, target in rows_of(batch, learner):
            entropy = -sum(exp(each) * each for each in log_policy[state])
            total += 0.7 * (values[state] - target) ** 2 - advantage * log_policy[state][action] - 0.3 * entropy
        expected.append(total / batch.returns.shape[1])
    return close(
        a2c_loss(model, batch, vf_coef=0.7, ent_coef=0.3), torch.tensor(expected, dtype=torch.float64), rtol=1e-12
    )


@claim("B18.5-3")
def the_loss_of_ppo_is_its_formula() -> Evidence:
    """−E min(ρÂ, clip(ρ, 1 − ε, 1 + ε)Â) + c_v E(v − R)² − c_H E H(π), row by row, with Â standardised.

    The hand-written gradient is that of autograd, with ratios on all sides of the clip range (book sec. 18.5).
    """
    model, batch = tabular_actor_critic(), random_rollout()
    expected, sides = [], set()
    for learner in range(LEARNERS):
        log_policy, values = policy_and_values(model, learner)
        rows = rows_of(batch, learner)
        mean = sum(row[3] for row in rows) / len(rows)
        deviation = (sum((row[3] - mean) ** 2 for row in rows) / (len(rows) - 1)) ** 0.5
        total = 0.0
        for state, action, old, advantage, target in rows:
            ratio, standardised = exp(log_policy[state][action] - old), (advantage - mean) / deviation
            clipped = min(max(ratio, 1 - 0.13), 1 + 0.13)
            entropy = -sum(exp(each) * each for each in log_policy[state])
            surrogate = min(ratio * standardised, clipped * standardised)
            total += 0.7 * (values[state] - target) ** 2 - surrogate - 0.3 * entropy
            sides.add((ratio < 1 - 0.13, ratio > 1 + 0.13, standardised > 0))
        expected.append(total / len(rows))
    loss = ppo_loss(model, batch, clip_range=0.13, vf_coef=0.7, ent_coef=0.3)
    by_autograd = torch.autograd.grad(loss.sum(), list(model.parameters()))
    ppo_backward(model, batch, clip_range=0.13, vf_coef=0.7, ent_coef=0.3)
    written = [parameter.grad for parameter in model.parameters()]
    return all_of(
        loss=close(loss, torch.tensor(expected, dtype=torch.float64), rtol=1e-7),
        gradient=close(_join(*(part for part in written if part is not None)), _join(*by_autograd), atol=1e-12),
        cases=close(float(len(sides)), 6.0),  # below, inside and above the clip range, with advantages of both signs
    )


@claim("B18.5-2")
def a_trust_region_update_is_a_natural_gradient_step() -> Evidence:
    """θ' = θ + 0.8ʲ √(2δ/xᵀ(F + c)x) x with x = (F + c)⁻¹∇L and F = E[Jᵀ(diag π − ππᵀ)J]; KL ≤ δ (book sec. 18.5)."""
    model, batch, target_kl, damping = tabular_actor_critic(), random_rollout(), 0.3, 0.05
    batch = batch._replace(log_probs=model.distribution(batch.observations).log_prob(batch.actions).detach())
    actor = ActorParameters(model)
    before, tables = actor.read(), [policy_and_values(model, learner)[0] for learner in range(LEARNERS)]
    found = trust_region_update(model, batch, target_kl=target_kl, cg_damping=damping, cg_max_steps=60)
    expected, kl, gain = [], [], []
    for learner in range(LEARNERS):
        rows = rows_of(batch, learner)
        advantages = torch.tensor([row[3] for row in rows], dtype=torch.float64)
        advantages = (advantages - advantages.mean()) / advantages.std()
        policy = torch.tensor(tables[learner], dtype=torch.float64).exp()
        gradient, fisher = torch.zeros(15).double(), damping * torch.eye(15).double()
        for (state, action, *_), advantage in zip(rows, advantages, strict=True):
            jacobian = torch.zeros(ACTIONS, STATES + 1, ACTIONS, dtype=torch.float64)  # of the logits: weights, biases
            jacobian[range(ACTIONS), state, range(ACTIONS)] = jacobian[range(ACTIONS), STATES, range(ACTIONS)] = 1
            logits, probabilities = jacobian.view(ACTIONS, -1), policy[state]
            gradient += advantage * (logits[action] - probabilities @ logits) / len(rows)
            covariance = probabilities.diag() - probabilities.outer(probabilities)
            fisher += logits.mT @ covariance @ logits / len(rows)
        direction = torch.linalg.solve(fisher, gradient)
        length = (2 * target_kl / (direction @ fisher @ direction)).sqrt()
        expected.append(before[learner] + 0.8 ** int(found.backtracks[learner]) * length * direction)
        after = torch.tensor(policy_and_values(model, learner)[0], dtype=torch.float64)
        states, actions = (torch.tensor([row[column] for row in rows]) for column in (0, 1))
        kl.append((policy * (policy.log() - after)).sum(1)[states].mean())
        gain.append(((after - policy.log())[states, actions].exp() * advantages).mean())
    return all_of(
        weights=close(actor.read(), torch.stack(expected), atol=1e-6),
        kl=close(found.kl, torch.stack(kl), atol=1e-9),
        constraint=less_equal(found.kl, target_kl),
        most_of_the_trust_region_is_used=greater_equal(found.kl, target_kl / 3),
        gain=close(found.gain, torch.stack(gain), atol=1e-7),
        improvement=greater_equal(found.gain, 0.1),
    )


def enumerated_episodes() -> tuple[TrajectoryDistribution, EpisodeBatch, Tensor, Tensor]:
    """All paths of an episodic process as episodes of one learner; the start distribution, and −1 … as the baseline."""
    process, start = random_episodic_process(ACTIONS), torch.eye(STATES).double()[0]
    paths = enumerate_trajectories(process, start, 3)
    episodes = EpisodeBatch(
        torch.eye(STATES).double()[paths.states[:, :-1].T][:, None],
        paths.actions.T[:, None],
        paths.rewards.T[:, None],
        paths.active.T[:, None],
    )
    return paths, episodes, start, torch.tensor([-1.0, 0.5, 2.0, 0.0]).double()[paths.states[:, :-1].T][:, None]


@claim("B18.4-1", "B18.4-2")
def the_objective_of_reinforce_has_the_gradient_of_the_return() -> Evidence:
    """Over all paths E[∇Σ_t γ^t (G_t − b(s_t)) log π] is ∇J, for a network as for a table (book eqs. 18.9-18.10)."""
    process, model = random_episodic_process(ACTIONS), tabular_actor_critic(num_learners=1)
    paths, episodes, start, baseline = enumerated_episodes()
    logits = (model.actor_head.weight + model.actor_head.bias)[0].detach().requires_grad_()
    policy = softmax_policy(logits, process.allowed)
    (gradient,) = torch.autograd.grad(expected_return(process, policy, start), logits)
    actor, probabilities = ActorParameters(model), paths.probabilities(policy).detach()
    exact = torch.cat([gradient.flatten(), gradient.sum(0)])  # weights, then biases
    found = []
    for reference in (0.0, baseline):
        weights = reinforce_weights(episodes, reference, gamma=DISCOUNT)
        found.append(actor.gradient((probabilities * reinforce_objective(model, episodes, weights)[0]).sum())[0])
    return all_of(
        without_baseline=close(found[0], exact, atol=1e-12),
        with_baseline=close(found[1], exact, atol=1e-12),
        returns=close(probabilities @ episodes.total_rewards[0], _undiscounted_return(policy, start), atol=1e-12),
    )


@claim("B18.4-2")
def the_variance_of_a_gradient_is_that_of_its_episodes() -> Evidence:
    """E‖g − E g‖² from one gradient per episode, each by a backward pass of its own (book sec. 18.4)."""
    model, (_, episodes, _, baseline) = tabular_actor_critic(num_learners=1), enumerated_episodes()
    episodes = EpisodeBatch(*(part[:, :, ::5] for part in vars(episodes).values()))
    weights = reinforce_weights(episodes, baseline[:, :, ::5], gamma=DISCOUNT)
    actor, gradients = ActorParameters(model), []
    for env in range(weights.shape[2]):
        log_probs = model.distribution(episodes.observations[:, 0, env][None]).log_prob(
            episodes.actions[:, 0, env][None]
        )
        gradients.append(actor.gradient((weights[:, 0, env] * log_probs[0]).sum())[0])
    each = torch.stack(gradients)
    total = (each - each.mean(0)).square().sum() / (len(each) - 1)
    return close(gradient_variance(model, episodes, weights), total, rtol=1e-10)


@claim("B18.4-1")
def collected_episodes_are_complete() -> Evidence:
    """Each episode ends at its first failure of the pole or the cart, and every step until then is active."""
    torch.manual_seed(0)
    environments = TensorEnvironments(CartPole(), 12)
    episodes = collect_episodes(environments, lambda x: torch.randint(2, x.shape[:2]), num_learners=3)
    position, angle = episodes.observations[..., 0].abs(), episodes.observations[..., 2].abs()
    inside = (position <= 2.4) & (angle <= 12 * torch.pi / 180)
    lengths = episodes.active.sum(0)
    last = episodes.observations.gather(0, (lengths - 1)[None, ..., None].expand(-1, -1, -1, 4))[0]
    next_angle = (last[..., 2] + 0.02 * last[..., 3]).abs()  # Euler's method, as in the environment
    return all_of(
        active_states_are_inside=close(inside[episodes.active].double(), 1.0),
        active_until_the_end=less_equal(episodes.active.long().diff(dim=0).double(), 0.0),
        the_next_state_is_outside=greater_equal(next_angle, 12 * torch.pi / 180),
        rewards=close(episodes.total_rewards, lengths),
        longest=close(float(len(episodes.rewards)), lengths.max()),
    )


def _undiscounted_return(policy: Tensor, start: Tensor) -> Tensor:
    return expected_return(random_episodic_process(ACTIONS).with_discount(1.0), policy, start).detach()


def _join(*parts: Tensor) -> Tensor:
    return torch.cat([part.flatten() for part in parts])
