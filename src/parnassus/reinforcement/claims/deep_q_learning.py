"""Claims about deep Q-learning (book sec. 18.3)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal
from parnassus.probability import standard_normal
from parnassus.reinforcement.agents.dqn import q_loss
from parnassus.reinforcement.agents.q_learning_targets import q_targets, values_of_actions
from parnassus.reinforcement.agents.q_network import DuelingQNetwork, QNetwork, dueling_q_values
from parnassus.reinforcement.experience.prioritised_replay import PrioritisedReplayBuffer
from parnassus.reinforcement.experience.replay_buffer import ReplaySample
from parnassus.reinforcement.experience.transitions import Transitions


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
