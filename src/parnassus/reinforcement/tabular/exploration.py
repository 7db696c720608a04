"""Exploration: ε-greedy policies on tables (book sec. 18.3)."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess


def epsilon_greedy_policy(
    q: Float[Tensor, "*batch actions"], epsilon: float, allowed: Bool[Tensor, "*batch actions"] | None = None
) -> Float[Tensor, "*batch actions"]:
    """Probabilities of the ε-greedy policy: greedy with probability 1 − ε, else a random action (book sec. 18.3).

        π(a|s) = ε/|A| + (1 − ε)/|A*| if a is among the greedy actions A*, else ε/|A|

    Tied greedy actions share their probability equally.
    """
    _check_probability(epsilon)
    candidates = torch.ones_like(q, dtype=torch.bool) if allowed is None else allowed
    if not bool(candidates.any(-1).all()):
        raise ValueError("every state needs at least one allowed action; got none")
    masked = q.masked_fill(~candidates, -torch.inf)
    greedy = (masked == masked.amax(-1, keepdim=True)) & candidates
    return epsilon * _uniform_over(candidates, q) + (1 - epsilon) * _uniform_over(greedy, q)


def add_exploration(process: MarkovDecisionProcess, epsilon: float) -> MarkovDecisionProcess:
    """The process in which any action is replaced by a uniformly random allowed one with probability ε.

        P_ε(s, a, s') = (1 − ε) P(s, a, s') + ε Σ_b P(s, b, s') / |A(s)|

    Its optimal policy is the best ε-greedy policy, which SARSA learns; Q-learning learns the optimal policy without
    exploration.
    """
    _check_probability(epsilon)
    uniform = process.uniform_policy()[..., None]

    def mix(table: Tensor) -> Tensor:
        return (1 - epsilon) * table + epsilon * (uniform * table).sum(1, keepdim=True)

    transition, weighted_reward = mix(process.transition), mix(process.transition * process.reward)
    smallest = torch.finfo(weighted_reward.dtype).tiny
    reward = torch.where(transition > 0, weighted_reward / transition.clamp(min=smallest), 0)
    return replace(process, transition=transition, reward=reward)


def _uniform_over(mask: Tensor, like: Tensor) -> Tensor:
    return mask.to(like) / mask.sum(-1, keepdim=True)


def _check_probability(epsilon: float) -> None:
    if not 0 <= epsilon <= 1:
        raise ValueError(f"epsilon must be in [0, 1]; got epsilon={epsilon}")
