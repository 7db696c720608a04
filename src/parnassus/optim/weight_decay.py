"""Weight decay: a squared penalty, what it does to a step and where it comes to rest (book sec. 2.2, Zhao sec. 3)."""

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn


def l2_penalty(theta: Float[Tensor, "*shape"], decay: float) -> Float[Tensor, ""]:
    """α/2 θᵀθ, which J̃(θ) = J(θ) + α/2 θᵀθ adds to the loss (book eq. 2.9).

    It is −log of the prior N(0, I/α) up to a constant: the minimiser of J̃ is then the likeliest θ a posteriori.
    """
    _require(decay)
    return decay / 2 * theta.square().sum()


def l2_gradient(
    theta: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], decay: float
) -> Float[Tensor, "*shape"]:
    """∇J̃(θ) = ∇J(θ) + α θ: what an optimiser is handed when the penalty is part of the loss (book eq. 2.10)."""
    return gradient + decay * theta


def decay_weights(theta: Float[Tensor, "*shape"], *, rate: float, decay: float) -> Float[Tensor, "*shape"]:
    """(1 − ηλ) θ: the shrinking alone. Done beside an optimiser's step rather than inside it, it is decoupled decay.

    An optimiser that rescales its gradient, as Adam does, rescales a penalty in it too and leaves large gradients
    almost undecayed; decoupled, every weight shrinks alike. For plain descent the two are the same.
    """
    _require(decay)
    return (1 - rate * decay) * theta


def decayed_step(
    theta: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], *, rate: float, decay: float
) -> Float[Tensor, "*shape"]:
    """θ ← (1 − ηα) θ − η ∇J(θ): descent on the penalised loss (book ex. 2.3, Zhao sec. 3).

    0 ≤ ηα ≤ 1 shrinks without changing signs; beyond 2 the decay alone diverges.
    """
    return decay_weights(theta, rate=rate, decay=decay) - rate * gradient


def penalised_minimiser(
    hessian: Float[Tensor, "dim dim"], minimiser: Float[Tensor, " dim"], decay: float
) -> Float[Tensor, " dim"]:
    """θ̃ = (H + αI)⁻¹ H θ*: where J(θ*) + ½(θ − θ*)ᵀH(θ − θ*) + α/2 θᵀθ is least (book ex. 2.3).

    H must be symmetric and positive semi-definite, so that H + αI can be inverted for every α > 0.
    """
    _require(decay)
    identity = torch.eye(len(minimiser), dtype=hessian.dtype, device=hessian.device)
    solution: Tensor = torch.linalg.solve(hessian + decay * identity, hessian @ minimiser)
    return solution


def shrinkage(eigenvalues: Float[Tensor, "*shape"], decay: float) -> Float[Tensor, "*shape"]:
    """λ_i / (λ_i + α): what is left of θ* along the eigenvector of H with eigenvalue λ_i (book ex. 2.3)."""
    _require(decay)
    return eigenvalues / (eigenvalues + decay)


ParameterGroup: TypeAlias = dict[str, list[nn.Parameter] | float]
"""A group as torch's optimisers take it."""


def decay_groups(model: nn.Module, decay: float) -> list[ParameterGroup]:
    """The parameters of a model in two groups for torch's optimisers: matrices decay, vectors do not (Zhao sec. 3).

    Vectors are biases and the scales of normalisations; shrinking an intercept would only move the mean prediction.
    """
    _require(decay)
    free = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [each for each in free if each.ndim >= 2], "weight_decay": decay},
        {"params": [each for each in free if each.ndim < 2], "weight_decay": 0.0},
    ]


def _require(decay: float) -> None:
    if not decay >= 0:
        raise ValueError(f"the decay must not be negative; got decay={decay}")
