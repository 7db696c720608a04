"""Vector norms, and a randomised search for a violated norm axiom (Zhao sec. 2)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

Norm: TypeAlias = Callable[[Tensor], Tensor]
"""A function that maps vectors along the last axis to one value each."""


def l1_norm(x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """‖x‖₁ = Σ_i |x_i|; ‖x − y‖₁ is the Manhattan distance (Zhao sec. 2)."""
    return x.abs().sum(-1)


def l2_norm(x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch"]:
    """‖x‖₂ = √(Σ_i x_i²), the Euclidean length; its gradient at 0 is the subgradient 0 (Zhao sec. 2)."""
    return p_norm(x, order=2.0)


def p_norm(x: Float[Tensor, "*batch dim"], *, order: float) -> Float[Tensor, "*batch"]:
    """‖x‖_p = (Σ_i |x_i|ᵖ)^(1/p) for p = `order` ≥ 1, max_i |x_i| for p = ∞ (Zhao sec. 2).

    The notes omit the absolute values and the condition. Entries are divided by the largest before taking powers, so
    that neither large orders nor large entries overflow. At 0, where the norm has a kink, its gradient is 0.
    """
    if not order >= 1:
        raise ValueError(f"order must be at least 1, below which the triangle inequality fails; got order={order}")
    largest = x.abs().amax(-1, keepdim=True)
    if order == torch.inf:
        return largest[..., 0]
    scale = torch.where((largest > 0) & largest.isfinite(), largest, 1).detach()  # a constant: the norm is homogeneous
    sums = (x / scale).abs().pow(order).sum(-1)
    is_zero = sums == 0  # the derivative of a root at 0 is infinite
    return torch.where(is_zero, 0, scale[..., 0] * torch.where(is_zero, 1, sums).pow(1 / order))


@dataclass(frozen=True)
class NormViolation:
    """A violated norm axiom, a counterexample (vectors and scalars by name), and both sides of the axiom for it."""

    axiom: str
    counterexample: Mapping[str, Tensor]
    left: float
    right: float

    def __str__(self) -> str:
        return f"{self.axiom} fails: left side {self.left:g}, right side {self.right:g}"


def find_norm_violation(
    candidate: Norm, dim: int, *, generator: torch.Generator, num_trials: int = 2_000, tolerance: float = 1e-9
) -> NormViolation | None:
    """The first norm axiom that random dense and sparse vectors violate, or None (Zhao sec. 2).

        ‖0‖ = 0 and ‖x‖ > 0 for x ≠ 0
        ‖αx‖ = |α| ‖x‖
        ‖x + y‖ ≤ ‖x‖ + ‖y‖

    A counterexample is a proof, None is not. `candidate` takes float64 vectors along the last axis.
    """
    if dim < 1 or num_trials < 1:
        raise ValueError(f"dim and num_trials must be at least 1; got dim={dim}, num_trials={num_trials}")
    x, y = _sample_vectors(num_trials, dim, generator), _sample_vectors(num_trials, dim, generator)
    alpha = torch.randn(num_trials, generator=generator, dtype=torch.float64)
    origin = torch.zeros_like(x)
    norm_of_origin, norm_of_x, norm_of_y = candidate(origin), candidate(x), candidate(y)
    if norm_of_x.shape != (num_trials,):
        raise ValueError(
            f"a norm must return one value per vector; got shape {tuple(norm_of_x.shape)} for {num_trials} vectors"
        )
    norm_of_scaled, scaled = candidate(alpha[:, None] * x), alpha.abs() * norm_of_x
    norm_of_sum, total = candidate(x + y), norm_of_x + norm_of_y
    zero = torch.zeros_like(norm_of_x)
    checks: list[tuple[str, Tensor, Tensor, Tensor, dict[str, Tensor]]] = [
        ("‖0‖ = 0", norm_of_origin == 0, norm_of_origin, zero, {"x": origin}),
        ("‖x‖ > 0", (norm_of_x > 0) | (x == 0).all(-1), norm_of_x, zero, {"x": x}),
        (
            "‖αx‖ = |α| ‖x‖",
            (norm_of_scaled - scaled).abs() <= tolerance * (1 + scaled),
            norm_of_scaled,
            scaled,
            {"x": x, "α": alpha},
        ),
        ("‖x + y‖ ≤ ‖x‖ + ‖y‖", norm_of_sum <= total + tolerance * (1 + total), norm_of_sum, total, {"x": x, "y": y}),
    ]
    for axiom, holds, left, right, arguments in checks:
        if not bool(holds.all()):
            row = int(holds.double().argmin())
            return NormViolation(
                axiom, {name: each[row] for name, each in arguments.items()}, float(left[row]), float(right[row])
            )
    return None


def _sample_vectors(count: int, dim: int, generator: torch.Generator) -> Tensor:
    """Normal vectors; in every other one all entries but one are 0, since many candidates fail on unit vectors."""
    x = torch.randn(count, dim, generator=generator, dtype=torch.float64)
    kept = torch.randint(dim, (count, 1), generator=generator) == torch.arange(dim)
    return torch.where((torch.arange(count) % 2 == 0)[:, None], x, x * kept)
