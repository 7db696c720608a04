"""InfoVAE: the price of one code and the fit of all codes to the prior, weighed apart (book sec. 6.4)."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.latent.vae import VAE, reparametrise, standard_normal_kl
from parnassus.probability import RBF, Likeness, squared_mmd


@dataclass(frozen=True)
class InfoVAE:
    """Distortion, a share of the rate, and the distance of the aggregated posterior from the prior (Zhao et al. 2019).

        D + (1 − α) E_x KL(q(z|x) ‖ p(z)) + (α + λ − 1) MMD²(q(z), p(z))         (book sec. 6.4)

    The family is defined with KL(q(z) ‖ p(z)) in the last place, where α = 0, λ = 1 is the VAE and α + λ = 1 the β-VAE
    with β = λ. That divergence has no cheap estimate; a batch of codes and as many draws of the prior give the squared
    discrepancy under `kernel` in its stead, a much smaller number: give λ tens or hundreds. α = 1, the MMD-VAE, does
    not charge for what a code says of its image at all. Begin it with narrow posteriors (a log-variance of −4, say):
    codes that all lie like the prior from the start have no discrepancy to lose, and a large λ keeps them there.
    """

    alpha: float = 1.0
    lam: float = 100.0  # λ, a word that Python keeps for itself
    kernel: Likeness = field(default_factory=RBF)

    def __post_init__(self) -> None:
        if not self.alpha <= 1:
            raise ValueError(f"1 − α, the weight of the rate, must not be negative; got alpha={self.alpha}")
        if not self.alpha + self.lam >= 1:
            given = f"alpha={self.alpha}, lam={self.lam}"
            raise ValueError(f"α + λ − 1, the weight of the discrepancy, must not be negative; got {given}")

    def __call__(self, model: VAE, x: Float[Tensor, "batch *event"], /) -> Float[Tensor, " batch"]:
        mean, log_variance = model.moments(x)
        z = reparametrise(mean, log_variance)
        loss = -model.log_likelihood(x, z) + (1 - self.alpha) * standard_normal_kl(mean, log_variance)
        weight = self.alpha + self.lam - 1
        if weight == 0:
            return loss
        return loss + weight * squared_mmd(z, torch.randn_like(z), kernel=self.kernel)
