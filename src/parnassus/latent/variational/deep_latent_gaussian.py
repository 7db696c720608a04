"""Deep latent Gaussian models, and the linear case with exact evidence and posterior (Diehl ex. 6.4)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution, MultivariateNormal

from parnassus.errors import check_positive
from parnassus.latent.variational.full_covariance_vae import gaussian_from_parameters
from parnassus.probability import gaussian_kl


class FullCovarianceDecoder(nn.Module):
    """p(x|z) = N(μ(z), L(z) L(z)ᵀ): mean and full covariance of the observation from the code (Diehl ex. 6.4).

    `network` maps a code to `num_gaussian_parameters(features)` values. For diagonal covariances
    `HeteroscedasticGaussianDecoder` needs only 2·`features`.

    >>> decoder = FullCovarianceDecoder(nn.Linear(2, 3 + 6), features=3)
    >>> decoder(torch.zeros(4, 2)).sample().shape
    torch.Size([4, 3])
    """

    def __init__(self, network: nn.Module, features: int) -> None:
        super().__init__()
        check_positive(features=features)
        self.network = network
        self.features = features

    def forward(self, z: Float[Tensor, "batch latent"]) -> Distribution:
        return gaussian_from_parameters(self.network(z), self.features)


@dataclass(frozen=True)
class LinearGaussian:
    """The model with μ(z) = Wz + b and one covariance Σ for all z, with exact evidence and posterior (Diehl ex. 6.4).

        z ~ N(0, I),   x|z ~ N(Wz + b, Σ)
        x ~ N(b, WWᵀ + Σ)
        z|x ~ N(SWᵀΣ⁻¹(x − b), S),   S = (I + WᵀΣ⁻¹W)⁻¹

    Σ = σ² I is probabilistic PCA. It serves as ground truth for estimates of bounds and likelihoods.

    >>> model = LinearGaussian(torch.tensor([[2.0]]), torch.zeros(1), torch.eye(1))
    >>> model.evidence.covariance_matrix.tolist()
    [[5.0]]
    """

    weight: Float[Tensor, "features latent"]
    offset: Float[Tensor, " features"]
    covariance: Float[Tensor, "features features"]

    def likelihood(self, z: Float[Tensor, "*batch latent"]) -> MultivariateNormal:
        """p(x|z)."""
        return MultivariateNormal(z @ self.weight.mT + self.offset, self.covariance, validate_args=False)

    @property
    def evidence(self) -> MultivariateNormal:
        """p(x), the marginal likelihood."""
        return MultivariateNormal(self.offset, self.weight @ self.weight.mT + self.covariance, validate_args=False)

    def posterior(self, x: Float[Tensor, "*batch features"]) -> MultivariateNormal:
        """p(z|x); its covariance is the same for every x."""
        weighted = torch.linalg.solve(self.covariance, self.weight)  # Σ⁻¹W
        precision = torch.eye(self.weight.shape[1], dtype=x.dtype, device=x.device) + self.weight.mT @ weighted
        mean = torch.linalg.solve(precision, ((x - self.offset) @ weighted).mT).mT
        return MultivariateNormal(mean, precision_matrix=precision, validate_args=False)

    def elbo(
        self,
        x: Float[Tensor, "batch features"],
        mean: Float[Tensor, "batch latent"],
        covariance: Float[Tensor, "batch latent latent"],
    ) -> Float[Tensor, " batch"]:
        """The ELBO for q(z|x) = N(mean, covariance), in closed form (Diehl sec. 6).

        E_q log p(x|z) = log N(x; Wm + b, Σ) − ½ tr(Σ⁻¹ W S Wᵀ),   minus KL(N(m, S) ‖ N(0, I))
        """
        quadratic = self.weight.mT @ torch.linalg.solve(self.covariance, self.weight)
        fit: Tensor = self.likelihood(mean).log_prob(x) - (quadratic * covariance).sum((-2, -1)) / 2
        standard = torch.eye(self.weight.shape[1], dtype=x.dtype, device=x.device).expand_as(covariance)
        return fit - gaussian_kl(mean, covariance, torch.zeros_like(mean), standard)
