"""InfoVAE: separate weights for the rate and for the distance of q(z) from the prior (book sec. 6.4)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.latent.variational.reparametrisation import reparametrise, standard_normal_kl
from parnassus.latent.variational.vae import VAE
from parnassus.probability import PairwiseKernel, rbf_kernel, squared_mmd


@dataclass(frozen=True)
class InfoVAE:
    """Distortion, weighted rate, and distance of the aggregated posterior from the prior (Zhao et al. 2019).

        D + (1 − α) E_x KL(q(z|x) ‖ p(z)) + (α + λ − 1) MMD²(q(z), p(z))         (book sec. 6.4)

    The family is defined with KL(q(z) ‖ p(z)) as the last term, where α = 0, λ = 1 is the VAE and α + λ = 1 the β-VAE
    with β = λ. That divergence has no cheap estimate; it is replaced by the squared MMD under `kernel` between a batch
    of codes and as many samples of the prior, a much smaller number: use λ of tens or hundreds. α = 1, the MMD-VAE,
    does not penalise the mutual information of code and data. Initialise it with narrow posteriors (log-variance of
    about −4): if q(z) matches the prior from the start, a large λ keeps the codes uninformative.

    >>> objective = InfoVAE(alpha=1.0, lam=10.0)
    >>> vae = VAE(nn.Linear(5, 4), BernoulliDecoder(nn.Linear(2, 5)), latent_dim=2, objective=objective)
    >>> vae.loss(torch.ones(3, 5)).shape
    torch.Size([])
    """

    alpha: float = 1.0
    lam: float = 100.0  # λ; `lambda` is a keyword
    kernel: PairwiseKernel = rbf_kernel

    def __post_init__(self) -> None:
        if not self.alpha <= 1:
            raise ValueError(f"1 − alpha, the weight of the rate, must not be negative; got alpha={self.alpha}")
        if not self.alpha + self.lam >= 1:
            given = f"alpha={self.alpha}, lam={self.lam}"
            raise ValueError(f"alpha + lam − 1, the weight of the MMD, must not be negative; got {given}")

    def __call__(self, model: VAE, x: Float[Tensor, "batch *event"], /) -> Float[Tensor, " batch"]:
        mean, log_variance = model.posterior_parameters(x)
        z = reparametrise(mean, log_variance)
        loss = -model.log_likelihood(x, z) + (1 - self.alpha) * standard_normal_kl(mean, log_variance)
        weight = self.alpha + self.lam - 1
        if weight == 0:
            return loss
        return loss + weight * squared_mmd(z, torch.randn_like(z), kernel=self.kernel)
