"""Targets of Q-learning for batches of transitions (book eqs. 18.6-18.8).

The discount may be given per transition: γ^n after n rewards.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor


def q_targets(
    rewards: Float[Tensor, "*batch"],
    next_q: Float[Tensor, "*batch actions"],
    terminated: Bool[Tensor, "*batch"],
    *,
    gamma: float | Float[Tensor, "*batch"],
) -> Float[Tensor, "*batch"]:
    """The target r + γ max_a' Q(s', a'), and r alone at a terminal state (book eq. 18.7, corrected).

    No gradient flows through the target: the target network's parameters are constants.
    """
    return rewards + gamma * next_q.detach().amax(-1).masked_fill(terminated, 0)


def double_q_targets(
    rewards: Float[Tensor, "*batch"],
    online_q: Float[Tensor, "*batch actions"],
    target_q: Float[Tensor, "*batch actions"],
    terminated: Bool[Tensor, "*batch"],
    *,
    gamma: float | Float[Tensor, "*batch"],
) -> Float[Tensor, "*batch"]:
    """The double DQN target r + γ Q⁻(s', argmax_a' Q(s', a')) (van Hasselt et al. 2016)."""
    chosen = online_q.detach().argmax(-1, keepdim=True)
    return rewards + gamma * target_q.detach().gather(-1, chosen).squeeze(-1).masked_fill(terminated, 0)


def values_of_actions(q: Float[Tensor, "*batch actions"], actions: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Q(s, a) of the given actions."""
    return q.gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def squared_td_loss(q: Float[Tensor, "*batch"], targets: Float[Tensor, "*batch"]) -> Float[Tensor, ""]:
    """Mean of ½ (target − Q(s, a; θ))², with the gradient −E[(target − Q) ∇Q] (book eqs. 18.7, 18.8)."""
    return (targets - q).square().mean() / 2
