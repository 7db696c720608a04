"""What action values should become: targets of Q-learning for batches of transitions (book eqs. 18.6-18.8).

The discount may be a number for each transition, γ^n after n rewards.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor


def q_targets(
    rewards: Float[Tensor, "*batch"],
    next_q: Float[Tensor, "*batch actions"],
    terminated: Bool[Tensor, "*batch"],
    *,
    discount: float | Float[Tensor, "*batch"],
) -> Float[Tensor, "*batch"]:
    """The target r + γ max_a' Q(s', a'), and r alone at an end, which the book leaves out (book eq. 18.7).

    They carry no gradient: the parameters in them are held.
    """
    return rewards + discount * next_q.detach().amax(-1).masked_fill(terminated, 0)


def double_q_targets(
    rewards: Float[Tensor, "*batch"],
    choosing_q: Float[Tensor, "*batch actions"],
    judging_q: Float[Tensor, "*batch actions"],
    terminated: Bool[Tensor, "*batch"],
    *,
    discount: float | Float[Tensor, "*batch"],
) -> Float[Tensor, "*batch"]:
    """The target r + γ Q⁻(s', argmax_a' Q(s', a')): one chooses, the held one judges (van Hasselt et al. 2016)."""
    chosen = choosing_q.detach().argmax(-1, keepdim=True)
    return rewards + discount * judging_q.detach().gather(-1, chosen).squeeze(-1).masked_fill(terminated, 0)


def taken(q: Float[Tensor, "*batch actions"], actions: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Q(s, a) of the actions that were taken."""
    return q.gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def half_squared_error(q: Float[Tensor, "*batch"], targets: Float[Tensor, "*batch"]) -> Float[Tensor, ""]:
    """Mean of ½ (target − Q(s, a; θ))²; its gradient is −E[(target − Q) ∇Q], with a minus (book eqs. 18.7, 18.8)."""
    return (targets - q).square().mean() / 2
