"""Claims about the error of a linear autoencoder as a landscape over (V, W) (book sec. 4.3)."""

import torch
from torch import Tensor
from torch.autograd.functional import hessian

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.latent.claims.linear_autoencoders import cloud, trained
from parnassus.latent.linear_autoencoder import linear_error, linear_gradients
from parnassus.latent.pca import PCA
from parnassus.latent.projection import second_moment
from parnassus.latent.spectrum import spectrum_by_eigh


def error_at(V: Tensor, W: Tensor, sigma: Tensor) -> Tensor:
    """E(V, W) = ⟨‖x − W V x‖²⟩ for rows of second moment Σ (book eq. 4.5)."""
    return linear_error(V, W, sigma_xx=sigma, sigma_yx=sigma, sigma_yy=sigma)


def curvatures(V: Tensor, W: Tensor, sigma: Tensor) -> Tensor:
    """Eigenvalues of the Hessian of E at (V, W), smallest first."""

    def flat(theta: Tensor) -> Tensor:
        v, w = theta.split([V.numel(), W.numel()])
        return error_at(v.view_as(V), w.view_as(W), sigma)

    eigenvalues: Tensor = torch.linalg.eigvalsh(hessian(flat, torch.cat([V.flatten(), W.flatten()])))
    return eigenvalues


def critical_point(kept: list[int], sigma: Tensor) -> tuple[Tensor, Tensor]:
    """V = U_Iᵀ, W = U_I: every set of eigenvectors makes the gradient vanish."""
    U = torch.linalg.eigh(sigma).eigenvectors.flip(1)[:, kept]
    return U.mT, U


@claim("B4.3-13")
def the_other_critical_points_are_saddles() -> Evidence:
    """At (0, 0) and at a wrong set of eigenvectors the gradient is zero and a way leads down (book sec. 4.3)."""
    sigma = second_moment(cloud())
    zero = torch.zeros(2, 5, dtype=torch.float64), torch.zeros(5, 2, dtype=torch.float64)
    wrong, right = critical_point([0, 2], sigma), critical_point([0, 1], sigma)
    points = (zero, wrong, right)
    slopes = [slope.flatten() for at in points for slope in linear_gradients(*at, sigma_xx=sigma, sigma_yx=sigma)]
    return all_of(
        gradients=close(torch.cat(slopes), 0.0, atol=1e-10),
        origin=at_most(curvatures(*zero, sigma)[0], -1.0),
        wrong_set=at_most(curvatures(*wrong, sigma)[0], -1.0),
        right_set=at_least(curvatures(*right, sigma)[0], -1e-9),
    )


@claim("B4.3-13")
def the_minimum_is_a_flat_valley() -> Evidence:
    """At the optimum the Hessian has K² zero directions, those of (W A, A⁻¹ V) (book sec. 4.3)."""
    sigma = second_moment(cloud())
    values = curvatures(*critical_point([0, 1], sigma), sigma)
    return all_of(flat=close(values[:4], 0.0, atol=1e-9), next=at_least(values[4], 0.1))


@claim("B4.3-13")
def every_start_reaches_the_same_error() -> Evidence:
    """Descent from eight random starts always ends at Σ_{i>K} λ_i: no start is caught elsewhere (book sec. 4.3)."""
    x = cloud()
    ends = torch.stack([trained(x, 2, seed=seed).loss(x) for seed in range(8)])
    return close(ends, PCA.fit(x, 2).residual, rtol=1e-6)


@erratum(
    "B4.3-13",
    printed="the problem is convex with a single global minimum",
    right="not convex: (V, W) and (−V, −W) are both minima, half way between them is the worst error tr Σ",
)
def the_landscape_is_not_convex() -> Correction:
    """A convex function lies below its chords; this one rises between two of its minima (book sec. 4.3)."""
    x = cloud()
    sigma = second_moment(x)
    V, W = critical_point([0, 1], sigma)
    ends = torch.stack([error_at(V, W, sigma), error_at(-V, -W, sigma)])
    between = error_at(0 * V, 0 * W, sigma)
    eigenvalues, _ = spectrum_by_eigh(x).pairs
    return Correction(
        printed=at_most(between, ends.mean()),
        corrected=all_of(
            two_minima=close(ends, eigenvalues[2:].sum(), rtol=1e-10),
            between=close(between, eigenvalues.sum(), rtol=1e-10),
        ),
    )
