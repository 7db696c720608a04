"""Penalties that keep a wide code from copying its input (book sec. 4.4)."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

Penalty: TypeAlias = Callable[[nn.Module, Tensor, Tensor], Tensor]
"""A scalar from (encoder, x, z): it grows with what the code z = encoder(x) should not do."""


def on_code(penalty: Callable[[Tensor], Tensor]) -> Penalty:
    """A penalty that looks at the code alone: `on_code(l1)`, `on_code(partial(kl_sparsity, target=0.1))`."""

    def of_code(_encoder: nn.Module, _x: Tensor, z: Tensor) -> Tensor:
        return penalty(z)

    return of_code


def l1(z: Float[Tensor, "batch latent"]) -> Float[Tensor, ""]:
    """⟨Σ_k |z_k|⟩: many coordinates of a code come to rest near zero (book sec. 4.4)."""
    return z.abs().sum(1).mean()


def l2(z: Float[Tensor, "batch latent"]) -> Float[Tensor, ""]:
    """⟨Σ_k z_k²⟩: codes stay near the origin (book sec. 4.4)."""
    return z.square().sum(1).mean()


def kl_sparsity(z: Float[Tensor, "batch latent"], *, target: float = 0.05) -> Float[Tensor, ""]:
    """Σ_k KL(ρ ‖ ρ̂_k), where ρ̂_k is the mean activation of unit k over the batch (book sec. 4.4).

        KL(ρ ‖ ρ̂) = ρ log(ρ / ρ̂) + (1 − ρ) log((1 − ρ) / (1 − ρ̂))

    Each unit should be on for a share ρ = `target` of the inputs; codes must lie in (0, 1).
    """
    if not 0 < target < 1:
        raise ValueError(f"target must lie strictly between 0 and 1; got target={target}")
    active = z.mean(0)
    if not bool(((active > 0) & (active < 1)).all()):
        low, high = float(active.min()), float(active.max())
        raise ValueError(f"mean activations must lie in (0, 1): end the encoder in a sigmoid; got {low:g} to {high:g}")
    return (target * (target / active).log() + (1 - target) * ((1 - target) / (1 - active)).log()).sum()


def contractive(encoder: nn.Module, x: Float[Tensor, "batch *event"], _z: Tensor) -> Float[Tensor, ""]:
    """⟨‖∂z/∂x‖²_F⟩: a small move of the input should hardly move the code (book sec. 4.4)."""
    return squared_jacobian(encoder, x).mean()


def squared_jacobian(encoder: nn.Module, x: Float[Tensor, "batch *event"]) -> Float[Tensor, " batch"]:
    """‖∂z/∂x‖²_F of each row, by one backward pass per coordinate of the code.

    The encoder must treat rows apart: batch normalisation in training mode would add foreign terms.
    """
    with torch.enable_grad():  # also where a loss is only measured
        x = x.detach().requires_grad_()
        z = encoder(x)
        rows = [torch.autograd.grad(unit.sum(), x, create_graph=True)[0] for unit in z.unbind(1)]
        return torch.stack(rows, 1).square().flatten(1).sum(1)
