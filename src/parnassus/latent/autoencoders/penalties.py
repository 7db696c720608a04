"""Penalties of autoencoders: L1, L2, KL sparsity and contractive (book sec. 4.4)."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

Penalty: TypeAlias = Callable[[nn.Module, Tensor, Tensor], Tensor]
"""A scalar from (encoder, x, z) with z = encoder(x), added to the reconstruction loss."""


def code_penalty(penalty: Callable[[Tensor], Tensor]) -> Penalty:
    """Apply a penalty to the code alone: `code_penalty(l1_penalty)`, or a `partial` of `kl_sparsity_penalty`."""

    def apply(_encoder: nn.Module, _x: Tensor, z: Tensor) -> Tensor:
        return penalty(z)

    return apply


def l1_penalty(z: Float[Tensor, "batch latent"]) -> Float[Tensor, ""]:
    """⟨Σ_k |z_k|⟩: drives many coordinates of a code to zero (book sec. 4.4)."""
    return z.abs().sum(1).mean()


def code_l2_penalty(z: Float[Tensor, "batch latent"]) -> Float[Tensor, ""]:
    """⟨Σ_k z_k²⟩: keeps codes near the origin (book sec. 4.4)."""
    return z.square().sum(1).mean()


def kl_sparsity_penalty(z: Float[Tensor, "batch latent"], *, target: float = 0.05) -> Float[Tensor, ""]:
    """Σ_k KL(ρ ‖ ρ̂_k), where ρ̂_k is the mean activation of unit k over the batch (book sec. 4.4).

        KL(ρ ‖ ρ̂) = ρ log(ρ / ρ̂) + (1 − ρ) log((1 − ρ) / (1 − ρ̂))

    ρ = `target` is the target mean activation of each unit; codes must lie in (0, 1).
    """
    if not 0 < target < 1:
        raise ValueError(f"target must lie strictly between 0 and 1; got target={target}")
    activation = z.mean(0)
    if not bool(((activation > 0) & (activation < 1)).all()):
        low, high = float(activation.min()), float(activation.max())
        raise ValueError(f"mean activations must lie in (0, 1), as after a sigmoid; got {low:g} to {high:g}")
    return (target * (target / activation).log() + (1 - target) * ((1 - target) / (1 - activation)).log()).sum()


def contractive_penalty(encoder: nn.Module, x: Float[Tensor, "batch *event"], _z: Tensor) -> Float[Tensor, ""]:
    """⟨‖∂z/∂x‖²_F⟩: makes the code insensitive to small changes of the input (book sec. 4.4)."""
    return squared_jacobian_norm(encoder, x).mean()


def squared_jacobian_norm(encoder: nn.Module, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """‖∂z/∂x‖²_F of each row, by one backward pass per coordinate of the code.

    The encoder must treat rows independently, which batch normalisation in training mode does not.
    """
    with torch.enable_grad():  # also when the loss is evaluated under no_grad
        x = x.detach().requires_grad_()
        z = encoder(x)
        rows = [torch.autograd.grad(unit.sum(), x, create_graph=True)[0] for unit in z.unbind(1)]
        return torch.stack(rows, 1).square().flatten(1).sum(1)
