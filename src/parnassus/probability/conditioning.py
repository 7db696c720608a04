"""What is known of a normal vector once part of it was seen (Diehl ex. 5.6)."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.gaussian import Gaussian, cholesky_root, positive, symmetric

Solver: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""A covariance Σ and right sides B as columns in, some S with Σ S = B out."""


def solve_by_cholesky(
    covariance: Float[Tensor, "*#batch dim dim"], right: Float[Tensor, "*#batch dim columns"]
) -> Float[Tensor, "*#batch dim columns"]:
    """Σ⁻¹ B through Σ = L Lᵀ: quick, for a positive definite Σ."""
    solution: Tensor = torch.cholesky_solve(right, cholesky_root(covariance))
    return solution


def solve_by_pseudo_inverse(
    covariance: Float[Tensor, "*#batch dim dim"], right: Float[Tensor, "*#batch dim columns"]
) -> Float[Tensor, "*#batch dim columns"]:
    """Σ⁺ B, for any positive semi-definite Σ; the columns of B must lie in the range of Σ.

    Σ⁺ = Σ_i v_i v_iᵀ / λ_i over the positive eigenvalues λ_i
    """
    eigenvalues, V = torch.linalg.eigh(covariance)
    kept = positive(eigenvalues)[..., None]
    along = V.mT @ right
    missed, size = torch.where(kept, 0, along).norm(dim=-2), along.norm(dim=-2)
    if bool((missed > torch.finfo(right.dtype).eps ** 0.5 * size).any()):
        raise ValueError(
            f"what was seen cannot happen: it lies {float(missed.max()):.3g} off the plane in which a normal vector "
            "with this singular covariance stays"
        )
    solution: Tensor = V @ torch.where(kept, along / torch.where(kept, eigenvalues[..., None], 1), 0)
    return solution


def condition(
    joint: Gaussian,
    values: Float[Tensor, "*#batch observed"],
    *,
    observed: Sequence[int],
    solve: Solver = solve_by_pseudo_inverse,
) -> Gaussian:
    """The law of the other coordinates X, in their order, once the `observed` ones have Y = y (Diehl ex. 5.6).

        μ_{X|y} = μ_X + Σ_XY Σ_YY⁻¹ (y − μ_Y)
        Σ_{X|y} = Σ_XX − Σ_XY Σ_YY⁻¹ Σ_YX,   the same for every y

    Values may have batches of their own. With the pseudo-inverse Σ_YY may be singular; then y must be a value that Y
    can take, as conditional laws are settled only for those.
    """
    dim = joint.mean.shape[-1]
    seen = list(observed)
    if len(set(seen)) < len(seen) or not all(0 <= index < dim for index in seen):
        raise ValueError(f"observed must be different coordinates from 0 to {dim - 1}; got {seen}")
    if len(seen) != values.shape[-1] or not 0 < len(seen) < dim:
        raise ValueError(
            f"need a value for each observed coordinate, and one unobserved; got {values.shape[-1]} values for {seen}"
        )
    hidden = [index for index in range(dim) if index not in seen]
    covariance = joint.covariance
    sigma_xx, sigma_xy = covariance[..., hidden, :][..., hidden], covariance[..., hidden, :][..., seen]
    sigma_yy = covariance[..., seen, :][..., seen]

    away = (values - joint.mean[..., seen])[..., None]
    mean = joint.mean[..., hidden] + (sigma_xy @ solve(sigma_yy, away))[..., 0]
    left = symmetric(sigma_xx - sigma_xy @ solve(sigma_yy, sigma_xy.mT))
    return Gaussian(mean, without_rounding(left, sigma_xx))


def without_rounding(left: Float[Tensor, "*batch dim dim"], before: Float[Tensor, "*batch dim dim"]) -> Tensor:
    """What is left of the covariance `before`, with eigenvalues that are only the rounding of the difference at 0."""
    slack = 8 * left.shape[-1] * torch.finfo(left.dtype).eps * before.detach().abs().amax((-2, -1))[..., None]
    if bool((torch.linalg.eigvalsh(left.detach()) > slack).all()):
        return left  # no need for eigenvectors, whose gradient is undefined where eigenvalues meet
    eigenvalues, V = torch.linalg.eigh(left)
    return symmetric(V * torch.where(eigenvalues > slack, eigenvalues, 0)[..., None, :] @ V.mT)
