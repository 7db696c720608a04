"""Multivariate normal distributions, with regular or singular covariance (Diehl sec. 5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, pi
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Root: TypeAlias = Callable[[Tensor], Tensor]
"""A function that maps a covariance Σ to some R with R Rᵀ = Σ."""


def cholesky_root(covariance: Float[Tensor, "*batch dim dim"]) -> Float[Tensor, "*batch dim dim"]:
    """The lower triangular L with L Lᵀ = Σ; Σ must be positive definite (Diehl sec. 5)."""
    root: Tensor
    root, failed = torch.linalg.cholesky_ex(covariance)
    if bool(failed.any()):
        raise ValueError("cholesky_root needs a positive definite covariance; use eigen_root for a singular one")
    return root


def eigen_root(covariance: Float[Tensor, "*batch dim dim"]) -> Float[Tensor, "*batch dim dim"]:
    """R = V √Λ with R Rᵀ = Σ = V Λ Vᵀ; Σ may be singular (Diehl sec. 5)."""
    eigenvalues, eigenvectors = torch.linalg.eigh(covariance)
    is_positive = is_numerically_positive(eigenvalues)
    scales = torch.where(is_positive, torch.where(is_positive, eigenvalues, 1).sqrt(), 0)  # √ has no derivative at 0
    root: Tensor = eigenvectors * scales[..., None, :]
    return root


def is_numerically_positive(eigenvalues: Float[Tensor, "*batch dim"]) -> Bool[Tensor, "*batch dim"]:
    """Mask of the eigenvalues above the rounding error of the largest: λ_i > dim · ε · λ_max."""
    rounding = eigenvalues.shape[-1] * torch.finfo(eigenvalues.dtype).eps
    return eigenvalues > rounding * eigenvalues.abs().amax(-1, keepdim=True)


def gaussian_log_density(
    x: Float[Tensor, "*#batch dim"], *, mean: Float[Tensor, "*#batch dim"], covariance: Float[Tensor, "*#batch dim dim"]
) -> Float[Tensor, "*#batch"]:
    """The log-density of a normal distribution with positive definite Σ, by Σ = L Lᵀ (Diehl sec. 5).

    p(x) = (2π)^(−d/2) det(Σ)^(−1/2) exp(−½ (x − μ)ᵀ Σ⁻¹ (x − μ))
    ½ log det Σ = Σ_i log L_ii,   (x − μ)ᵀ Σ⁻¹ (x − μ) = ‖L⁻¹ (x − μ)‖²
    """
    L = cholesky_root(covariance)
    whitened: Tensor = torch.linalg.solve_triangular(L, (x - mean)[..., None], upper=False)[..., 0]
    half_log_det: Tensor = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return -whitened.square().sum(-1) / 2 - half_log_det - x.shape[-1] * log(2 * pi) / 2


@dataclass(frozen=True)
class Gaussian:
    """N(μ, Σ) with positive semi-definite Σ, supported on the affine subspace μ + range Σ (Diehl sec. 5).

        aᵀX ~ N(aᵀμ, aᵀΣa) for every a,   N(m, 0) = δ_m

    Leading axes of mean and covariance are batch axes and broadcast. The notes define only N(0, 0).
    """

    mean: Float[Tensor, "*#batch dim"]
    covariance: Float[Tensor, "*#batch size size"]

    def __post_init__(self) -> None:
        covariance = self.covariance.detach()
        if self.mean.shape[-1] != covariance.shape[-1]:
            raise ValueError(
                f"mean and covariance must have the same size; got {self.mean.shape[-1]} and {covariance.shape[-1]}"
            )
        if not bool(covariance.isfinite().all() and self.mean.isfinite().all()):
            raise ValueError("mean and covariance must be finite; got NaN or ∞")
        size = float(covariance.abs().max())
        tolerance = size * torch.finfo(covariance.dtype).eps ** 0.5
        asymmetry = float((covariance - covariance.mT).abs().max())
        if asymmetry > tolerance:
            raise ValueError(f"a covariance must be symmetric; two opposite entries differ by {asymmetry:g}")
        smallest = float(torch.linalg.eigvalsh(covariance).min())
        if smallest < -tolerance:
            raise ValueError(f"a covariance must not have negative eigenvalues; the smallest is {smallest:g}")

    @cached_property
    def _spectrum(self) -> tuple[Tensor, Tensor]:
        eigenvalues, eigenvectors = torch.linalg.eigh(self.covariance)
        return eigenvalues, eigenvectors

    @property
    def rank(self) -> Tensor:
        """Dimension of the support, one value per batch entry."""
        return is_numerically_positive(self._spectrum[0]).sum(-1)

    def sample(
        self, count: int, *, root: Root = eigen_root, generator: torch.Generator | None = None
    ) -> Float[Tensor, "count *batch dim"]:
        """Samples μ + R ε with R Rᵀ = Σ and ε ~ N(0, I)."""
        shape = torch.broadcast_shapes(self.mean.shape[:-1], self.covariance.shape[:-2])
        noise = torch.randn(
            (count, *shape, self.mean.shape[-1]),
            generator=generator,
            dtype=self.mean.dtype,
            device=self.mean.device,
        )
        return self.mean + (root(self.covariance) @ noise[..., None])[..., 0]

    def log_prob(self, x: Float[Tensor, "*#batch dim"]) -> Float[Tensor, "*#batch"]:
        """The log-density with respect to Lebesgue measure on the support μ + range Σ; −∞ outside it.

            −½ Σ_i (log(2πλ_i) + (v_iᵀ(x − μ))² / λ_i) over the positive eigenvalues λ_i

        A point mass has log-density 0 at its location.
        """
        eigenvalues, eigenvectors = self._spectrum
        is_positive = is_numerically_positive(eigenvalues)
        coordinates = (eigenvectors.mT @ (x - self.mean)[..., None])[..., 0]
        safe = torch.where(is_positive, eigenvalues, 1)
        terms = torch.where(is_positive, (2 * pi * safe).log() + coordinates.square() / safe, 0)
        outside: Tensor = torch.linalg.vector_norm(torch.where(is_positive, 0, coordinates), dim=-1)
        size = torch.linalg.vector_norm(x, dim=-1) + torch.linalg.vector_norm(self.mean, dim=-1)
        return torch.where(outside <= torch.finfo(x.dtype).eps ** 0.5 * size, -terms.sum(-1) / 2, -torch.inf)

    def moment_generating_function(self, a: Float[Tensor, "*#batch dim"]) -> Float[Tensor, "*#batch"]:
        """E exp⟨a, X⟩ = exp(⟨a, μ⟩ + ½ aᵀΣa); the notes omit the mean (Diehl thm. 5.3)."""
        quadratic = (a * (self.covariance @ a[..., None])[..., 0]).sum(-1)
        return ((a * self.mean).sum(-1) + quadratic / 2).exp()

    def affine(self, A: Float[Tensor, "*#batch out dim"], b: float | Float[Tensor, "*#batch out"] = 0.0) -> "Gaussian":
        """The distribution N(Aμ + b, AΣAᵀ) of AX + b, for a matrix A of any shape and rank (Diehl thm. 5.3)."""
        return Gaussian((A @ self.mean[..., None])[..., 0] + b, symmetrise(A @ self.covariance @ A.mT))

    def marginal(self, coordinates: Sequence[int]) -> "Gaussian":
        """The marginal distribution of the given coordinates, in the given order."""
        indices = list(coordinates)
        return Gaussian(self.mean[..., indices], self.covariance[..., indices, :][..., indices])


def independent_sum(first: Gaussian, second: Gaussian) -> Gaussian:
    """The distribution N(μ + ν, Σ + Λ) of X + Y for independent X ~ N(μ, Σ), Y ~ N(ν, Λ) (Diehl thm. 5.3)."""
    return Gaussian(first.mean + second.mean, first.covariance + second.covariance)


def joint_of_independent(first: Gaussian, second: Gaussian) -> Gaussian:
    """The joint distribution of independent X and Y, with block-diagonal covariance (Diehl thm. 5.3)."""
    batch = torch.broadcast_shapes(
        first.mean.shape[:-1], second.mean.shape[:-1], first.covariance.shape[:-2], second.covariance.shape[:-2]
    )
    n, m = first.mean.shape[-1], second.mean.shape[-1]
    mean = torch.cat([first.mean.expand(*batch, n), second.mean.expand(*batch, m)], -1)
    covariance = mean.new_zeros(*batch, n + m, n + m)
    covariance[..., :n, :n] = first.covariance
    covariance[..., n:, n:] = second.covariance
    return Gaussian(mean, covariance)


def symmetrise(matrix: Float[Tensor, "*batch dim dim"]) -> Float[Tensor, "*batch dim dim"]:
    """½ (M + Mᵀ), which removes asymmetry due to rounding."""
    return (matrix + matrix.mT) / 2
