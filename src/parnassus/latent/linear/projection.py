"""Orthogonal projections onto subspaces and their errors, the algebra of PCA (book sec. 4.3)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def second_moment(x: Float[Tensor, "count features"]) -> Float[Tensor, "features features"]:
    """Σ_XX = (1/M) Xᵀ X over M rows: the covariance of centred rows (book sec. 4.3)."""
    return x.mT @ x / len(x)


def pseudo_inverse(W: Float[Tensor, "features latent"]) -> Float[Tensor, "latent features"]:
    """pInv(W) = (Wᵀ W)⁻¹ Wᵀ for independent columns, from W = QR as R⁻¹ Qᵀ (book sec. 4.3)."""
    Q, R = _orthonormal(W)
    inverse: Tensor = torch.linalg.solve_triangular(R, Q.mT, upper=True)
    return inverse


def least_squares_code(
    W: Float[Tensor, "features latent"], y: Float[Tensor, "count features"]
) -> Float[Tensor, "count latent"]:
    """For each row y the code z = pInv(W) y that minimises ‖y − W z‖² (book sec. 4.3)."""
    return y @ pseudo_inverse(W).mT


def projection_matrix(W: Float[Tensor, "features latent"]) -> Float[Tensor, "features features"]:
    """P_W = W (Wᵀ W)⁻¹ Wᵀ, the orthogonal projection onto the span of W's columns (book sec. 4.3)."""
    Q, _ = _orthonormal(W)
    return Q @ Q.mT


def projection_error(
    W: Float[Tensor, "features latent"], sigma: Float[Tensor, "features features"]
) -> Float[Tensor, ""]:
    """⟨‖x − P_W x‖²⟩ = tr(Σ) − tr(P_W Σ) for rows of second moment Σ (book eq. 4.6)."""
    return sigma.trace() - (projection_matrix(W) @ sigma).trace()


def projection_error_from_eigenvalues(
    eigenvalues: Float[Tensor, " features"], kept: Sequence[int]
) -> Float[Tensor, ""]:
    """Σ_i λ_i − Σ_{i∈I} λ_i: the error of projecting onto the eigenvectors `kept` (book eq. 4.7)."""
    if len(set(kept)) != len(kept):
        raise ValueError(f"kept must contain each index at most once; got kept={list(kept)}")
    return eigenvalues.sum() - eigenvalues[list(kept)].sum()


def principal_angles(A: Float[Tensor, "features k"], B: Float[Tensor, "features k"]) -> Float[Tensor, " k"]:
    """Angles between the spans of A and B in radians, largest first; all zero when the spans agree.

        cos θ_i = σ_i(Q_Aᵀ Q_B),   sin θ_i = σ_i((I − Q_A Q_Aᵀ) Q_B)

    Both are computed, since a cosine alone does not resolve angles below √ε.
    """
    (Q_A, _), (Q_B, _) = _orthonormal(A), _orthonormal(B)
    overlap = Q_A.mT @ Q_B
    cosines = torch.linalg.svdvals(overlap).flip(0)
    sines = torch.linalg.svdvals(Q_B - Q_A @ overlap)
    return torch.atan2(sines, cosines)


def _orthonormal(W: Float[Tensor, "features latent"]) -> tuple[Tensor, Tensor]:
    """W = QR, after checking the rank: (Wᵀ W)⁻¹ exists only for independent columns."""
    rank, columns = int(torch.linalg.matrix_rank(W)), W.shape[1]
    if rank < columns:
        raise ValueError(f"W must have independent columns; got rank {rank} with {columns} columns")
    Q, R = torch.linalg.qr(W)
    return Q, R
