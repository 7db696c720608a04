"""Eigenpairs of a covariance matrix: by eigendecomposition, SVD or randomised SVD (book sec. 4.3)."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.linalg
import torch
from jaxtyping import Float
from threadpoolctl import ThreadpoolController
from torch import Tensor

from parnassus.latent.linear.running_covariance import RunningCovariance, mean_of_rows


@dataclass(frozen=True)
class Spectrum:
    """The mean of the rows and the leading eigenpairs of their covariance Σ, in float64.

    Σ u_i = λ_i u_i,   λ_1 ≥ λ_2 ≥ … ≥ 0

    >>> spectrum = spectrum_by_eigh(torch.tensor([[0.0, 0.0], [2.0, 0.0]]))
    >>> spectrum.eigenvalues.tolist()
    [1.0, 0.0]
    """

    mean: Float[Tensor, " features"]
    eigenvalues: Float[Tensor, " found"]
    eigenvectors: Float[Tensor, "features found"]
    remaining_variance: Float[Tensor, ""]
    """tr Σ − Σ_i λ_i: the variance along directions that were not computed."""

    @property
    def pairs(self) -> tuple[Float[Tensor, " found"], Float[Tensor, "features found"]]:
        """(λ, U), largest first."""
        return self.eigenvalues, self.eigenvectors

    def truncate(self, num_components: int) -> "Spectrum":
        """The leading pairs; the other eigenvalues are added to `remaining_variance`."""
        kept, others = self.eigenvalues[:num_components], self.eigenvalues[num_components:]
        remaining_variance = self.remaining_variance + others.sum()
        return Spectrum(self.mean, kept, self.eigenvectors[:, :num_components], remaining_variance)


def eigendecompose(covariance: RunningCovariance, num_components: int | None = None) -> Spectrum:
    """The `num_components` leading eigenpairs of a covariance, by default all (book sec. 4.3)."""
    features, sigma = len(covariance.mean), covariance.covariance
    num_components = features if num_components is None else num_components
    if sigma.is_cpu:
        pairs = _eigh_lapack(sigma.numpy(), num_components)
        eigenvalues, eigenvectors = (torch.from_numpy(np.flip(part, -1).copy()) for part in pairs)
    else:
        eigenvalues, eigenvectors = (part.flip(-1) for part in torch.linalg.eigh(sigma))
    eigenvalues, eigenvectors = eigenvalues[:num_components], eigenvectors[:, :num_components]
    eigenvalues = eigenvalues.clamp(min=0)
    remaining = sigma.new_zeros(()) if num_components >= features else (sigma.trace() - eigenvalues.sum()).clamp(min=0)
    return Spectrum(covariance.mean, eigenvalues, eigenvectors, remaining)


def _eigh_lapack(covariance: np.ndarray, num_components: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs, or only the leading ones if they are few, which takes two thirds of the time.

    A subset is computed on one thread, since idle threads of numpy's matrix product still occupy the cores.
    """
    features = len(covariance)
    if 2 * num_components >= features:
        return np.linalg.eigh(covariance)  # takes three quarters of the time of torch.linalg.eigh
    with _threadpools().limit(limits=1, user_api="blas"):
        values, vectors = scipy.linalg.eigh(covariance, subset_by_index=(features - num_components, features - 1))
    return values, vectors


@cache
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()


def spectrum_by_eigh(x: Float[Tensor, "count features"], num_components: int | None = None) -> Spectrum:
    """Eigenpairs of the covariance Σ = (1/M) (X − x̄)ᵀ (X − x̄): fast for many rows (book sec. 4.3).

    Errors are about ε λ_1, where ε is the precision of the dtype of x or finer; pass `x.double()` to resolve smaller
    eigenvalues.
    """
    return eigendecompose(RunningCovariance.from_rows(x), num_components)


def spectrum_by_svd(x: Float[Tensor, "count features"]) -> Spectrum:
    """The same pairs from X − x̄ = A S Uᵀ as λ_i = s_i² / M; keeps small λ_i that rounding of Σ would lose."""
    x = x.double()
    rows, features = x.shape
    mean = x.mean(0)
    _, s, Ut = torch.linalg.svd(x - mean, full_matrices=rows < features)
    eigenvalues = x.new_zeros(features)
    eigenvalues[: len(s)] = s.square() / rows
    return Spectrum(mean, eigenvalues, Ut.mT, x.new_zeros(()))


@torch.no_grad()
def spectrum_by_randomised_svd(
    x: Float[Tensor, "count features"],
    num_components: int,
    *,
    oversampling: int = 10,
    num_iterations: int = 8,
    seed: int = 0,
) -> Spectrum:
    """Only the leading eigenpairs, by randomised subspace iteration (Halko et al. 2011, algs. 4.4, 5.3).

        V ← orthonormal basis of Σ V,   `num_iterations` times from num_components + oversampling random directions
        Vᵀ Σ V = R Λ Rᵀ,   U = V R

    An iteration shrinks the error by λ_{num_components+oversampling+1} / λ_num_components. Products are computed in
    the dtype of x. Where there are so few features that the covariance itself costs less than the iterations, the
    covariance is formed and the pairs are exact. As a solver of PCA, bind the number of pairs with `partial`:
    PCA.fit(x, 50, solver=partial(spectrum_by_randomised_svd, num_components=50)).
    """
    count, features = x.shape
    if count == 0 or not 1 <= num_components <= features:
        raise ValueError(
            "need at least one row and 1 ≤ num_components ≤ features; "
            f"got num_components={num_components}, x of shape {tuple(x.shape)}"
        )
    if oversampling < 0 or num_iterations < 0:
        raise ValueError(
            "oversampling and num_iterations must not be negative; "
            f"got oversampling={oversampling}, num_iterations={num_iterations}"
        )
    width = min(num_components + oversampling, features)
    if (
        features <= 4 * num_iterations * width
    ):  # Xᵀ X: count · features² products; iteration: 4 · count · features · width
        return spectrum_by_eigh(x, num_components)
    mean = mean_of_rows(x)
    centred = x - mean.to(x.dtype)
    total = mean_of_rows(centred.square()).sum()
    if not bool(torch.isfinite(total)):
        raise ValueError(f"every value of x and its square must be finite in {x.dtype}; some are not")

    generator = torch.Generator().manual_seed(seed)
    V = torch.linalg.qr(torch.randn(features, width, generator=generator, dtype=torch.float64))[0].to(x)
    for _ in range(num_iterations):
        V = torch.linalg.qr(centred.mT @ (centred @ V))[0]
    scores = (centred @ V).double()
    eigenvalues, R = torch.linalg.eigh(scores.mT @ scores / count)
    eigenvalues = eigenvalues.flip(0).clamp(min=0)
    remaining = (total - eigenvalues.sum()).clamp(min=0)
    return Spectrum(mean, eigenvalues, V.double() @ R.flip(1), remaining).truncate(num_components)
