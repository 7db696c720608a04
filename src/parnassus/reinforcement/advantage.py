"""Temporal-difference errors and the advantages made of them (book sec. 18.5; Schulman et al. 2016)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.reinforcement.markov_reward import require_discount


def td_errors(
    rewards: Float[Tensor, "*shape"],
    values: Float[Tensor, "*shape"],
    next_values: Float[Tensor, "*shape"],
    terminated: Bool[Tensor, "*shape"],
    *,
    discount: float,
) -> Float[Tensor, "*shape"]:
    """δ = r + γ v(s') − v(s), and r − v(s) where the episode came to its end (book sec. 18.5).

    With v = V^π its mean given s and a is the advantage A(s, a). The book's has no end: it would count v(s') there.
    """
    return rewards + discount * next_values.masked_fill(terminated, 0) - values


def generalised_advantages(
    rewards: Float[Tensor, "steps envs"],
    values: Float[Tensor, "steps envs"],
    next_values: Float[Tensor, "steps envs"],
    terminated: Bool[Tensor, "steps envs"],
    truncated: Bool[Tensor, "steps envs"],
    *,
    discount: float,
    decay: float,
) -> Float[Tensor, "steps envs"]:
    """Â_t = Σ_l (γλ)^l δ_{t+l} within the episode (Schulman et al. 2016).

        Â_t = δ_t + γλ Â_{t+1},   Â_{t+1} = 0 where the episode ended at step t, either way

    `next_values` are those of the states that the steps led to, before any reset. At an end that the task sets
    (`terminated`) they do not count; where an episode was only cut short (`truncated`) they do. λ = 0 is δ alone:
    little noise, all the critic's bias; λ = 1 is the return less v: no bias, all the noise.
    """
    require_discount(discount)
    if not 0 <= decay <= 1:
        raise ValueError(f"the decay must satisfy 0 ≤ λ ≤ 1; got decay={decay}")
    errors = td_errors(rewards, values, next_values, terminated, discount=discount)
    onward = discount * decay * (~(terminated | truncated)).to(errors)
    advantages = torch.empty_like(errors)
    following = torch.zeros_like(errors[0])
    for step in reversed(range(len(errors))):
        following = torch.addcmul(errors[step], onward[step], following)
        advantages[step] = following
    return advantages
