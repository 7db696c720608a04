"""Binary cross-entropy from a logit (book sec. 2.1)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_same_shape


def binary_cross_entropy(logits: Float[Tensor, "*batch"], targets: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """−t log y − (1 − t) log(1 − y) of each example, with y = sigmoid(a) (book eqs. 2.4-2.5).

        = t softplus(−a) + (1 − t) softplus(a),   softplus(a) = log(e^a + e^0), which does not overflow
        ∂/∂a = y − t                                                       (book eq. 2.6)

    Targets t lie in [0, 1]. The book sums over the examples: `binary_cross_entropy(a, t).sum()`.
    """
    _check_targets(logits, targets)
    zero = torch.zeros_like(logits)
    return targets * torch.logaddexp(-logits, zero) + (1 - targets) * torch.logaddexp(logits, zero)


def binary_cross_entropy_gradient(
    logits: Float[Tensor, "*batch"], targets: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """∂ℰ/∂a = sigmoid(a) − t, prediction minus target (book eq. 2.6)."""
    _check_targets(logits, targets)
    return (1 - targets) * torch.sigmoid(logits) - targets * torch.sigmoid(-logits)


def _check_targets(logits: Tensor, targets: Tensor) -> None:
    check_same_shape(logits=logits, targets=targets)
    if targets.numel() and not (float(targets.min()) >= 0 and float(targets.max()) <= 1):
        raise ValueError(
            f"targets must lie in [0, 1]; got {float(targets.min()):g} … {float(targets.max()):g} "
            "(map labels −1 and 1 to (label + 1) / 2)"
        )
