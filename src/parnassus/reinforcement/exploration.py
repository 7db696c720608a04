"""Exploring and exploiting: which action to try when values are still guesses (book sec. 18.3)."""

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.reinforcement.decision import MarkovDecisionProcess


def epsilon_greedy(
    q: Float[Tensor, "*batch actions"], epsilon: float, allowed: Bool[Tensor, "*batch actions"] | None = None
) -> Float[Tensor, "*batch actions"]:
    """The law of the action: the best one with 1 − ε, any of the allowed ones alike with ε (book sec. 18.3).

        π(a|s) = ε/|A| + (1 − ε)/|A*| if a is among the best actions A*, else ε/|A|

    Equals share the greedy part: the first of them has no right to it.
    """
    if not 0 <= epsilon <= 1:
        raise ValueError(f"ε is a probability; got epsilon={epsilon}")
    among = torch.ones_like(q, dtype=torch.bool) if allowed is None else allowed
    if not bool(among.any(-1).all()):
        raise ValueError("a state needs at least one allowed action; got none")
    known = q.masked_fill(~among, -torch.inf)
    best = (known == known.amax(-1, keepdim=True)) & among
    return epsilon * _alike(among, q) + (1 - epsilon) * _alike(best, q)


def trembling(process: MarkovDecisionProcess, epsilon: float) -> MarkovDecisionProcess:
    """The process as an agent meets it that takes any allowed action instead of its own with probability ε.

        P_ε(s, a, s') = (1 − ε) P(s, a, s') + ε Σ_b P(s, b, s') / |A(s)|

    The best policy here is the best among those that explore: what SARSA learns, where Q-learning learns what would be
    best without exploring.
    """
    if not 0 <= epsilon <= 1:
        raise ValueError(f"ε is a probability; got epsilon={epsilon}")
    anyhow = process.uniform_policy()[..., None]

    def mixed(table: Tensor) -> Tensor:
        return (1 - epsilon) * table + epsilon * (anyhow * table).sum(1, keepdim=True)

    transition, paid = mixed(process.transition), mixed(process.transition * process.reward)
    reward = torch.where(transition > 0, paid / transition.clamp(min=torch.finfo(paid.dtype).tiny), 0)
    return replace(process, transition=transition, reward=reward)


def _alike(among: Tensor, like: Tensor) -> Tensor:
    return among.to(like) / among.sum(-1, keepdim=True)
