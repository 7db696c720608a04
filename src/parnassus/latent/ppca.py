"""Probabilistic PCA: a few latent numbers spread over many, and noise: a density for the data (book sec. 5.1)."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, pi

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import MultivariateNormal

from parnassus.latent.pca import PCA


@dataclass(frozen=True)
class PPCA:
    """ν ~ N(0, I_K), x = W ν + μ + σ ε: a density over all N dimensions whose code has K (book sec. 5.1).

        x ~ N(μ, C),   C = W Wᵀ + σ² I_N
        p(ν | x) = N(M⁻¹ Wᵀ (x − μ), σ² M⁻¹),   M = Wᵀ W + σ² I_K              (book eq. 5.3, put right)

    In print (5.3) has W Wᵀ in the place of Wᵀ W, an N × N matrix that cannot act on K numbers. Everything here works
    with M, which is K × K. W R does as well as W for every rotation R of the code (Tipping & Bishop 1999).
    """

    mean: Float[Tensor, " features"]
    W: Float[Tensor, "features latent"]
    variance: Float[Tensor, ""]
    """σ², that of the noise."""

    def __post_init__(self) -> None:
        if not bool(self.variance > 0):
            raise ValueError(
                f"the noise variance must be positive for a density to exist; got σ²={float(self.variance):g}: "
                "do the data lie on a plane of as many dimensions as the code?"
            )

    @classmethod
    def fit(cls, x: Float[Tensor, "count features"], latent: int) -> "PPCA":
        """The maximum of the likelihood, in closed form from the principal components of x (book sec. 5.1)."""
        return cls.from_pca(PCA.fit(x, latent))

    @classmethod
    def from_pca(cls, pca: PCA) -> "PPCA":
        """μ = x̄,  σ² = (1/(N−K)) Σ_{i>K} λ_i,  W = U_K (Λ_K − σ² I)^{1/2} (book sec. 5.1; σ² is not in print)."""
        features, latent = pca.components.shape
        if latent >= features:
            raise ValueError(f"noise needs a direction of its own: latent < features; got {latent} of {features}")
        variance = pca.residual / (features - latent)
        return cls(pca.mean, pca.components * (pca.variances - variance).clamp(min=0).sqrt(), variance)

    @property
    def covariance(self) -> Float[Tensor, "features features"]:
        """C = W Wᵀ + σ² I: K eigenvalues above σ², the other N − K equal to it."""
        return self.W @ self.W.mT + self.variance * torch.eye(len(self.W)).to(self.W)

    def transform(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count latent"]:
        """E[ν | x] = M⁻¹ Wᵀ (x − μ) (book eq. 5.3, put right); for σ² → 0 it is pInv(W) (x − μ)."""
        return torch.cholesky_solve(((x - self.mean) @ self.W).mT, self._cholesky()).mT

    def posterior(self, x: Float[Tensor, "count features"]) -> MultivariateNormal:
        """p(ν | x) of each row; its covariance σ² M⁻¹ is the same for all (book eq. 5.3, put right)."""
        covariance = self.variance * torch.cholesky_inverse(self._cholesky())
        return MultivariateNormal(self.transform(x), covariance)

    def inverse(self, v: Float[Tensor, "*count latent"]) -> Float[Tensor, "*count features"]:
        """W ν + μ, the mean of x under this code."""
        return self.mean + v @ self.W.mT

    def reconstruct(self, x: Float[Tensor, "count features"]) -> Float[Tensor, "count features"]:
        """W E[ν | x] + μ: nearer to μ than PCA's projection, since noise explains a part; the same for σ² → 0."""
        return self.inverse(self.transform(x))

    def log_prob(self, x: Float[Tensor, "count features"]) -> Float[Tensor, " count"]:
        """The log-density of each row; their sum is the log-likelihood (book eqs. 5.1-5.2, put right).

            ln p(x) = −(N/2) ln 2π − ½ ln|C| − ½ (x−μ)ᵀ C⁻¹ (x−μ)
            ln|C| = (N−K) ln σ² + ln|M|
            (x−μ)ᵀ C⁻¹ (x−μ) = ‖x − μ − W ν̂‖² / σ² + ‖ν̂‖²,   ν̂ = E[ν | x]

        Both squares are positive, so that nothing cancels when σ² is small. In print the constant is +(NK/2) ln 2π.
        """
        features, latent = self.W.shape
        code = self.transform(x)
        misfit = (x - self.inverse(code)).square().sum(1) / self.variance
        log_det = (features - latent) * self.variance.log() + 2 * self._cholesky().diagonal().log().sum()
        return -(features * log(2 * pi) + log_det + misfit + code.square().sum(1)) / 2

    def sample(self, count: int, *, generator: torch.Generator | None = None) -> Float[Tensor, "count features"]:
        """Draws W ν + μ + σ ε."""
        features, latent = self.W.shape
        v = torch.randn(count, latent, generator=generator, dtype=self.W.dtype, device=self.W.device)
        noise = torch.randn(count, features, generator=generator, dtype=self.W.dtype, device=self.W.device)
        return self.inverse(v) + self.variance.sqrt() * noise

    def rotated(self, R: Float[Tensor, "latent latent"]) -> "PPCA":
        """The same density from W R, for orthogonal R."""
        return PPCA(self.mean, self.W @ R, self.variance)

    def _cholesky(self) -> Tensor:
        """L Lᵀ = M = Wᵀ W + σ² I_K."""
        M = self.W.mT @ self.W + self.variance * torch.eye(self.W.shape[1]).to(self.W)
        factor: Tensor = torch.linalg.cholesky(M)
        return factor


def em_round(model: PPCA, x: Float[Tensor, "count features"]) -> PPCA:
    """One round of expectation and maximisation; the likelihood of x does not fall (Tipping & Bishop 1999).

        ν̂ = M⁻¹ Wᵀ (x − μ),   ⟨ν νᵀ⟩ = σ² M⁻¹ + ⟨ν̂ ν̂ᵀ⟩                        expectation
        W ← ⟨(x − μ) ν̂ᵀ⟩ ⟨ν νᵀ⟩⁻¹                                              maximisation
        σ² ← (⟨‖x − μ‖²⟩ − tr Wᵀ ⟨(x − μ) ν̂ᵀ⟩) / N

    Means run over rows; μ = x̄ from the beginning. A round costs
    rows × features × latent and needs no features × features matrix.
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


def em_rounds(x: Float[Tensor, "count features"], latent: int, *, rounds: int, seed: int = 0) -> Iterator[PPCA]:
    """The models after 0, 1, … `rounds` rounds of EM, from a random W and all variance in the noise."""
    if not 1 <= latent < x.shape[1] or rounds < 0:
        sizes = f"latent={latent}, features={x.shape[1]}, rounds={rounds}"
        raise ValueError(f"need 1 ≤ latent < features and rounds ≥ 0; got {sizes}")
    mean = x.mean(0)
    variance = (x - mean).square().mean()
    source = torch.Generator().manual_seed(seed)
    W = variance.sqrt() * torch.randn(x.shape[1], latent, generator=source, dtype=torch.float64).to(x)
    model = PPCA(mean, W, variance)
    yield model
    for _ in range(rounds):
        model = em_round(model, x)
        yield model
