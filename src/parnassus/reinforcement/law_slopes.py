"""Slopes of what a law of actions says, written out: where a loss pulls the numbers that a network gave."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from parnassus.reinforcement.laws import ActionLaw, Choice


class LawSlopes(NamedTuple):
    """∂L/∂logits, or ∂L/∂mean and, for each state, ∂L/∂log_std."""

    answer: Float[Tensor, "learners rows actions"]
    log_std: Float[Tensor, "learners rows actions"] | None


def law_slopes(
    law: ActionLaw,
    actions: Shaped[Tensor, "learners rows *action"],
    of_log_prob: Float[Tensor, "learners rows"],
    of_entropy: float = 0.0,
) -> LawSlopes:
    """From ∂L/∂log π(a|s) and ∂L/∂H, the same number in every state.

    ∂log π(a)/∂logits = 1_a − π,              ∂H/∂logits = −π (log π + H)
    ∂log N(a)/∂mean = (a − mean)/σ²,          ∂log N(a)/∂log σ = (a − mean)²/σ² − 1,   ∂H/∂log σ = 1
    """
    given = of_log_prob.unsqueeze(-1)
    if isinstance(law, Choice):
        chances = law.logits.softmax(-1)
        slope = (chances * given).neg_().scatter_add_(-1, actions.unsqueeze(-1), given)
        if of_entropy:
            logs = law.logits.log_softmax(-1)
            slope.sub_(of_entropy * chances * (logs + law.entropy().unsqueeze(-1)))
        return LawSlopes(slope, None)
    inverse = torch.exp(-law.log_std)
    off = (actions - law.mean) * inverse
    return LawSlopes(given * off * inverse, given * (off.square() - 1) + of_entropy)
