"""Principal components: the linear code of least squared error, in closed form (book sec. 4.3)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.latent.projection import second_moment

Spectrum: TypeAlias = tuple[Tensor, Tensor]
"""Eigenvalues, largest first, and the eigenvectors as columns in the same order."""


def spectrum_by_eigh(x: Float[Tensor, "count features"]) -> Spectrum:
    """Eigenpairs of the covariance Σ = (1/M) (X − x̄)ᵀ (X − x̄): quick when rows are many (book sec. 4.3)."""
    eigenvalues, eigenvectors = torch.linalg.eigh(second_moment(x - x.mean(0)))
    return eigenvalues.flip(0).clamp(min=0), eigenvectors.flip(1)


def spectrum_by_svd(x: Float[Tensor, "count features"]) -> Spectrum:
    """The same pairs from X − x̄ = A S Uᵀ as λ_i = s_i² / M; keeps small λ_i that Σ rounds away."""
    rows, features = x.shape
    _, s, Ut = torch.linalg.svd(x - x.mean(0), full_matrices=rows < features)
    eigenvalues = x.new_zeros(features)
    eigenvalues[: len(s)] = s.square() / rows
    return eigenvalues, Ut.mT


@dataclass(frozen=True)
class PCA:
    """A mean and the `latent` directions of largest variance through it (book sec. 4.3).

        z = U_Kᵀ (x − x̄),   x̂ = x̄ + U_K z,   Σ u_i = λ_i u_i,   λ_1 ≥ λ_2 ≥ …
        ⟨‖x − x̂‖²⟩ = Σ_{i>K} λ_i                                                  (book eq. 4.7)

    Variances divide by the number of rows M, so that the error formula is exact on the rows fitted.
    Signs are free in the mathematics; here the largest entry of each component is positive.
    """

    mean: Float[Tensor, " features"]
    components: Float[Tensor, "features latent"]
    eigenvalues: Float[Tensor, " features"]

    @classmethod
    def fit(
        cls,
        x: Float[Tensor, "count features"],
        latent: int,
        *,
        solver: Callable[[Tensor], Spectrum] = spectrum_by_eigh,
    ) -> "PCA":
        """The best `latent` directions for the rows of x, found in float64 and returned in x's own type."""
        if not 1 <= latent <= x.shape[1]:
            raise ValueError(f"latent must lie between 1 and the number of features; got {latent} of {x.shape[1]}")
        eigenvalues, eigenvectors = solver(x.double())
        components = eigenvectors[:, :latent]
        largest = components.gather(0, components.abs().argmax(0, keepdim=True))
        components = components * largest.sign()
        return cls(x.double().mean(0).to(x), components.to(x), eigenvalues.to(x))

    def transform(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count latent"]:
        return (x - self.mean) @ self.components

    def inverse(self, z: Float[Tensor, "count latent"]) -> Float[Tensor, "count features"]:
        return self.mean + z @ self.components.mT

    def reconstruct(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count features"]:
        """x̂, the point nearest to x in the fitted plane."""
        return self.inverse(self.transform(x))

    def keep(self, latent: int) -> "PCA":
        """The fit of fewer components: the best directions for each size are the first of those for a larger one."""
        if not 1 <= latent <= self.components.shape[1]:
            raise ValueError(f"latent must lie between 1 and the {self.components.shape[1]} fitted; got {latent}")
        return PCA(self.mean, self.components[:, :latent], self.eigenvalues)

    def errors(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count latent"]:
        """‖x − x̂_k‖² of each row with the first k = 1 … K components: outside the plane and Σ_{k<i≤K} z_i² inside."""
        outside = (x - self.reconstruct(x)).square().sum(1, keepdim=True)
        left_out = self.transform(x).square()[:, 1:]
        return torch.cat([left_out, outside], 1).flip(1).cumsum(1).flip(1)  # smallest first: nothing cancels

    @property
    def variances(self) -> Float[Tensor, " latent"]:
        """λ_1 … λ_K, the variances of the code's coordinates."""
        return self.eigenvalues[: self.components.shape[1]]

    @property
    def explained(self) -> Float[Tensor, " latent"]:
        """λ_i / Σ_j λ_j: the share of the total variance that each component carries."""
        return self.variances / self.eigenvalues.sum()

    @property
    def residual(self) -> Float[Tensor, ""]:
        """Σ_{i>K} λ_i, the mean of ‖x − x̂‖² over the rows fitted (book eq. 4.7)."""
        return self.eigenvalues[self.components.shape[1] :].sum()
