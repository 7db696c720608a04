"""Claims about projections: the optimal code for a decoder and the error as traces (book sec. 4.3)."""

import torch

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, raises
from parnassus.latent.linear.projection import (
    least_squares_code,
    projection_error,
    projection_matrix,
    pseudo_inverse,
    second_moment,
)
from parnassus.probability import standard_normal


@claim("B4.3-6")
def the_best_code_is_the_pseudo_inverse_of_the_decoder() -> Evidence:
    """Z = (Wᵀ W)⁻¹ Wᵀ y minimises ‖y − W z‖²: the least-squares solution with zero gradient (book sec. 4.3)."""
    W, y = standard_normal(7, 3), standard_normal(5, 7, seed=1)
    z = least_squares_code(W, y).requires_grad_()
    error = (y - z @ W.mT).square().sum()
    (derivative,) = torch.autograd.grad(error, z)
    perturbed_error = (y - (z + 0.1 * standard_normal(5, 3, seed=2)) @ W.mT).square().sum()
    expanded = y.square().sum() - 2 * (y @ W * z).sum() + (z @ (W.mT @ W) * z).sum()
    return all_of(
        pinv=close(pseudo_inverse(W), torch.linalg.pinv(W), atol=1e-12),
        least_squares=close(z.mT, torch.linalg.lstsq(W, y.mT).solution, atol=1e-12),
        gradient=close(derivative, 0.0, atol=1e-12),
        expansion=close(expanded, error, rtol=1e-12),
        perturbed_is_larger=greater_equal(perturbed_error - error, 1e-3),
    )


@claim("B4.3-6")
def a_decoder_with_dependent_columns_has_no_unique_code() -> Evidence:
    """Wᵀ W is singular if a column of W is repeated: the formula needs full column rank (book sec. 4.3)."""
    W = standard_normal(7, 2)[:, [0, 1, 0]]
    return all_of(
        smallest_eigenvalue=close(torch.linalg.eigvalsh(W.mT @ W)[0], 0.0, atol=1e-12),
        raises_an_error=raises(ValueError, lambda: pseudo_inverse(W)),
    )


@claim("B4.3-7")
def the_projection_is_idempotent_and_symmetric() -> Evidence:
    """P² = P, Pᵀ = P, tr P = K, and the residual is orthogonal to the columns of W (book sec. 4.3)."""
    W, y = standard_normal(7, 3), standard_normal(5, 7, seed=1)
    P = projection_matrix(W)
    return all_of(
        formula=close(P, W @ torch.linalg.inv(W.mT @ W) @ W.mT, atol=1e-12),
        idempotent=close(P @ P, P, atol=1e-12),
        symmetric=close(P, P.mT, atol=1e-12),
        trace=close(P.trace(), 3.0, atol=1e-12),
        residual=close((y - y @ P) @ W, 0.0, atol=1e-12),
    )


@claim("B4.3-7")
def the_projection_depends_on_the_span_only() -> Evidence:
    """P_W depends only on the span of the columns of W (book sec. 4.3)."""
    W, A = standard_normal(7, 3), standard_normal(3, 3, seed=3)
    other = projection_matrix(standard_normal(7, 3, seed=4))
    return all_of(
        mixed=close(projection_matrix(W @ A), projection_matrix(W), atol=1e-10),
        another_span=greater_equal((other - projection_matrix(W)).abs().max(), 0.1),
    )


@claim("B4.3-8")
def the_error_of_a_projection_is_a_difference_of_traces() -> Evidence:
    """⟨‖x − P x‖²⟩ = tr Σ − tr(P Σ), by P² = P and tr(Aᵀ B) = tr(B Aᵀ) (book eq. 4.6)."""
    X, W, B = standard_normal(50, 7), standard_normal(7, 3, seed=1), standard_normal(50, 7, seed=2)
    direct = (X - X @ projection_matrix(W)).square().sum(1).mean()
    return all_of(
        error=close(projection_error(W, second_moment(X)), direct, atol=1e-10),
        cyclic_trace=close((X.mT @ B).trace(), (B @ X.mT).trace(), atol=1e-10),
    )
