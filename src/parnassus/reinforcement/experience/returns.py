"""Discounted returns of rollouts (book sec. 18.4)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.reinforcement.tabular.markov_reward_process import check_discount


def discounted_returns(
    rewards: Float[Tensor, "steps envs"],
    ended: Bool[Tensor, "steps envs"],
    *,
    gamma: float,
    last_values: Float[Tensor, " envs"] | None = None,
) -> Float[Tensor, "steps envs"]:
    """G_t = Σ_{k≥t} γ^{k−t} r_k up to the end, where r_k follows a_k (book sec. 18.4, corrected).

        G_t = r_t + γ G_{t+1},   G_{t+1} = 0 where the episode ended at step t

    `last_values` are the values of the states after the last step, 0 by default. The printed sum begins at r_{t+1} and
    so omits the reward of a_t itself.
    """
    check_discount(gamma)
    following = torch.zeros_like(rewards[0]) if last_values is None else last_values
    returns = torch.empty_like(rewards)
    for step in reversed(range(len(rewards))):
        following = rewards[step] + gamma * following.masked_fill(ended[step], 0)
        returns[step] = following
    return returns
