"""Claims about the loss landscape of a linear autoencoder over (V, W) (book sec. 4.3)."""

import torch
from torch import Tensor
from torch.autograd.functional import hessian

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.latent.claims.linear_autoencoders import gaussian_rows, train_linear_autoencoder
from parnassus.latent.linear.covariance_spectrum import spectrum_by_eigh
from parnassus.latent.linear.linear_autoencoder import linear_error, linear_gradients
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.projection import second_moment


def error_at(V: Tensor, W: Tensor, sigma: Tensor) -> Tensor:
    """E(V, W) = ⟨‖x − W V x‖²⟩ for rows of second moment Σ (book eq. 4.5)."""
    return linear_error(V, W, sigma_xx=sigma, sigma_yx=sigma, sigma_yy=sigma)


def hessian_eigenvalues(V: Tensor, W: Tensor, sigma: Tensor) -> Tensor:
    """Eigenvalues of the Hessian of E at (V, W), smallest first."""

    def flat(theta: Tensor) -> Tensor:
        v, w = theta.split([V.numel(), W.numel()])
        return error_at(v.view_as(V), w.view_as(W), sigma)

    eigenvalues: Tensor = torch.linalg.eigvalsh(hessian(flat, torch.cat([V.flatten(), W.flatten()])))
    return eigenvalues


def critical_point(indices: list[int], sigma: Tensor) -> tuple[Tensor, Tensor]:
    """V = U_Iᵀ, W = U_I, a critical point for every set I of eigenvectors."""
    U = torch.linalg.eigh(sigma).eigenvectors.flip(1)[:, indices]
    return U.mT, U


@claim("B4.3-13")
def the_other_critical_points_are_saddles() -> Evidence:
    """At (0, 0) and at wrong eigenvectors the gradient is 0 and a Hessian eigenvalue negative (book sec. 4.3)."""
    sigma = second_moment(gaussian_rows())
    zero = torch.zeros(2, 5, dtype=torch.float64), torch.zeros(5, 2, dtype=torch.float64)
    not_top, top = critical_point([0, 2], sigma), critical_point([0, 1], sigma)
    points = (zero, not_top, top)
    gradients = [part.flatten() for at in points for part in linear_gradients(*at, sigma_xx=sigma, sigma_yx=sigma)]
    return all_of(
        gradients=close(torch.cat(gradients), 0.0, atol=1e-10),
        origin=less_equal(hessian_eigenvalues(*zero, sigma)[0], -1.0),
        other_eigenvectors=less_equal(hessian_eigenvalues(*not_top, sigma)[0], -1.0),
        top_eigenvectors=greater_equal(hessian_eigenvalues(*top, sigma)[0], -1e-9),
    )


@claim("B4.3-13")
def the_minimum_has_flat_directions() -> Evidence:
    """At the optimum the Hessian has K² zero directions, those of (W A, A⁻¹ V) (book sec. 4.3)."""
    sigma = second_moment(gaussian_rows())
    values = hessian_eigenvalues(*critical_point([0, 1], sigma), sigma)
    return all_of(flat=close(values[:4], 0.0, atol=1e-9), next_eigenvalue=greater_equal(values[4], 0.1))


@claim("B4.3-13")
def every_initialisation_reaches_the_same_error() -> Evidence:
    """Gradient descent from eight random initialisations always converges to Σ_{i>K} λ_i (book sec. 4.3)."""
    x = gaussian_rows()
    errors = torch.stack([train_linear_autoencoder(x, 2, seed=seed).loss(x) for seed in range(8)])
    return close(errors, PCA.fit(x, 2).residual_variance, rtol=1e-6)


@erratum(
    "B4.3-13",
    printed="the problem is convex with a single global minimum",
    right="not convex: (V, W) and (−V, −W) are both minima, at their midpoint the error is tr Σ",
)
def the_loss_is_not_convex() -> Correction:
    """A convex function lies below its chords; this loss is larger at the midpoint of two minima (book sec. 4.3)."""
    x = gaussian_rows()
    sigma = second_moment(x)
    V, W = critical_point([0, 1], sigma)
    ends = torch.stack([error_at(V, W, sigma), error_at(-V, -W, sigma)])
    midpoint = error_at(0 * V, 0 * W, sigma)
    eigenvalues, _ = spectrum_by_eigh(x).pairs
    return Correction(
        printed=less_equal(midpoint, ends.mean()),
        corrected=all_of(
            two_minima=close(ends, eigenvalues[2:].sum(), rtol=1e-10),
            midpoint=close(midpoint, eigenvalues.sum(), rtol=1e-10),
        ),
    )
