"""Claims about deep Q-learning (book sec. 18.3)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal
from parnassus.probability import seeded_generator, standard_normal
from parnassus.reinforcement.agents.dqn import q_loss, update_target
from parnassus.reinforcement.agents.q_learning_targets import double_q_targets, q_targets, values_of_actions
from parnassus.reinforcement.agents.q_network import DuelingQNetwork, QNetwork, dueling_q_values
from parnassus.reinforcement.experience.collector import Experience
from parnassus.reinforcement.experience.prioritised_replay import PrioritisedReplayBuffer
from parnassus.reinforcement.experience.replay_buffer import ReplaySample
from parnassus.reinforcement.experience.transitions import NStepTransitions, Transitions
from parnassus.reinforcement.fast.dqn_backward import q_loss_gradient

CHUNKS = (slice(0, 2), slice(2, 15), slice(15, 30))
"""Steps in each chunk of experience; the first chunk is shorter than n."""


def random_sample(features: Tensor, num_learners: int = 2, rows: int = 32, seed: int = 0) -> ReplaySample:
    """Random transitions between states with these features, with three actions, some terminal."""
    torch.manual_seed(seed)
    states, following = torch.randint(len(features), (2, num_learners, rows))
    transitions = Transitions(
        features[states],
        torch.randint(3, (num_learners, rows)),
        torch.randn(num_learners, rows, dtype=features.dtype),
        torch.full((num_learners, rows), 0.9, dtype=features.dtype),
        features[following],
        torch.rand(num_learners, rows) < 0.2,
    )
    return ReplaySample(transitions, None, states)


@claim("B18.3-3")
def the_gradient_of_the_loss_matches_the_formula() -> Evidence:
    """For plain and dueling networks the gradient of the loss is −E[(target − Q) ∇Q]."""
    batch = random_sample(standard_normal(9, 4, seed=1))
    transitions = batch.transitions
    gaps: list[Tensor] = []
    for network in (QNetwork, DuelingQNetwork):
        online, held = (network(4, 3, hidden=(8, 8), num_learners=2).double() for _ in range(2))
        parameters = list(online.parameters())
        targets = q_targets(
            transitions.rewards,
            held(transitions.next_observations),
            transitions.terminated,
            gamma=transitions.discounts,
        )
        loss = q_loss(online(transitions.observations), batch, targets)
        found = torch.autograd.grad(loss.total.sum(), parameters)
        formula = [torch.zeros_like(parameter) for parameter in parameters]
        for row in range(transitions.rewards.shape[1]):
            q = values_of_actions(
                online(transitions.observations[:, row : row + 1]), transitions.actions[:, row : row + 1]
            )
            for total, slope in zip(formula, torch.autograd.grad(q.sum(), parameters), strict=True):
                total.sub_(loss.errors[:, row].view(-1, 1, 1) * slope / transitions.rewards.shape[1])
        gaps.extend((a - b).abs().max() for a, b in zip(found, formula, strict=True))
    return close(torch.stack(gaps), 0.0, atol=1e-12)


@claim("B18.3-3")
def a_linear_network_with_one_hot_features_is_a_table() -> Evidence:
    """With one-hot features and no hidden layer a gradient step is the tabular update (book eq. 18.6)."""
    model = QNetwork(5, 3, hidden=(), num_learners=2).double()
    batch = random_sample(torch.eye(5).double(), rows=1)
    transitions, (weight, bias) = batch.transitions, model.parameters()
    table = (weight + bias).detach()
    targets = q_targets(transitions.rewards, model(transitions.next_observations), transitions.terminated, gamma=0.9)
    (slope,) = torch.autograd.grad(q_loss(model(transitions.observations), batch, targets).total.sum(), weight)
    updated = table.clone()
    for learner in range(2):
        s, a = int(transitions.observations[learner, 0].argmax()), int(transitions.actions[learner, 0])
        next_value = (
            0.0
            if transitions.terminated[learner, 0]
            else 0.9 * table[learner, transitions.next_observations[learner, 0].argmax()].max()
        )
        updated[learner, s, a] += 0.3 * (transitions.rewards[learner, 0] + next_value - table[learner, s, a])
    return close(table - 0.3 * slope, updated, atol=1e-14)


@claim("B18.3-3")
def double_q_targets_evaluate_the_online_choice() -> Evidence:
    """R + γ Q⁻(s′, a*) with a* the online network's best action; at most the target r + γ max Q⁻(s′, a)."""
    rewards, terminated = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([False, False, True])
    online = torch.tensor([[1.0, 5.0], [4.0, 2.0], [0.0, 1.0]])
    held = torch.tensor([[7.0, 3.0], [6.0, 8.0], [9.0, 9.0]])
    gamma = torch.tensor([0.5, 0.25, 0.9])
    double = double_q_targets(rewards, online, held, terminated, gamma=gamma)
    return all_of(
        double=close(double, torch.tensor([1 + 0.5 * 3, 2 + 0.25 * 6, 3.0])),
        single=close(q_targets(rewards, held, terminated, gamma=gamma), torch.tensor([1 + 0.5 * 7, 2 + 0.25 * 8, 3.0])),
    )


