"""Claims about learning action values by a network (book sec. 18.3)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, claim, close
from parnassus.reinforcement.dqn import q_loss
from parnassus.reinforcement.prioritised import PrioritisedReplay
from parnassus.reinforcement.q_network import DuelingQNetwork, QNetwork, dueling
from parnassus.reinforcement.replay import Remembered
from parnassus.reinforcement.targets import q_targets, taken
from parnassus.reinforcement.transitions import Transitions


def made_up(features: Tensor, learners: int = 2, rows: int = 32, seed: int = 0) -> Remembered:
    """Transitions between states with these features, three actions, some at an end."""
    torch.manual_seed(seed)
    states, following = torch.randint(len(features), (2, learners, rows))
    transitions = Transitions(
        features[states],
        torch.randint(3, (learners, rows)),
        torch.randn(learners, rows, dtype=features.dtype),
        torch.full((learners, rows), 0.9, dtype=features.dtype),
        features[following],
        torch.rand(learners, rows) < 0.2,
    )
    return Remembered(transitions, None, states)


@claim("B18.3-3")
def networks_descend_by_the_formula() -> Evidence:
    """For networks, plain and dueling, the gradient of the loss is −E[(target − Q) ∇Q], each row's ∇Q by itself."""
    batch = made_up(torch.randn(9, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64))
    seen = batch.transitions
    gaps: list[Tensor] = []
    for kind in (QNetwork, DuelingQNetwork):
        online, held = (kind(4, 3, hidden=(8, 8), learners=2).double() for _ in range(2))
        parameters = list(online.parameters())
        targets = q_targets(seen.rewards, held(seen.led_to), seen.terminated, discount=seen.discounts)
        loss = q_loss(online(seen.observations), batch, targets)
        found = torch.autograd.grad(loss.total.sum(), parameters)
        formula = [torch.zeros_like(parameter) for parameter in parameters]
        for row in range(seen.rewards.shape[1]):
            q = taken(online(seen.observations[:, row : row + 1]), seen.actions[:, row : row + 1])
            for total, slope in zip(formula, torch.autograd.grad(q.sum(), parameters), strict=True):
                total.sub_(loss.errors[:, row].view(-1, 1, 1) * slope / seen.rewards.shape[1])
        gaps.extend((a - b).abs().max() for a, b in zip(found, formula, strict=True))
    return close(torch.stack(gaps), 0.0, atol=1e-12)


@claim("B18.3-3")
def a_network_without_hidden_layers_is_a_table() -> Evidence:
    """With one-hot features and no hidden layer a step of descent is Q-learning's rule (book eq. 18.6)."""
    model = QNetwork(5, 3, hidden=(), learners=2).double()
    batch = made_up(torch.eye(5).double(), rows=1)
    seen, (weight, bias) = batch.transitions, model.parameters()
    table = (weight + bias).detach()
    ahead = q_targets(seen.rewards, model(seen.led_to), seen.terminated, discount=0.9)
    (slope,) = torch.autograd.grad(q_loss(model(seen.observations), batch, ahead).total.sum(), weight)
    ruled = table.clone()
    for learner in range(2):
        s, a = int(seen.observations[learner, 0].argmax()), int(seen.actions[learner, 0])
        to = 0.0 if seen.terminated[learner, 0] else 0.9 * table[learner, seen.led_to[learner, 0].argmax()].max()
        ruled[learner, s, a] += 0.3 * (seen.rewards[learner, 0] + to - table[learner, s, a])
    return close(table - 0.3 * slope, ruled, atol=1e-14)


@claim("B18.3-3")
def two_parts_of_a_dueling_network_are_told_apart() -> Evidence:
    """Less their mean, advantages leave the value alone: the mean of Q over the actions is V, whatever A is."""
    torch.manual_seed(0)
    value, advantage = torch.randn(50, 1).double(), torch.randn(50, 4).double()
    q = dueling(value, advantage)
    return all_of(
        the_mean_is_the_value=close(q.mean(1, keepdim=True), value, atol=1e-14),
        a_shift_of_all_is_not_seen=close(dueling(value, advantage + 3.0), q, atol=1e-14),
        differences_are_those_of_the_advantages=close(q.diff(dim=1), advantage.diff(dim=1), atol=1e-14),
    )


@claim("B18.3-3")
def weights_undo_what_priorities_prefer() -> Evidence:
    """Drawn by their errors, transitions count by w = (N P)⁻¹: so weighted, their mean is that of all."""
    memory = PrioritisedReplay(2, capacity=64, preference=1.0)
    batch = made_up(torch.randn(9, 2, generator=torch.Generator().manual_seed(1)), learners=1, rows=64)
    memory.add(batch.transitions)
    everything = Remembered(batch.transitions, None, torch.arange(64)[None])
    memory.learned(everything, batch.transitions.rewards + 0.1)  # the larger a reward, the more surprising
    (drawn,) = memory.draw(200_000, 1)
    rewards, mean = drawn.transitions.rewards.abs(), batch.transitions.rewards.abs().mean()
    weights = torch.ones_like(rewards) if drawn.weights is None else drawn.weights
    return all_of(
        weighted=close((weights * rewards).sum() / weights.sum(), mean, atol=0.02),
        unweighted=at_least(rewards.mean() - mean, 0.2),
    )
