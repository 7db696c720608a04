"""Probabilistic PCA: a Gaussian density with a low-dimensional latent variable (book sec. 5.1)."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, pi

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.arrays import accepts_arrays
from parnassus.latent.linear.pca import PCA
from parnassus.short_repr import short_repr


@dataclass(frozen=True)
class PPCA:
    """ν ~ N(0, I_K), x = W ν + μ + σ ε: a density in N dimensions with a latent variable in K (book sec. 5.1).

        x ~ N(μ, C),   C = W Wᵀ + σ² I_N
        p(ν | x) = N(M⁻¹ Wᵀ (x − μ), σ² M⁻¹),   M = Wᵀ W + σ² I_K              (book eq. 5.3, corrected)

    Eq. 5.3 is printed with W Wᵀ instead of Wᵀ W, an N × N matrix that cannot act on K coordinates. Only the K × K
    matrix M is inverted. W R gives the same density as W for every rotation R of the code (Tipping & Bishop 1999).

    >>> _ = torch.manual_seed(0)
    >>> PPCA.fit(torch.randn(100, 5), latent_dim=2).covariance.shape
    torch.Size([5, 5])
    """

    mean: Float[Tensor, " features"]
    W: Float[Tensor, "features latent"]
    variance: Float[Tensor, ""]
    """σ², the noise variance."""

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if not bool(self.variance > 0):
            raise ValueError(
                f"the noise variance must be positive for a density to exist; got σ²={float(self.variance):g}: "
                "the data may lie in a subspace of as many dimensions as the code"
            )

    @classmethod
    @accepts_arrays
    def fit(cls, x: Float[Tensor, "count features"], latent_dim: int) -> "PPCA":
        """The maximum-likelihood fit, in closed form from the principal components of x (book sec. 5.1)."""
        return cls.from_pca(PCA.fit(x, latent_dim))

    @classmethod
    def from_pca(cls, pca: PCA) -> "PPCA":
        """μ = x̄,  σ² = (1/(N−K)) Σ_{i>K} λ_i,  W = U_K (Λ_K − σ² I)^{1/2} (book sec. 5.1, which omits σ²)."""
        features, latent_dim = pca.components.shape
        if latent_dim >= features:
            raise ValueError(
                f"latent_dim must be smaller than features; got latent_dim={latent_dim}, features={features}"
            )
        variance = pca.residual_variance / (features - latent_dim)
        return cls(pca.mean, pca.components * (pca.explained_variance - variance).clamp(min=0).sqrt(), variance)

    @property
    def covariance(self) -> Float[Tensor, "features features"]:
        """C = W Wᵀ + σ² I: K eigenvalues above σ², the other N − K equal to it."""
        return self.W @ self.W.mT + self.variance * torch.eye(len(self.W), dtype=self.W.dtype, device=self.W.device)

    @property
    def scaled_precision(self) -> Float[Tensor, "latent latent"]:
        """M = Wᵀ W + σ² I_K, the posterior precision times σ²."""
        return self.W.mT @ self.W + self.variance * torch.eye(self.W.shape[1], dtype=self.W.dtype, device=self.W.device)

    @accepts_arrays
    def transform(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count latent"]:
        """E[ν | x] = M⁻¹ Wᵀ (x − μ) (book eq. 5.3, corrected); pInv(W) (x − μ) in the limit σ² → 0."""
        return torch.cholesky_solve(((x - self.mean) @ self.W).mT, self._cholesky()).mT

    @accepts_arrays
    def posterior(self, x: Float[Tensor, "count features"]) -> MultivariateNormal:
        """p(ν | x) of each row; its covariance σ² M⁻¹ is the same for all (book eq. 5.3, corrected)."""
        covariance = self.variance * torch.cholesky_inverse(self._cholesky())
        return MultivariateNormal(self.transform(x), covariance)

    @accepts_arrays
    def inverse_transform(self, v: Float[Tensor, "*count latent"]) -> Float[Tensor, "*count features"]:
        """W ν + μ, the mean of x under this code."""
        return self.mean + v @ self.W.mT

    @accepts_arrays
    def reconstruct(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count features"]:
        """W E[ν | x] + μ: shrunk towards μ compared with PCA's projection, which is its limit for σ² → 0."""
        return self.inverse_transform(self.transform(x))

    @accepts_arrays
    def log_prob(self, x: Float[Tensor, "count features"]) -> Float[Tensor, " count"]:
        """The log-density of each row; their sum is the log-likelihood (book eqs. 5.1-5.2, corrected).

            ln p(x) = −(N/2) ln 2π − ½ ln|C| − ½ (x−μ)ᵀ C⁻¹ (x−μ)
            ln|C| = (N−K) ln σ² + ln|M|
            (x−μ)ᵀ C⁻¹ (x−μ) = ‖x − μ − W ν̂‖² / σ² + ‖ν̂‖²,   ν̂ = E[ν | x]

        Both squares are positive, so nothing cancels when σ² is small. The printed constant is +(NK/2) ln 2π.
        """
        features, latent_dim = self.W.shape
        code = self.transform(x)
        misfit = (x - self.inverse_transform(code)).square().sum(1) / self.variance
        log_det = (features - latent_dim) * self.variance.log() + 2 * self._cholesky().diagonal().log().sum()
        return -(features * log(2 * pi) + log_det + misfit + code.square().sum(1)) / 2

    def sample(self, count: int, *, generator: torch.Generator | None = None) -> Float[Tensor, "count features"]:
        """Samples W ν + μ + σ ε."""
        features, latent_dim = self.W.shape
        v = torch.randn(count, latent_dim, generator=generator, dtype=self.W.dtype, device=self.W.device)
        noise = torch.randn(count, features, generator=generator, dtype=self.W.dtype, device=self.W.device)
        return self.inverse_transform(v) + self.variance.sqrt() * noise

    def rotate(self, R: Float[Tensor, "latent latent"]) -> "PPCA":
        """The same density with W R in place of W, for orthogonal R."""
        return PPCA(self.mean, self.W @ R, self.variance)

    def _cholesky(self) -> Tensor:
        """L Lᵀ = M."""
        factor: Tensor = torch.linalg.cholesky(self.scaled_precision)
        return factor


