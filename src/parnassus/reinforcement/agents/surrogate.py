"""Surrogate objectives for the return of a new policy, from data of an old one (book sec. 18.5).

With ρ = π_new(a|s)/π_old(a|s), E[ρ A] has the value and the gradient of the return at π_new = π_old.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive


def policy_ratio(log_prob: Float[Tensor, "*shape"], old_log_prob: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """ρ = π_new(a|s)/π_old(a|s), with a gradient through the new policy only."""
    return (log_prob - old_log_prob.detach()).exp()


def clipped_surrogate(
    ratio: Float[Tensor, "*shape"], advantage: Float[Tensor, "*shape"], clip_range: float
) -> Float[Tensor, "*shape"]:
    """min(ρ A, clip(ρ, 1 − ε, 1 + ε) A), to be maximised (Schulman et al. 2017).

        A > 0: A min(ρ, 1 + ε)        A < 0: A max(ρ, 1 − ε)

    It is flat once the ratio has left the interval in the direction that A favours. In the other direction it keeps its
    gradient, so that overshooting is corrected; contrary to the book there is no penalty (book sec. 18.5).
    """
    check_positive(clip_range=clip_range)
    highest = torch.where(advantage > 0, 1 + clip_range, torch.inf)
    lowest = torch.where(advantage < 0, 1 - clip_range, -torch.inf)
    return advantage * ratio.clamp(lowest, highest)
