"""Claims about projections: the best code for a decoder and the error as traces (book sec. 4.3)."""

import torch
from torch import Tensor

from parnassus.atlas import Evidence, all_of, at_least, claim, close, raises
from parnassus.latent.projection import best_code, projection, projection_error, pseudo_inverse, second_moment


def matrix(rows: int, columns: int, seed: int = 0) -> Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@claim("B4.3-6")
def the_best_code_is_the_pseudo_inverse_of_the_decoder() -> Evidence:
    """Z = (Wᵀ W)⁻¹ Wᵀ y minimises ‖y − W z‖²: it solves least squares and the gradient vanishes (book sec. 4.3)."""
    W, y = matrix(7, 3), matrix(5, 7, seed=1)
    z = best_code(W, y).requires_grad_()
    error = (y - z @ W.mT).square().sum()
    (slope,) = torch.autograd.grad(error, z)
    moved = (y - (z + 0.1 * matrix(5, 3, seed=2)) @ W.mT).square().sum()
    expanded = y.square().sum() - 2 * (y @ W * z).sum() + (z @ (W.mT @ W) * z).sum()
    return all_of(
        pinv=close(pseudo_inverse(W), torch.linalg.pinv(W), atol=1e-12),
        least_squares=close(z.mT, torch.linalg.lstsq(W, y.mT).solution, atol=1e-12),
        gradient=close(slope, 0.0, atol=1e-12),
        expansion=close(expanded, error, rtol=1e-12),
        elsewhere_is_worse=at_least(moved - error, 1e-3),
    )


@claim("B4.3-6")
def a_decoder_with_dependent_columns_has_no_unique_code() -> Evidence:
    """Wᵀ W is singular when a column of W repeats: the formula needs full column rank (book sec. 4.3)."""
    W = matrix(7, 2)[:, [0, 1, 0]]
    return all_of(
        smallest_eigenvalue=close(torch.linalg.eigvalsh(W.mT @ W)[0], 0.0, atol=1e-12),
        refused=raises(ValueError, lambda: pseudo_inverse(W)),
    )


@claim("B4.3-7")
def the_projection_is_idempotent_and_symmetric() -> Evidence:
    """P² = P, Pᵀ = P, tr P = K, and the residual is orthogonal to the columns of W (book sec. 4.3)."""
    W, y = matrix(7, 3), matrix(5, 7, seed=1)
    P = projection(W)
    return all_of(
        formula=close(P, W @ torch.linalg.inv(W.mT @ W) @ W.mT, atol=1e-12),
        idempotent=close(P @ P, P, atol=1e-12),
        symmetric=close(P, P.mT, atol=1e-12),
        trace=close(P.trace(), 3.0, atol=1e-12),
        residual=close((y - y @ P) @ W, 0.0, atol=1e-12),
    )


@claim("B4.3-7")
def the_projection_sees_only_the_span() -> Evidence:
    """Any invertible mixing of W's columns leaves P_W as it is; another span does not (book sec. 4.3)."""
    W, A = matrix(7, 3), matrix(3, 3, seed=3)
    other = projection(matrix(7, 3, seed=4))
    return all_of(
        mixed=close(projection(W @ A), projection(W), atol=1e-10),
        another_span=at_least((other - projection(W)).abs().max(), 0.1),
    )


@claim("B4.3-8")
def the_error_of_a_projection_is_a_difference_of_traces() -> Evidence:
    """⟨‖x − P x‖²⟩ = tr Σ − tr(P Σ), by P² = P and tr(Aᵀ B) = tr(B Aᵀ) (book eq. 4.6)."""
    X, W, B = matrix(50, 7), matrix(7, 3, seed=1), matrix(50, 7, seed=2)
    direct = (X - X @ projection(W)).square().sum(1).mean()
    return all_of(
        error=close(projection_error(W, second_moment(X)), direct, atol=1e-10),
        cyclic_trace=close((X.mT @ B).trace(), (B @ X.mT).trace(), atol=1e-10),
    )