@claim("B18.3-3")
def the_gradient_of_the_huber_loss_is_clipped() -> Evidence:
    """∂L/∂Q(s, a) = −w clip(target − Q, −δ, δ)/rows for the action taken, else 0: as autograd finds it."""
    batch = random_sample(standard_normal(9, 4, seed=1))
    batch = batch._replace(weights=standard_normal(2, 32, seed=2).abs())
    q, targets = standard_normal(2, 32, 3, seed=3).requires_grad_(), 3 * standard_normal(2, 32, seed=4)
    loss = q_loss(q, batch, targets, huber_delta=0.7)
    (by_autograd,) = torch.autograd.grad(loss.total.sum(), q)
    gradient, errors = q_loss_gradient(q.detach(), batch, targets, huber_delta=0.7)
    taken = torch.nn.functional.one_hot(batch.transitions.actions, 3)
    by_hand = -taken * (batch.weights * errors.clamp(-0.7, 0.7) / 32)[..., None] if batch.weights is not None else taken
    return all_of(
        gradient=close(gradient, by_autograd, atol=1e-15),
        formula=close(gradient, by_hand, atol=1e-15),
        errors=close(errors, targets - (taken * q.detach()).sum(-1), atol=1e-15),
        clipped_and_unclipped=close(torch.unique(errors.abs() > 0.7), torch.tensor([0.0, 1.0])),
    )


@claim("B18.3-3")
def the_target_network_is_a_moving_average() -> Evidence:
    """θ⁻ ← θ⁻ + τ(θ − θ⁻) leaves (1 − τ)ᵏ of the initial difference after k updates; τ = 1 copies θ."""
    held, model = (QNetwork(4, 3, hidden=(5,)).double() for _ in range(2))
    (first, *_), (current, *_) = held.parameters(), model.parameters()
    initial = first.detach().clone()
    for _ in range(3):
        update_target(held, model, 0.2)
    averaged = first.detach().clone()
    update_target(held, model)
    return all_of(
        after_three=close(averaged, current + 0.8**3 * (initial - current), atol=1e-14),
        copy=close(first, current),
    )


@claim("B18.3-3")
def n_step_transitions_accumulate_rewards_up_to_the_end() -> Evidence:
    """r_t + γ r_{t+1} + … over min(n, steps to the end) rewards and the state after them, in chunks as at once."""
    steps, envs, n, gamma = 30, 3, 4, 0.9
    chance = seeded_generator()
    ends = torch.randint(8, (steps, 1, envs), generator=chance)
    numbers = torch.arange(steps * envs, dtype=torch.float64).view(steps, 1, envs, 1)
    rewards = torch.randn(steps, 1, envs, dtype=torch.float64, generator=chance)
    experience = Experience(numbers, torch.zeros_like(ends), rewards, ends == 0, ends == 1, numbers + 0.5)
    parts = [Experience(*(part[chosen] for part in vars(experience).values())) for chosen in CHUNKS]
    convert = NStepTransitions(n, gamma=gamma)
    chunks = [chunk for chunk in map(convert, parts) if chunk is not None]
    found = [torch.cat(columns, 1)[0] for columns in zip(*chunks, strict=True)]
    expected = []
    for t in range(steps - n + 1):
        for env in range(envs):
            total, discount, ended = 0.0, 1.0, False
            for k in range(t, t + n):
                if not ended:
                    total, discount = total + discount * float(rewards[k, 0, env]), discount * gamma
                    last, ended = k, int(ends[k, 0, env]) < 2
            expected.append((total, discount, float(numbers[last, 0, env, 0]) + 0.5, int(ends[last, 0, env]) == 0))
    sums, discounts, following, terminated = torch.tensor(expected, dtype=torch.float64).unbind(1)
    return all_of(
        rewards=close(found[2], sums, atol=1e-14),
        discounts=close(found[3], discounts, atol=1e-14),
        next_states=close(found[4][:, 0], following),
        terminated=close(found[5], terminated),
    )


@claim("B18.3-3")
def dueling_heads_are_identifiable() -> Evidence:
    """With centred advantages the mean of Q over the actions is V for every A."""
    torch.manual_seed(0)
    value, advantage = torch.randn(50, 1).double(), torch.randn(50, 4).double()
    q = dueling_q_values(value, advantage)
    return all_of(
        mean_over_actions=close(q.mean(1, keepdim=True), value, atol=1e-14),
        invariance_to_shifts=close(dueling_q_values(value, advantage + 3.0), q, atol=1e-14),
        differences=close(q.diff(dim=1), advantage.diff(dim=1), atol=1e-14),
    )


@claim("B18.3-3")
def importance_weights_correct_prioritised_sampling() -> Evidence:
    """With weights w = (N P)⁻¹ the mean over prioritised samples is an unbiased estimate of the buffer's mean."""
    buffer = PrioritisedReplayBuffer(2, capacity=64, alpha=1.0)
    batch = random_sample(torch.randn(9, 2, generator=torch.Generator().manual_seed(1)), num_learners=1, rows=64)
    buffer.add(batch.transitions)
    everything = ReplaySample(batch.transitions, None, torch.arange(64)[None])
    buffer.update_priorities(everything, batch.transitions.rewards + 0.1)  # priorities increase with the reward
    (drawn,) = buffer.sample(200_000, 1)
    rewards, mean = drawn.transitions.rewards.abs(), batch.transitions.rewards.abs().mean()
    weights = torch.ones_like(rewards) if drawn.weights is None else drawn.weights
    return all_of(
        weighted=close((weights * rewards).sum() / weights.sum(), mean, atol=0.02),
        unweighted=greater_equal(rewards.mean() - mean, 0.2),
    )
