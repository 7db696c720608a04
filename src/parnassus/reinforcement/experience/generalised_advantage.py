"""TD errors and generalised advantage estimation (book sec. 18.5; Schulman et al. 2016)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.reinforcement.tabular.markov_reward_process import check_discount


def td_errors(
    rewards: Float[Tensor, "*shape"],
    values: Float[Tensor, "*shape"],
    next_values: Float[Tensor, "*shape"],
    terminated: Bool[Tensor, "*shape"],
    *,
    gamma: float,
) -> Float[Tensor, "*shape"]:
    """δ = r + γ v(s') − v(s), and r − v(s) where the episode terminated (book sec. 18.5).

    With v = V^π its mean given s and a is the advantage A(s, a). The book omits the terminal case and adds v(s').
    """
    return rewards + gamma * next_values.masked_fill(terminated, 0) - values


def generalised_advantages(
    rewards: Float[Tensor, "steps envs"],
    values: Float[Tensor, "steps envs"],
    next_values: Float[Tensor, "steps envs"],
    terminated: Bool[Tensor, "steps envs"],
    truncated: Bool[Tensor, "steps envs"],
    *,
    gamma: float,
    gae_lambda: float,
) -> Float[Tensor, "steps envs"]:
    """Â_t = Σ_l (γλ)^l δ_{t+l} within the episode (Schulman et al. 2016).

        Â_t = δ_t + γλ Â_{t+1},   Â_{t+1} = 0 where the episode terminated or was truncated at step t

    `next_values` are those of the states that the steps led to, before any reset. They are ignored where an episode
    `terminated` and used where it was `truncated` by a time limit. λ = 0 gives δ alone: low variance, the critic's full
    bias; λ = 1 gives the return minus v: no bias, high variance.
    """
    check_discount(gamma)
    check_lambda(gae_lambda)
    errors = td_errors(rewards, values, next_values, terminated, gamma=gamma)
    decay = gamma * gae_lambda * (~(terminated | truncated)).to(errors)
    advantages = torch.empty_like(errors)
    following = torch.zeros_like(errors[0])
    for step in reversed(range(len(errors))):
        following = torch.addcmul(errors[step], decay[step], following)
        advantages[step] = following
    return advantages


def check_lambda(gae_lambda: float) -> None:
    """Raise a ValueError unless 0 ≤ λ ≤ 1."""
    if not 0 <= gae_lambda <= 1:
        raise ValueError(f"λ must satisfy 0 ≤ λ ≤ 1; got {gae_lambda}")
