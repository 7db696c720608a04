"""Claims about PCA: the algorithm, its error, why it is the best (book sec. 4.3)."""

from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn import decomposition
from torch import Tensor

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.data import load_digits
from parnassus.latent.pca import PCA
from parnassus.latent.projection import (
    principal_angles,
    projection,
    projection_error,
    residual_eigenvalues,
    second_moment,
)
from parnassus.latent.spectrum import spectrum_by_eigh, spectrum_by_svd


def cloud(rows: int = 200, features: int = 6, seed: int = 0) -> Tensor:
    """Rows with correlated features of standard deviations from about 1 to `features`, away from the origin."""
    generator = torch.Generator().manual_seed(seed)
    mix = torch.randn(features, features, generator=generator, dtype=torch.float64)
    rotation: Tensor = torch.linalg.qr(mix)[0]
    stretched = torch.randn(rows, features, generator=generator, dtype=torch.float64) * torch.arange(1, features + 1)
    return stretched @ rotation + 3


@claim("B4.3-4")
def pca_by_eigenvectors_is_pca_by_singular_vectors() -> Evidence:
    """Eigenvectors of the covariance, singular vectors of the data and scikit-learn give one PCA (book sec. 4.3)."""
    x = cloud()
    ours, by_svd = PCA.fit(x, 3), PCA.fit(x, 3, solver=spectrum_by_svd)
    reference = decomposition.PCA(3, svd_solver="full").fit(x.numpy())
    return all_of(
        svd=close(ours.components, by_svd.components, atol=1e-10),
        eigenvalues=close(spectrum_by_eigh(x).eigenvalues, by_svd.eigenvalues, rtol=1e-10),
        the_leading_alone=close(ours.eigenvalues, by_svd.eigenvalues[:3], rtol=1e-10),
        the_rest=close(ours.rest, by_svd.eigenvalues[3:].sum(), rtol=1e-10),
        scikit_learn_up_to_signs=close(ours.components.abs().mT, np.abs(reference.components_), atol=1e-10),
        explained=close(ours.explained, reference.explained_variance_ratio_, rtol=1e-10),
    )


@claim("B4.3-4")
def principal_scores_are_uncorrelated() -> Evidence:
    """Components are orthonormal and the code's covariance is diag(λ_1 … λ_K) (book sec. 4.3)."""
    x = cloud()
    pca = PCA.fit(x, 3)
    z = pca.transform(x)
    return all_of(
        orthonormal=close(pca.components.mT @ pca.components, torch.eye(3), atol=1e-12),
        uncorrelated=close(second_moment(z), pca.variances.diag(), atol=1e-10),
        centred=close(z.mean(0), 0.0, atol=1e-12),
    )


@claim("B4.3-4")
def dividing_by_one_less_scales_the_variances_only() -> Evidence:
    """NumPy's covariance divides by M − 1: each λ grows by M / (M − 1), no direction turns (book sec. 4.3)."""
    x = cloud(rows=20)
    ours, axes = spectrum_by_eigh(x).pairs
    theirs, vectors = np.linalg.eigh(np.cov(x.numpy().T))
    turned = torch.from_numpy(vectors[:, ::-1].copy())
    return all_of(
        variances=close(theirs[::-1].copy(), ours * 20 / 19, rtol=1e-10),
        directions=close((axes * turned).sum(0).abs(), 1.0, atol=1e-10),
    )


@claim("B4.3-4")
def a_general_eigensolver_loses_orthogonality() -> Evidence:
    """With fewer rows than features, `eig` returns tied eigenvectors that are not orthogonal; `eigh` does not."""
    covariance = np.cov(cloud(rows=5, features=12).numpy().T)
    _, symmetric = np.linalg.eigh(covariance)
    _, general = np.linalg.eig(covariance)

    def skew(vectors: NDArray[np.complex128]) -> float:
        return float(np.abs(vectors.conj().T @ vectors - np.eye(12)).max())

    return all_of(
        eigh=at_most(skew(symmetric.astype(complex)), 1e-12), eig=at_least(skew(general.astype(complex)), 1e-3)
    )


def printed_listing(x: Tensor, latent: int) -> tuple[Tensor, Tensor]:
    """The PCA listing line by line as it stands in the text: Z and X_proj."""
    X = x.numpy()
    L, V = np.linalg.eig(np.cov(X.T))
    iL = np.argsort(L)
    V = V[:, iL[:latent]]
    x_bar = np.mean(X, 0)
    Z = np.dot(X - x_bar, V)
    return torch.from_numpy(Z), torch.from_numpy(np.dot(Z, V.T) + x_bar)


