"""Validation of probability vectors: non-negative entries that sum to one (Diehl sec. 1.4)."""

import torch
from jaxtyping import Float
from torch import Tensor


def check_distribution(p: Float[Tensor, "*batch outcomes"], name: str = "p") -> None:
    """Raise a ValueError unless the last axis of `p` holds distributions: non-negative, with sum one.

    Sums may deviate from one by the root of the machine epsilon: 3·10⁻⁴ in float32, 1.5·10⁻⁸ in float64.
    """
    if p.shape[-1] == 0:
        raise ValueError(f"{name} must have a last axis of at least one outcome; got shape {tuple(p.shape)}")
    if p.numel() == 0:
        return
    lowest, total = float(p.detach().amin()), p.detach().sum(-1)
    if not lowest >= 0:
        raise ValueError(f"probabilities must not be negative or NaN; the smallest entry of {name} is {lowest:g}")
    deviation = (total - 1).abs()
    if not float(deviation.max()) <= torch.finfo(p.dtype).eps ** 0.5:
        raise ValueError(
            f"probabilities must sum to one; a row of {name} sums to {float(total.flatten()[deviation.argmax()]):g}"
        )


def check_pair(p: Float[Tensor, "*batch_p n"], q: Float[Tensor, "*batch_q m"]) -> None:
    """Raise a ValueError unless both are distributions over the same number of outcomes."""
    check_distribution(p, "p")
    check_distribution(q, "q")
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"p and q must have the same number of outcomes; got {p.shape[-1]} and {q.shape[-1]}")
