"""Norms of vectors, and a checker that looks for a reason why something is none (Zhao sec. 2)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

Norm: TypeAlias = Callable[[Tensor], Tensor]
"""Vectors along the last axis in, one number for each out."""


def l1_norm(x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """‖x‖₁ = Σ_i |x_i|; ‖x − y‖₁ is the Manhattan distance (Zhao sec. 2)."""
    return x.abs().sum(-1)


def l2_norm(x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """‖x‖₂ = √(Σ_i x_i²), the Euclidean length (Zhao sec. 2)."""
    return x.square().sum(-1).sqrt()


def p_norm(x: Float[Tensor, "*batch dim"], *, order: float) -> Float[Tensor, "*batch"]:
    """‖x‖_p = (Σ_i |x_i|ᵖ)^(1/p) for p = `order` ≥ 1, max_i |x_i| for p = ∞ (Zhao sec. 2).

    The notes leave out the absolute values and the condition. Entries are divided by the largest before the power,
    so that large orders do not overflow.
    """
    if not order >= 1:
        raise ValueError(f"a p-norm needs order ≥ 1: below, the triangle inequality fails; got order={order}")
    largest = x.abs().amax(-1, keepdim=True)
    if order == torch.inf:
        return largest[..., 0]
    scale = torch.where(largest > 0, largest, 1)
    return scale[..., 0] * (x / scale).abs().pow(order).sum(-1).pow(1 / order)


@dataclass(frozen=True)
class Violation:
    """A reason why a candidate is no norm: the axiom it breaks, the vectors and scalars that show it, both sides."""

    axiom: str
    witness: Mapping[str, Tensor]
    left: float
    right: float

    def __str__(self) -> str:
        return f"{self.axiom} fails: {self.left:g} on the left, {self.right:g} on the right"


def norm_violation(
    candidate: Norm, dim: int, *, generator: torch.Generator, trials: int = 2_000, tolerance: float = 1e-9
) -> Violation | None:
    """The first broken axiom of a norm with a witness, or None where random and sparse vectors find none (Zhao sec. 2).

        ‖0‖ = 0 and ‖x‖ > 0 for x ≠ 0
        ‖αx‖ = |α| ‖x‖
        ‖x + y‖ ≤ ‖x‖ + ‖y‖

    A witness is a proof, None is not. `candidate` takes float64 vectors along the last axis.
    """
    if dim < 1 or trials < 1:
        raise ValueError(f"need at least one dimension and one trial; got dim={dim}, trials={trials}")
    x, y = _vectors(trials, dim, generator), _vectors(trials, dim, generator)
    alpha = torch.randn(trials, generator=generator, dtype=torch.float64)
    nought = torch.zeros_like(x)
    of_nought, of_x, of_y = candidate(nought), candidate(x), candidate(y)
    if of_x.shape != (trials,):
        raise ValueError(f"a norm gives one number a vector; for {trials} vectors it gave shape {tuple(of_x.shape)}")
    of_scaled, scaled = candidate(alpha[:, None] * x), alpha.abs() * of_x
    of_sum, total = candidate(x + y), of_x + of_y
    zero = torch.zeros_like(of_x)
    checks: list[tuple[str, Tensor, Tensor, Tensor, dict[str, Tensor]]] = [
        ("‖0‖ = 0", of_nought == 0, of_nought, zero, {"x": nought}),
        ("‖x‖ > 0", (of_x > 0) | (x == 0).all(-1), of_x, zero, {"x": x}),
        (
            "‖αx‖ = |α| ‖x‖",
            (of_scaled - scaled).abs() <= tolerance * (1 + scaled),
            of_scaled,
            scaled,
            {"x": x, "α": alpha},
        ),
        ("‖x + y‖ ≤ ‖x‖ + ‖y‖", of_sum <= total + tolerance * (1 + total), of_sum, total, {"x": x, "y": y}),
    ]
    for axiom, holds, left, right, involved in checks:
        if not bool(holds.all()):
            row = int(holds.double().argmin())
            return Violation(
                axiom, {name: each[row] for name, each in involved.items()}, float(left[row]), float(right[row])
            )
    return None


def _vectors(count: int, dim: int, generator: torch.Generator) -> Tensor:
    """Normal vectors, every other with most entries set to 0: unit vectors are where many candidates fail."""
    x = torch.randn(count, dim, generator=generator, dtype=torch.float64)
    kept = torch.randint(dim, (count, 1), generator=generator) == torch.arange(dim)
    return torch.where((torch.arange(count) % 2 == 0)[:, None], x, x * kept)
