"""Completeness of gradient attributions: they sum to f(x) − f(baseline) (Sundararajan et al. 2017)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.shapley.attributions.model_adapters import ModelError

MAX_UNEXPLAINED = 1e-3
"""Maximum unexplained change, relative to the output, for which gradients are accepted."""


def enforce_completeness(
    attributions: Float[Tensor, "*games players"],
    covariance: Float[Tensor, "*games players"],
    total: Float[Tensor, "*games"],
) -> Float[Tensor, "*games players"]:
    """Attributions that sum to `total`: the gap is distributed by each one's covariance with the sum, as least squares.

    A feature without error, such as one that the model ignores, is therefore left unchanged.
    """
    variance = covariance.sum(-1, keepdim=True)
    weight = torch.where(
        variance > 0, covariance / variance.masked_fill(variance == 0, 1.0), 1 / attributions.shape[-1]
    )
    return attributions + weight * (total - attributions.sum(-1))[..., None]


def check_completeness(
    prediction: Float[Tensor, "rows outputs"],
    base_values: Float[Tensor, "rows outputs"],
    attributions: Float[Tensor, "rows outputs features"],
    errors: Float[Tensor, "rows outputs"],
) -> None:
    """Reject a model that changes by more than its gradients account for."""
    change, explained = prediction - base_values, attributions.sum(-1)
    tolerance = MAX_UNEXPLAINED * torch.maximum(prediction.abs(), base_values.abs())
    unexplained = (change - explained).abs() - 5 * errors - tolerance
    if bool((unexplained > 0).any()):
        row, output = divmod(int(unexplained.argmax()), change.shape[1])
        raise ModelError(
            f"from the baseline to row {row} the model's output {output} changes by {change[row, output]:.6g}, its "
            f"gradients on the path account for {explained[row, output]:.6g}: the model is discontinuous, has "
            "operations without gradients, or is too steep for so few gradients; use explain, which needs outputs only"
        )
