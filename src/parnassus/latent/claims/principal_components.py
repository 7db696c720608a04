"""Claims about PCA: the algorithm, its error and its optimality (book sec. 4.3)."""

from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import decomposition
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.data import load_digits
from parnassus.latent.linear.covariance_spectrum import spectrum_by_eigh, spectrum_by_svd
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.projection import (
    principal_angles,
    projection_error,
    projection_error_from_eigenvalues,
    projection_matrix,
    second_moment,
)


def correlated_rows(rows: int = 200, features: int = 6, seed: int = 0) -> Tensor:
    """Rows with correlated features of standard deviations from about 1 to `features` and mean away from 0."""
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.randn(features, features, generator=generator, dtype=torch.float64)
    rotation: Tensor = torch.linalg.qr(matrix)[0]
    scaled = torch.randn(rows, features, generator=generator, dtype=torch.float64) * torch.arange(1, features + 1)
    return scaled @ rotation + 3


@claim("B4.3-4")
def pca_by_eigenvectors_and_by_singular_vectors_agree() -> Evidence:
    """Eigenvectors of the covariance, singular vectors of the data and scikit-learn agree (book sec. 4.3)."""
    x = correlated_rows()
    ours, by_svd = PCA.fit(x, 3), PCA.fit(x, 3, solver=spectrum_by_svd)
    reference = decomposition.PCA(3, svd_solver="full").fit(x.numpy())
    return all_of(
        svd=close(ours.components, by_svd.components, atol=1e-10),
        eigenvalues=close(spectrum_by_eigh(x).eigenvalues, by_svd.eigenvalues, rtol=1e-10),
        leading_eigenvalues=close(ours.eigenvalues, by_svd.eigenvalues[:3], rtol=1e-10),
        remaining_variance=close(ours.remaining_variance, by_svd.eigenvalues[3:].sum(), rtol=1e-10),
        scikit_learn_up_to_signs=close(ours.components.abs().mT, np.abs(reference.components_), atol=1e-10),
        explained=close(ours.explained_variance_ratio, reference.explained_variance_ratio_, rtol=1e-10),
    )


@claim("B4.3-4")
def principal_scores_are_uncorrelated() -> Evidence:
    """Components are orthonormal and the code's covariance is diag(λ_1 … λ_K) (book sec. 4.3)."""
    x = correlated_rows()
    pca = PCA.fit(x, 3)
    z = pca.transform(x)
    return all_of(
        orthonormal=close(pca.components.mT @ pca.components, torch.eye(3), atol=1e-12),
        uncorrelated=close(second_moment(z), pca.explained_variance.diag(), atol=1e-10),
        centred=close(z.mean(0), 0.0, atol=1e-12),
    )


@claim("B4.3-4")
def bessel_correction_scales_the_variances_only() -> Evidence:
    """NumPy's covariance divides by M − 1: each λ grows by M / (M − 1), directions are unchanged (book sec. 4.3)."""
    x = correlated_rows(rows=20)
    ours, axes = spectrum_by_eigh(x).pairs
    their_variances, vectors = np.linalg.eigh(np.cov(x.numpy().T))
    their_axes = torch.from_numpy(vectors[:, ::-1].copy())
    return all_of(
        variances=close(their_variances[::-1].copy(), ours * 20 / 19, rtol=1e-10),
        directions=close((axes * their_axes).sum(0).abs(), 1.0, atol=1e-10),
    )


@claim("B4.3-4")
def a_general_eigensolver_loses_orthogonality() -> Evidence:
    """With fewer rows than features, repeated eigenvalues have non-orthogonal eigenvectors in `eig`, not in `eigh`."""
    x = correlated_rows(rows=5, features=12)
    _, symmetric = spectrum_by_eigh(x).pairs
    _, general = np.linalg.eig(np.cov(x.numpy().T))

    def orthogonality_error(vectors: NDArray[np.complex128]) -> float:
        return float(np.abs(vectors.conj().T @ vectors - np.eye(12)).max())

    return all_of(
        eigh=less_equal(orthogonality_error(symmetric.numpy().astype(complex)), 1e-12),
        eig=greater_equal(orthogonality_error(general.astype(complex)), 1e-3),
    )


def pca_as_printed(x: Tensor, latent: int) -> tuple[Tensor, Tensor]:
    """The PCA listing as printed: Z and X_proj."""
    X = x.numpy()
    L, V = np.linalg.eig(np.cov(X.T))
    iL = np.argsort(L)
    V = V[:, iL[:latent]]
    x_bar = np.mean(X, 0)
    Z = np.dot(X - x_bar, V)
    return torch.from_numpy(Z), torch.from_numpy(np.dot(Z, V.T) + x_bar)


