"""Eigenpairs of a covariance: exact for many rows, exact for small variances, quick for a few pairs (book sec. 4.3)."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.linalg
import torch
from jaxtyping import Float
from threadpoolctl import ThreadpoolController
from torch import Tensor

from parnassus.latent.moments import Moments, mean_of_rows


@dataclass(frozen=True)
class Spectrum:
    """The mean of the rows and the leading eigenpairs of their covariance Σ, in float64.

    Σ u_i = λ_i u_i,   λ_1 ≥ λ_2 ≥ … ≥ 0
    """

    mean: Float[Tensor, " features"]
    eigenvalues: Float[Tensor, " found"]
    eigenvectors: Float[Tensor, "features found"]
    rest: Float[Tensor, ""]
    """tr Σ − Σ_i λ_i: the variance along directions that the solver did not look for."""

    @property
    def pairs(self) -> tuple[Float[Tensor, " found"], Float[Tensor, "features found"]]:
        """(λ, U), largest first."""
        return self.eigenvalues, self.eigenvectors


def spectrum_of(moments: Moments, leading: int | None = None) -> Spectrum:
    """The `leading` eigenpairs of the covariance that these moments hold, or all (book sec. 4.3)."""
    features, covariance = len(moments.mean), moments.covariance
    leading = features if leading is None else leading
    if covariance.is_cpu:
        found = _by_lapack(covariance.numpy(), leading)
        eigenvalues, eigenvectors = (torch.from_numpy(np.flip(part, -1).copy()) for part in found)
    else:
        eigenvalues, eigenvectors = (part.flip(-1) for part in torch.linalg.eigh(covariance))
    eigenvalues, eigenvectors = eigenvalues[:leading], eigenvectors[:, :leading]
    eigenvalues = eigenvalues.clamp(min=0)
    rest = (covariance.trace() - eigenvalues.sum()).clamp(min=0) if leading < features else covariance.new_zeros(())
    return Spectrum(moments.mean, eigenvalues, eigenvectors, rest)


def _by_lapack(covariance: np.ndarray, leading: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs, or the `leading` ones alone where they are few: that takes two thirds of the time.

    One thread finds the few soonest: more of them would wait for those that numpy's product left spinning.
    """
    features = len(covariance)
    if 2 * leading >= features:
        return np.linalg.eigh(covariance)  # in three quarters of the time of torch's
    with _threads().limit(limits=1, user_api="blas"):
        values, vectors = scipy.linalg.eigh(covariance, subset_by_index=(features - leading, features - 1))
    return values, vectors


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def spectrum_by_eigh(x: Float[Tensor, "count features"], leading: int | None = None) -> Spectrum:
    """Eigenpairs of the covariance Σ = (1/M) (X − x̄)ᵀ (X − x̄): quick when rows are many (book sec. 4.3).

    Errors are about ε λ_1, where ε is the precision of x's own type or finer: what is smaller is seen in `x.double()`.
    """
    return spectrum_of(Moments.of(x), leading)


def spectrum_by_svd(x: Float[Tensor, "count features"]) -> Spectrum:
    """The same pairs from X − x̄ = A S Uᵀ as λ_i = s_i² / M; keeps small λ_i that Σ rounds away."""
    x = x.double()
    rows, features = x.shape
    mean = x.mean(0)
    _, s, Ut = torch.linalg.svd(x - mean, full_matrices=rows < features)
    eigenvalues = x.new_zeros(features)
    eigenvalues[: len(s)] = s.square() / rows
    return Spectrum(mean, eigenvalues, Ut.mT, x.new_zeros(()))


@torch.no_grad()
def spectrum_by_sketch(
    x: Float[Tensor, "count features"], leading: int, *, spare: int = 10, rounds: int = 8, seed: int = 0
) -> Spectrum:
    """Only the `leading` eigenpairs, from a random subspace turned towards them (Halko et al. 2011, algs. 4.4, 5.3).

        V ← orthonormal basis of Σ V,   `rounds` times from leading + spare random directions
        Vᵀ Σ V = R Λ Rᵀ,   U = V R

    A round shrinks what stands outside by λ_{leading+spare+1} / λ_leading. Products are in x's own type. Where features
    are so few that the covariance itself costs less than the rounds, it is formed and the pairs are exact. Bind the
    number of pairs with `partial`: PCA.fit(x, 50, solver=partial(spectrum_by_sketch, leading=50)).
    """
    count, features = x.shape
    if count == 0 or not 1 <= leading <= features:
        raise ValueError(f"need rows and 1 ≤ leading ≤ features; got leading={leading}, x of shape {tuple(x.shape)}")
    if spare < 0 or rounds < 0:
        raise ValueError(f"need spare ≥ 0 and rounds ≥ 0; got spare={spare}, rounds={rounds}")
    width = min(leading + spare, features)
    if features <= 4 * rounds * width:  # Xᵀ X takes count · features², a round 4 · count · features · width
        return spectrum_by_eigh(x, leading)
    mean = mean_of_rows(x)
    centred = x - mean.to(x.dtype)
    total = mean_of_rows(centred.square()).sum()
    if not bool(torch.isfinite(total)):
        raise ValueError(f"every number of x and its square must be finite in {x.dtype}; some are not")

    source = torch.Generator().manual_seed(seed)
    V = torch.linalg.qr(torch.randn(features, width, generator=source, dtype=torch.float64))[0].to(x)
    for _ in range(rounds):
        V = torch.linalg.qr(centred.mT @ (centred @ V))[0]
    scores = (centred @ V).double()
    eigenvalues, R = torch.linalg.eigh(scores.mT @ scores / count)
    eigenvalues = eigenvalues.flip(0).clamp(min=0)
    found = Spectrum(mean, eigenvalues, V.double() @ R.flip(1), (total - eigenvalues.sum()).clamp(min=0))
    return _first(found, leading)


def _first(spectrum: Spectrum, leading: int) -> Spectrum:
    """The leading pairs alone; the other eigenvalues are counted with the rest."""
    kept, left = spectrum.eigenvalues[:leading], spectrum.eigenvalues[leading:]
    return Spectrum(spectrum.mean, kept, spectrum.eigenvectors[:, :leading], spectrum.rest + left.sum())
