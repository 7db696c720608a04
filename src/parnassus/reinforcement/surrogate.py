"""Surrogates for the return of a new policy, from what an old one saw (book sec. 18.5).

With ρ = π_new(a|s)/π_old(a|s), E[ρ A] has the value and the slope of the return at π_new = π_old.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def policy_ratio(log_prob: Float[Tensor, "*shape"], old_log_prob: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """ρ = π_new(a|s)/π_old(a|s); gradients go through the new policy alone."""
    return (log_prob - old_log_prob.detach()).exp()


def clipped_surrogate(
    ratio: Float[Tensor, "*shape"], advantage: Float[Tensor, "*shape"], clip: float
) -> Float[Tensor, "*shape"]:
    """min(ρ A, clip(ρ, 1 − ε, 1 + ε) A), to be made large (Schulman et al. 2017).

        A > 0: A min(ρ, 1 + ε)        A < 0: A max(ρ, 1 − ε)

    Flat once the ratio has gone far enough in the good direction. In the bad one it keeps its slope, so that a step too
    far is taken back; nothing is penalised, as the book has it (book sec. 18.5).
    """
    if not clip > 0:
        raise ValueError(f"the clip must be positive; got clip={clip}")
    highest = torch.where(advantage > 0, 1 + clip, torch.inf)
    lowest = torch.where(advantage < 0, 1 - clip, -torch.inf)
    return advantage * ratio.clamp(lowest, highest)