@erratum("B4.3-4", printed="iL = argsort(L); V[:, iL[:K]]", right="iL = argsort(L)[::-1]: the K largest eigenvalues")
def the_listing_keeps_the_smallest_eigenvalues() -> Correction:
    """Sorting ascending and taking the first K keeps the directions of least variance (book sec. 4.3)."""
    x = cloud()
    _, projected = printed_listing(x, 2)
    best = PCA.fit(x, 2)
    return Correction(
        printed=close((x - projected).square().sum(1).mean(), best.residual, rtol=1e-8),
        corrected=close((x - best.reconstruct(x)).square().sum(1).mean(), best.residual, rtol=1e-8),
    )


@erratum("B4.3-4", printed="Z is (K, N), X_proj is (N, K)", right="Z is (M, K), X_proj is (M, N) for M rows")
def the_listing_misnames_its_shapes() -> Correction:
    """The shape comments of the PCA listing forget the number of samples (book sec. 4.3)."""
    M, N, K = 200, 6, 2
    Z, projected = printed_listing(cloud(M, N), K)
    shapes = np.array([*Z.shape, *projected.shape])
    return Correction(printed=close(shapes, np.array([K, N, N, K])), corrected=close(shapes, np.array([M, K, M, N])))


@claim("B4.3-9", "B4.3-4")
def the_error_is_the_sum_of_the_dropped_eigenvalues() -> Evidence:
    """Projecting on any set I of eigenvectors costs Σ_i λ_i − Σ_{i∈I} λ_i, best set or not (book eq. 4.7)."""
    x = cloud()
    centred = x - x.mean(0)
    eigenvalues, U = spectrum_by_eigh(x).pairs
    sets = [list(kept) for size in range(1, 7) for kept in combinations(range(6), size)]
    measured = [(centred - centred @ projection(U[:, kept])).square().sum(1).mean() for kept in sets]
    predicted = [residual_eigenvalues(eigenvalues, kept) for kept in sets]
    return all_of(
        sets=close(len(sets), 63),
        errors=close(torch.stack(measured), torch.stack(predicted), atol=1e-10),
        reconstruction=close(
            (x - PCA.fit(x, 2).reconstruct(x)).square().sum(1).mean(), eigenvalues[2:].sum(), rtol=1e-10
        ),
    )


@claim("B4.3-10")
def eigenvectors_of_a_covariance_are_orthonormal() -> Evidence:
    """Σ U = U Λ with Uᵀ U = I, and the projection on some of them is U_I U_Iᵀ (book sec. 4.3)."""
    x = cloud()
    sigma = second_moment(x - x.mean(0))
    eigenvalues, U = spectrum_by_eigh(x).pairs
    chosen = U[:, [0, 3, 4]]
    return all_of(
        eigenpairs=close(sigma @ U, U * eigenvalues, atol=1e-10),
        orthonormal=close(U.mT @ U, torch.eye(6), atol=1e-12),
        projection=close(projection(chosen), chosen @ chosen.mT, atol=1e-12),
    )


@erratum("B4.3-10", printed="P_W = U_I (U_Iᵀ U)⁻¹ U_Iᵀ", right="P_W = U_I (U_Iᵀ U_I)⁻¹ U_Iᵀ")
def the_middle_factor_needs_the_same_columns_twice() -> Correction:
    """U_Iᵀ U is K × N and has no inverse; U_Iᵀ U_I is the K × K identity (book sec. 4.3)."""
    _, U = spectrum_by_eigh(cloud()).pairs
    chosen = U[:, [0, 3]]
    printed, right = chosen.mT @ U, chosen.mT @ chosen
    return Correction(
        printed=close(printed.shape[0], printed.shape[1]),
        corrected=all_of(
            square=close(right.shape[0], right.shape[1]),
            projection=close(chosen @ torch.linalg.inv(right) @ chosen.mT, projection(chosen), atol=1e-12),
        ),
    )


