"""Weight decay: L2 penalty, decoupled decay and the penalised minimiser (book sec. 2.2, Zhao sec. 3)."""

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.errors import check_non_negative


def l2_penalty(theta: Float[Tensor, "*shape"], weight_decay: float) -> Float[Tensor, ""]:
    """α/2 θᵀθ, the penalty in J̃(θ) = J(θ) + α/2 θᵀθ (book eq. 2.9).

    It is −log of the prior N(0, I/α) up to a constant: the minimiser of J̃ is the maximum a posteriori estimate.
    """
    check_non_negative(weight_decay=weight_decay)
    return weight_decay / 2 * theta.square().sum()


def l2_gradient(
    theta: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], weight_decay: float
) -> Float[Tensor, "*shape"]:
    """∇J̃(θ) = ∇J(θ) + α θ: the gradient of the penalised loss (book eq. 2.10)."""
    return gradient + weight_decay * theta


def decay_weights(
    theta: Float[Tensor, "*shape"], *, learning_rate: float, weight_decay: float
) -> Float[Tensor, "*shape"]:
    """(1 − ηλ) θ: decoupled weight decay, applied separately from an optimiser's step.

    An optimiser that rescales its gradient, as Adam does, also rescales an L2 penalty in it and hardly decays weights
    with large gradients; decoupled, every weight shrinks by the same factor. For SGD the two are equal.
    """
    check_non_negative(weight_decay=weight_decay)
    return (1 - learning_rate * weight_decay) * theta


def weight_decay_step(
    theta: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], *, learning_rate: float, weight_decay: float
) -> Float[Tensor, "*shape"]:
    """θ ← (1 − ηα) θ − η ∇J(θ): a gradient step on the penalised loss (book ex. 2.3, Zhao sec. 3).

    0 ≤ ηα ≤ 1 shrinks without changing signs; for ηα > 2 the decay alone diverges.
    """
    return decay_weights(theta, learning_rate=learning_rate, weight_decay=weight_decay) - learning_rate * gradient


def penalised_minimiser(
    hessian: Float[Tensor, "dim dim"], minimiser: Float[Tensor, " dim"], weight_decay: float
) -> Float[Tensor, " dim"]:
    """θ̃ = (H + αI)⁻¹ H θ*: the minimiser of J(θ*) + ½(θ − θ*)ᵀH(θ − θ*) + α/2 θᵀθ (book ex. 2.3).

    H must be symmetric and positive semi-definite, so that H + αI is invertible for every α > 0.
    """
    check_non_negative(weight_decay=weight_decay)
    identity = torch.eye(len(minimiser), dtype=hessian.dtype, device=hessian.device)
    solution: Tensor = torch.linalg.solve(hessian + weight_decay * identity, hessian @ minimiser)
    return solution


def shrinkage_factors(eigenvalues: Float[Tensor, "*shape"], weight_decay: float) -> Float[Tensor, "*shape"]:
    """λ_i / (λ_i + α): the factor of θ* along the eigenvector of H with eigenvalue λ_i (book ex. 2.3)."""
    check_non_negative(weight_decay=weight_decay)
    return eigenvalues / (eigenvalues + weight_decay)


ParameterGroup: TypeAlias = dict[str, list[nn.Parameter] | float]
"""A parameter group of torch's optimisers."""


def weight_decay_groups(model: nn.Module, weight_decay: float) -> list[ParameterGroup]:
    """Two parameter groups of a model: matrices with weight decay, vectors without (Zhao sec. 3).

    Vectors are biases and the scales of normalisation layers; shrinking an intercept would only shift the mean
    prediction.
    """
    check_non_negative(weight_decay=weight_decay)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [each for each in trainable if each.ndim >= 2], "weight_decay": weight_decay},
        {"params": [each for each in trainable if each.ndim < 2], "weight_decay": 0.0},
    ]
