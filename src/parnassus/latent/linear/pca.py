"""Principal component analysis (PCA) in closed form (book sec. 4.3)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.latent.linear.covariance_spectrum import Spectrum, spectrum_by_eigh

EIGENVALUE_TOLERANCE = 1e-7
"""Eigenvalues below this are treated as 0: for data of order 1 in single precision they are rounding errors."""


@dataclass(frozen=True)
class PCA:
    """A mean and the `num_components` directions with the largest variance (book sec. 4.3).

        z = U_Kᵀ (x − x̄),   x̂ = x̄ + U_K z,   Σ u_i = λ_i u_i,   λ_1 ≥ λ_2 ≥ …
        ⟨‖x − x̂‖²⟩ = Σ_{i>K} λ_i                                                  (book eq. 4.7)

    Variances divide by the number of rows M, so that the error formula is exact on the training rows.
    The sign of a component is arbitrary; here its largest entry is positive.
    """

    mean: Float[Tensor, " features"]
    components: Float[Tensor, "features latent"]
    eigenvalues: Float[Tensor, " found"]
    remaining_variance: Float[Tensor, ""]
    """Sum of the eigenvalues that were not computed; zero if all were."""

    @classmethod
    @accepts_arrays
    def fit(
        cls,
        x: Float[Tensor, "count features"],
        num_components: int,
        *,
        solver: Callable[[Tensor], Spectrum] | None = None,
    ) -> "PCA":
        """Fit the rows of x, in the dtype of x, by the eigenvectors of their covariance.

        Other solvers: `spectrum_by_svd`, or for very many features
        `partial(spectrum_by_randomised_svd, num_components=num_components)`.
        """
        if not 1 <= num_components <= x.shape[1]:
            raise ValueError(
                "num_components must lie between 1 and the number of features; "
                f"got num_components={num_components}, features={x.shape[1]}"
            )
        spectrum = spectrum_by_eigh(x, num_components) if solver is None else solver(x)
        return cls.from_spectrum(spectrum, num_components).to(x)

    @classmethod
    def from_spectrum(cls, spectrum: Spectrum, num_components: int) -> "PCA":
        """The first `num_components` eigenvectors, each with its largest entry positive."""
        computed = spectrum.eigenvectors.shape[1]
        if not 1 <= num_components <= computed:
            raise ValueError(
                f"num_components must lie between 1 and the {computed} eigenvectors computed; "
                f"got num_components={num_components}"
            )
        components = spectrum.eigenvectors[:, :num_components]
        largest = components.gather(0, components.abs().argmax(0, keepdim=True))
        return cls(spectrum.mean, components * largest.sign(), spectrum.eigenvalues, spectrum.remaining_variance)

    def to(self, like: Tensor) -> "PCA":
        """The same fit in the dtype and on the device of `like`."""
        return PCA(
            self.mean.to(like), self.components.to(like), self.eigenvalues.to(like), self.remaining_variance.to(like)
        )

    @accepts_arrays
    def transform(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count latent"]:
        return (x - self.mean) @ self.components

    @accepts_arrays
    def inverse_transform(self, z: Float[Tensor, "count latent"]) -> Float[Tensor, "count features"]:
        return self.mean + z @ self.components.mT

    @accepts_arrays
    def reconstruct(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count features"]:
        """x̂, the orthogonal projection of x onto the principal subspace."""
        return self.inverse_transform(self.transform(x))

    def truncate(self, num_components: int) -> "PCA":
        """The fit with fewer components: they are the first ones of this fit."""
        fitted = self.components.shape[1]
        if not 1 <= num_components <= fitted:
            raise ValueError(
                f"num_components must lie between 1 and the {fitted} fitted; got num_components={num_components}"
            )
        return PCA(self.mean, self.components[:, :num_components], self.eigenvalues, self.remaining_variance)

    @accepts_arrays
    def reconstruction_errors(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count latent"]:
        """‖x − x̂_k‖² of each row with the first k = 1 … K components: ‖x − x̂_K‖² + Σ_{k<i≤K} z_i²."""
        outside = (x - self.reconstruct(x)).square().sum(1, keepdim=True)
        inside = self.transform(x).square()[:, 1:]
        return torch.cat([inside, outside], 1).flip(1).cumsum(1).flip(1)  # smallest terms first: no cancellation

    @property
    def explained_variance(self) -> Float[Tensor, " latent"]:
        """λ_1 … λ_K, the variances of the code's coordinates."""
        return self.eigenvalues[: self.components.shape[1]]

    @property
    def explained_variance_ratio(self) -> Float[Tensor, " latent"]:
        """λ_i / Σ_j λ_j: the fraction of the total variance that each component explains."""
        return self.explained_variance / (self.eigenvalues.sum() + self.remaining_variance)

    @property
    def residual_variance(self) -> Float[Tensor, ""]:
        """Σ_{i>K} λ_i, the mean of ‖x − x̂‖² over the training rows (book eq. 4.7)."""
        return self.eigenvalues[self.components.shape[1] :].sum() + self.remaining_variance