@erratum("B4.3-4", printed="iL = argsort(L); V[:, iL[:K]]", right="iL = argsort(L)[::-1]: the K largest eigenvalues")
def the_listing_keeps_the_smallest_eigenvalues() -> Correction:
    """Sorting ascending and taking the first K keeps the directions with the smallest variance (book sec. 4.3)."""
    x = correlated_rows()
    _, projected = pca_as_printed(x, 2)
    fitted = PCA.fit(x, 2)
    return Correction(
        printed=close((x - projected).square().sum(1).mean(), fitted.residual_variance, rtol=1e-8),
        corrected=close((x - fitted.reconstruct(x)).square().sum(1).mean(), fitted.residual_variance, rtol=1e-8),
    )


@erratum("B4.3-4", printed="Z is (K, N), X_proj is (N, K)", right="Z is (M, K), X_proj is (M, N) for M rows")
def the_shape_comments_of_the_listing_omit_the_samples() -> Correction:
    """The shape comments of the PCA listing omit the number of samples (book sec. 4.3)."""
    M, N, K = 200, 6, 2
    x = correlated_rows(M, N)
    Z, projected = pca_as_printed(x, K)
    pca = PCA.fit(x, K)
    shapes = np.array([*Z.shape, *projected.shape])
    return Correction(
        printed=close(shapes, np.array([K, N, N, K])),
        corrected=all_of(
            listing=close(shapes, np.array([M, K, M, N])),
            package=close(np.array([*pca.transform(x).shape, *pca.reconstruct(x).shape]), np.array([M, K, M, N])),
        ),
    )


@claim("B4.3-9", "B4.3-4")
def the_projection_error_is_the_sum_of_discarded_eigenvalues() -> Evidence:
    """Projecting on any set I of eigenvectors has error Σ_i λ_i − Σ_{i∈I} λ_i, for every set I (book eq. 4.7)."""
    x = correlated_rows()
    centred = x - x.mean(0)
    eigenvalues, U = spectrum_by_eigh(x).pairs
    index_sets = [list(indices) for size in range(1, 7) for indices in combinations(range(6), size)]
    measured = [(centred - centred @ projection_matrix(U[:, indices])).square().sum(1).mean() for indices in index_sets]
    predicted = [projection_error_from_eigenvalues(eigenvalues, indices) for indices in index_sets]
    return all_of(
        number_of_index_sets=close(len(index_sets), 63),
        errors=close(torch.stack(measured), torch.stack(predicted), atol=1e-10),
        reconstruction=close(
            (x - PCA.fit(x, 2).reconstruct(x)).square().sum(1).mean(), eigenvalues[2:].sum(), rtol=1e-10
        ),
        residual_variance=close(PCA.fit(x, 2).residual_variance, eigenvalues[2:].sum(), rtol=1e-10),
    )


@claim("B4.3-10")
def eigenvectors_of_a_covariance_are_orthonormal() -> Evidence:
    """Σ U = U Λ with Uᵀ U = I, and the projection on some of them is U_I U_Iᵀ (book sec. 4.3)."""
    x = correlated_rows()
    sigma = second_moment(x - x.mean(0))
    eigenvalues, U = spectrum_by_eigh(x).pairs
    chosen = U[:, [0, 3, 4]]
    return all_of(
        eigenpairs=close(sigma @ U, U * eigenvalues, atol=1e-10),
        orthonormal=close(U.mT @ U, torch.eye(6), atol=1e-12),
        projection=close(projection_matrix(chosen), chosen @ chosen.mT, atol=1e-12),
    )


@erratum("B4.3-10", printed="P_W = U_I (U_Iᵀ U)⁻¹ U_Iᵀ", right="P_W = U_I (U_Iᵀ U_I)⁻¹ U_Iᵀ")
def the_inverse_in_the_projection_needs_the_selected_columns() -> Correction:
    """U_Iᵀ U is K × N and has no inverse; U_Iᵀ U_I is the K × K identity (book sec. 4.3)."""
    _, U = spectrum_by_eigh(correlated_rows()).pairs
    chosen = U[:, [0, 3]]
    printed, corrected = chosen.mT @ U, chosen.mT @ chosen
    return Correction(
        printed=close(printed.shape[0], printed.shape[1]),
        corrected=all_of(
            square=close(corrected.shape[0], corrected.shape[1]),
            projection=close(chosen @ torch.linalg.inv(corrected) @ chosen.mT, projection_matrix(chosen), atol=1e-12),
        ),
    )


