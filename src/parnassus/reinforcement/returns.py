"""Discounted returns of whole rollouts, step by step from the end (book sec. 18.4)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.reinforcement.markov_reward import require_discount


def discounted_returns(
    rewards: Float[Tensor, "steps envs"],
    ended: Bool[Tensor, "steps envs"],
    *,
    discount: float,
    after: Float[Tensor, " envs"] | None = None,
) -> Float[Tensor, "steps envs"]:
    """G_t = Σ_{k≥t} γ^{k−t} r_k up to the end of the episode, where r_k follows a_k (book sec. 18.4, put right).

        G_t = r_t + γ G_{t+1},   G_{t+1} = 0 where the episode ended at step t

    `after` is what the states behind the last step are taken to be worth; without it nothing comes after the rollout.
    The printed sum begins at r_{t+1} and so leaves out what a_t itself earned.
    """
    require_discount(discount)
    following = torch.zeros_like(rewards[0]) if after is None else after
    returns = torch.empty_like(rewards)
    for step in reversed(range(len(rewards))):
        following = rewards[step] + discount * following.masked_fill(ended[step], 0)
        returns[step] = following
    return returns
