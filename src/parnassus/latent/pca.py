"""Principal components: the linear code of least squared error, in closed form (book sec. 4.3)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.latent.spectrum import Spectrum, spectrum_by_eigh


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
    eigenvalues: Float[Tensor, " found"]
    rest: Float[Tensor, ""]
    """Σ of the eigenvalues that were not looked for; zero when all were found."""

    @classmethod
    def fit(
        cls,
        x: Float[Tensor, "count features"],
        latent: int,
        *,
        solver: Callable[[Tensor], Spectrum] | None = None,
    ) -> "PCA":
        """The best `latent` directions for the rows of x, in x's own type, by the eigenvectors of the covariance.

        Another solver: `spectrum_by_svd`, or `partial(spectrum_by_sketch, leading=latent)` for very many features.
        """
        if not 1 <= latent <= x.shape[1]:
            raise ValueError(f"latent must lie between 1 and the number of features; got {latent} of {x.shape[1]}")
        spectrum = spectrum_by_eigh(x, latent) if solver is None else solver(x)
        return cls.from_spectrum(spectrum, latent).to(x)

    @classmethod
    def from_spectrum(cls, spectrum: Spectrum, latent: int) -> "PCA":
        """The first `latent` eigenvectors, each with its largest entry positive."""
        found = spectrum.eigenvectors.shape[1]
        if not 1 <= latent <= found:
            raise ValueError(f"latent must lie between 1 and the {found} eigenvectors found; got {latent}")
        components = spectrum.eigenvectors[:, :latent]
        largest = components.gather(0, components.abs().argmax(0, keepdim=True))
        return cls(spectrum.mean, components * largest.sign(), spectrum.eigenvalues, spectrum.rest)

    def to(self, like: Tensor) -> "PCA":
        """The same fit in the type and on the device of `like`."""
        return PCA(self.mean.to(like), self.components.to(like), self.eigenvalues.to(like), self.rest.to(like))

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
        return PCA(self.mean, self.components[:, :latent], self.eigenvalues, self.rest)

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
        return self.variances / (self.eigenvalues.sum() + self.rest)

    @property
    def residual(self) -> Float[Tensor, ""]:
        """Σ_{i>K} λ_i, the mean of ‖x − x̂‖² over the rows fitted (book eq. 4.7)."""
        return self.eigenvalues[self.components.shape[1] :].sum() + self.rest