@claim("B4.3-11")
def no_subspace_beats_the_top_eigenvectors() -> Evidence:
    """tr(P Σ) = Σ_i λ_i c_i with 0 ≤ c_i = u_iᵀ P u_i ≤ 1 and Σ_i c_i = K: at most the top K (book sec. 4.3)."""
    x = cloud()
    sigma = second_moment(x - x.mean(0))
    eigenvalues, U = spectrum_by_eigh(x).pairs
    generator = torch.Generator().manual_seed(1)
    Ps = [projection(torch.randn(6, 2, generator=generator, dtype=torch.float64)) for _ in range(500)]
    traces = torch.stack([(P @ sigma).trace() for P in Ps])
    shares = torch.stack([(U * (P @ U)).sum(0) for P in Ps])
    top = projection(U[:, :2])
    return all_of(
        random_subspaces=at_most(traces, eigenvalues[:2].sum()),
        as_a_mixture=close(traces, shares @ eigenvalues, atol=1e-10),
        shares_below_one=at_most(shares, 1 + 1e-12),
        shares_not_negative=at_least(shares, -1e-12),
        shares_sum_to_K=close(shares.sum(1), 2.0, atol=1e-12),
        top_eigenspace=close((top @ sigma).trace(), eigenvalues[:2].sum(), rtol=1e-12),
    )


@erratum(
    "B4.3-11",
    printed="tr(P_W Σ) < Σ_{i∈I} λ_i for every other subspace, whatever the eigenvectors I",
    right="tr(P_W Σ) ≤ Σ_{i∈I} λ_i for I = the K largest, with equality when λ_K = λ_{K+1}",
)
def only_the_top_eigenvectors_are_unbeaten() -> Correction:
    """The claim left to the reader needs I to be the top K, and allows ties (book sec. 4.3)."""
    x = cloud()
    sigma = second_moment(x - x.mean(0))
    eigenvalues, _ = spectrum_by_eigh(x).pairs
    generator = torch.Generator().manual_seed(1)
    Ws = [torch.randn(6, 2, generator=generator, dtype=torch.float64) for _ in range(500)]
    kept = eigenvalues.sum() - torch.stack([projection_error(W, sigma) for W in Ws])
    tied = torch.diag(torch.tensor([3.0, 2.0, 2.0, 1.0], dtype=torch.float64))
    other = torch.tensor([[1.0, 0, 0, 0], [0, 0.6, 0.8, 0]], dtype=torch.float64).mT
    return Correction(
        printed=at_most(kept, eigenvalues[[1, 2]].sum()),
        corrected=all_of(
            top=at_most(kept, eigenvalues[:2].sum()), tie=close((projection(other) @ tied).trace(), 5.0, atol=1e-12)
        ),
    )


@claim("B4.3-15")
def reducing_twice_is_reducing_once() -> Evidence:
    """PCA to K₁ and of its scores to K₂ equals PCA to K₂; the product of two matrices has rank K₂ (book sec. 4.3)."""
    x = cloud()
    first = PCA.fit(x, 4)
    second = PCA.fit(first.transform(x), 2)
    both = first.components @ second.components
    straight = PCA.fit(x, 2)
    return all_of(
        same_plane=at_most(principal_angles(both, straight.components), 1e-10),
        same_scores=close(second.transform(first.transform(x)).abs(), straight.transform(x).abs(), atol=1e-10),
    )


@claim("B4.3-15")
def stages_collapse_only_without_a_nonlinearity() -> Evidence:
    """N → K₁ → K₂ → K₁ → N has rank K₂ when all stages are matrices, and more with relu between (book sec. 4.3)."""
    generator = torch.Generator().manual_seed(2)
    sizes = [(6, 4), (4, 1), (1, 4), (4, 6)]
    A, B, C, D = (torch.randn(*size, generator=generator, dtype=torch.float64) for size in sizes)
    x = cloud() - 3
    linear, curved = x @ A @ B @ C @ D, torch.relu(torch.relu(x @ A) @ B @ C) @ D
    return all_of(
        linear_rank=close(int(torch.linalg.matrix_rank(linear)), 1),
        relu_rank=at_least(int(torch.linalg.matrix_rank(curved)), 2),
    )


@claim("B4.1-4")
def a_learned_basis_serves_new_data() -> Evidence:
    """Sixteen components learnt on training digits rebuild unseen digits nearly as well (book sec. 4.1)."""
    digits = load_digits()
    train, test = digits.train.x.flatten(1), digits.test.x.flatten(1)
    pca = PCA.fit(train, 16)
    errors = [(x - pca.reconstruct(x)).square().sum(1).mean() for x in (train, test)]
    return all_of(
        unseen_over_seen=at_most(errors[1] / errors[0], 1.15),
        share_of_unseen_variance=at_most(errors[1] / (test - pca.mean).square().sum(1).mean(), 0.2),
    )