@claim("B4.3-11")
def the_top_eigenvectors_span_the_best_subspace() -> Evidence:
    """tr(P Σ) = Σ_i λ_i c_i, 0 ≤ c_i = u_iᵀ P u_i ≤ 1, Σ_i c_i = K, is at most the sum of the top K (book sec. 4.3)."""
    x = correlated_rows()
    sigma = second_moment(x - x.mean(0))
    eigenvalues, U = spectrum_by_eigh(x).pairs
    generator = torch.Generator().manual_seed(1)
    Ps = [projection_matrix(torch.randn(6, 2, generator=generator, dtype=torch.float64)) for _ in range(500)]
    traces = torch.stack([(P @ sigma).trace() for P in Ps])
    coefficients = torch.stack([(U * (P @ U)).sum(0) for P in Ps])
    best = projection_matrix(U[:, :2])
    angles = torch.tensor([0.0, 1e-9, 0.3, 1.2], dtype=torch.float64)
    tilted = [torch.stack([U[:, 0], angle.cos() * U[:, 1] + angle.sin() * U[:, 2]], 1) for angle in angles]
    return all_of(
        random_subspaces=less_equal(traces, eigenvalues[:2].sum()),
        linear_combination=close(traces, coefficients @ eigenvalues, atol=1e-10),
        coefficients_at_most_one=less_equal(coefficients, 1 + 1e-12),
        coefficients_non_negative=greater_equal(coefficients, -1e-12),
        coefficients_sum_to_K=close(coefficients.sum(1), 2.0, atol=1e-12),
        top_eigenspace=close((best @ sigma).trace(), eigenvalues[:2].sum(), rtol=1e-12),
        traces_decrease_with_the_angles=close(
            torch.stack([(projection_matrix(W) @ sigma).trace() for W in tilted]),
            eigenvalues[:2] @ torch.stack([torch.ones(4), angles.cos().square()]).to(eigenvalues)
            + eigenvalues[2] * angles.sin().square(),
            rtol=1e-12,
        ),
        angles=close(torch.stack([principal_angles(W, U[:, :2])[0] for W in tilted]), angles, atol=1e-12),
    )


@erratum(
    "B4.3-11",
    printed="tr(P_W Σ) < Σ_{i∈I} λ_i for every other subspace and any eigenvectors I",
    right="tr(P_W Σ) ≤ Σ_{i∈I} λ_i for I = the K largest, with equality when λ_K = λ_{K+1}",
)
def only_the_top_eigenvectors_are_optimal() -> Correction:
    """The claim left to the reader holds for the top K only, and with equality for ties (book sec. 4.3)."""
    x = correlated_rows()
    sigma = second_moment(x - x.mean(0))
    eigenvalues, _ = spectrum_by_eigh(x).pairs
    generator = torch.Generator().manual_seed(1)
    Ws = [torch.randn(6, 2, generator=generator, dtype=torch.float64) for _ in range(500)]
    traces = eigenvalues.sum() - torch.stack([projection_error(W, sigma) for W in Ws])
    with_tie = torch.diag(torch.tensor([3.0, 2.0, 2.0, 1.0], dtype=torch.float64))
    rotated = torch.tensor([[1.0, 0, 0, 0], [0, 0.6, 0.8, 0]], dtype=torch.float64).mT
    return Correction(
        printed=less_equal(traces, eigenvalues[[1, 2]].sum()),
        corrected=all_of(
            top=less_equal(traces, eigenvalues[:2].sum()),
            tie=close((projection_matrix(rotated) @ with_tie).trace(), 5.0, atol=1e-12),
        ),
    )


@claim("B4.3-15")
def pca_of_pca_scores_is_pca() -> Evidence:
    """PCA to K₁ dimensions followed by PCA to K₂ equals PCA to K₂ dimensions (book sec. 4.3)."""
    x = correlated_rows()
    first = PCA.fit(x, 4)
    second = PCA.fit(first.transform(x), 2)
    composed = first.components @ second.components
    direct = PCA.fit(x, 2)
    return all_of(
        same_subspace=less_equal(principal_angles(composed, direct.components), 1e-10),
        same_scores=close(second.transform(first.transform(x)).abs(), direct.transform(x).abs(), atol=1e-10),
    )


@claim("B4.3-15")
def stages_collapse_only_without_a_nonlinearity() -> Evidence:
    """N → K₁ → K₂ → K₁ → N has rank K₂ if all stages are linear, and a higher rank with ReLU (book sec. 4.3)."""
    generator = torch.Generator().manual_seed(2)
    x = correlated_rows() - 3
    first = PCA.fit(x, 4)
    B = torch.tensor([[1.0], [-2.0], [0.5], [1.0]], dtype=torch.float64)
    C = torch.tensor([[1.0, -1.0, 2.0, -0.5]], dtype=torch.float64)
    D = torch.randn(4, 6, generator=generator, dtype=torch.float64)
    linear = first.transform(x) @ B @ C @ D
    nonlinear = torch.relu(torch.relu(first.transform(x)) @ B @ C) @ D
    return all_of(
        linear_rank=close(int(torch.linalg.matrix_rank(linear)), 1),
        relu_rank=greater_equal(int(torch.linalg.matrix_rank(nonlinear)), 2),
    )


@claim("B4.1-4")
def principal_components_generalise_to_new_data() -> Evidence:
    """Sixteen components of the training digits reconstruct test digits nearly as well (book sec. 4.1)."""
    digits = load_digits()
    train, test = digits.train.x.flatten(1), digits.test.x.flatten(1)
    pca = PCA.fit(train, 16)
    errors = [(x - pca.reconstruct(x)).square().sum(1).mean() for x in (train, test)]
    return all_of(
        test_over_train=less_equal(errors[1] / errors[0], 1.15),
        unexplained_fraction_of_test_variance=less_equal(errors[1] / (test - pca.mean).square().sum(1).mean(), 0.2),
    )