def ppca_em_step(model: PPCA, x: Float[Tensor, "count features"]) -> PPCA:
    """One EM iteration; the likelihood of x does not decrease (Tipping & Bishop 1999).

        ν̂ = M⁻¹ Wᵀ (x − μ),   ⟨ν νᵀ⟩ = σ² M⁻¹ + ⟨ν̂ ν̂ᵀ⟩                        expectation
        W ← ⟨(x − μ) ν̂ᵀ⟩ ⟨ν νᵀ⟩⁻¹                                              maximisation
        σ² ← (⟨‖x − μ‖²⟩ − tr Wᵀ ⟨(x − μ) ν̂ᵀ⟩) / N

    Means run over rows; μ = x̄ throughout. An iteration costs O(rows × features × latent_dim) and needs no
    features × features matrix.
    """
    features = len(model.W)
    centred = x - model.mean
    posterior = model.posterior(x)
    code = posterior.mean
    second = posterior.covariance_matrix[0] + code.mT @ code / len(x)
    cross = centred.mT @ code / len(x)
    W: Tensor = torch.linalg.solve(second, cross.mT).mT
    variance = (centred.square().sum() / len(x) - (W * cross).sum()) / features
    return PPCA(model.mean, W, variance)


def ppca_em_iterates(
    x: Float[Tensor, "count features"], latent_dim: int, *, num_iterations: int, seed: int = 0
) -> Iterator[PPCA]:
    """The models after 0, 1, … `num_iterations` EM iterations, from a random W and the total variance as noise."""
    if not 1 <= latent_dim < x.shape[1] or num_iterations < 0:
        sizes = f"latent_dim={latent_dim}, features={x.shape[1]}, num_iterations={num_iterations}"
        raise ValueError(f"need 1 ≤ latent_dim < features and num_iterations ≥ 0; got {sizes}")
    mean = x.mean(0)
    variance = (x - mean).square().mean()
    generator = torch.Generator().manual_seed(seed)
    W = variance.sqrt() * torch.randn(x.shape[1], latent_dim, generator=generator, dtype=torch.float64).to(x)
    model = PPCA(mean, W, variance)
    yield model
    for _ in range(num_iterations):
        model = ppca_em_step(model, x)
        yield model
