"""The importance-weighted ELBO of the IWAE (Burda et al. 2016, Diehl sec. 6)."""

from dataclasses import dataclass
from math import log

from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_positive
from parnassus.latent.variational.vae import VAE


@dataclass(frozen=True)
class ImportanceWeightedELBO:
    """−log (1/K) Σ_k p(x, z_k) / q(z_k|x), z_k ~ q: tighter as K grows (Burda et al. 2016; Diehl sec. 6).

    K = 1 is the negative ELBO with a sampled instead of an analytic rate.

    >>> objective = ImportanceWeightedELBO(samples=5)
    >>> vae = VAE(nn.Linear(5, 4), BernoulliDecoder(nn.Linear(2, 5)), latent_dim=2, objective=objective)
    >>> vae.loss(torch.ones(3, 5)).shape
    torch.Size([])
    """

    samples: int = 50

    def __post_init__(self) -> None:
        check_positive(samples=self.samples)

    def __call__(self, model: VAE, x: Float[Tensor, "batch *event"], /) -> Float[Tensor, " batch"]:
        return log(self.samples) - model.log_weights(x, self.samples).logsumexp(0)
