"""What a variational autoencoder may minimise: the ELBO, weighted, or a tighter bound (book secs. 6.2, 6.4)."""

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

if TYPE_CHECKING:
    from parnassus.latent.vae import VAE


@runtime_checkable
class Objective(Protocol):
    """A loss for each row of x, least where the model is best."""

    def __call__(self, model: "VAE", x: Float[Tensor, "batch *event"], /) -> Float[Tensor, " batch"]: ...


@dataclass(frozen=True)
class NegativeELBO:
    """distortion + β · rate, an upper bound of −log p(x) at β = 1 (book eqs. 6.13, 6.21).

    β = 0 is a stochastic autoencoder, β = 1 the variational autoencoder, β > 1 buys a lower rate with distortion.
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        if not self.beta >= 0:
            raise ValueError(f"the weight of the rate must not be negative; got beta={self.beta}")

    def __call__(self, model: "VAE", x: Float[Tensor, "batch *event"], /) -> Float[Tensor, " batch"]:
        terms = model.terms(x)
        return terms.distortion.add(terms.rate, alpha=self.beta)


@dataclass(frozen=True)
class ImportanceWeighted:
    """−log (1/K) Σ_k p(x, z_k) / q(z_k|x), z_k ~ q: tighter with every sample (Burda et al. 2016; Diehl sec. 6).

    K = 1 is the negative ELBO without its analytic rate.
    """

    samples: int = 50

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"an average needs at least one sample; got samples={self.samples}")

    def __call__(self, model: "VAE", x: Float[Tensor, "batch *event"], /) -> Float[Tensor, " batch"]:
        return log(self.samples) - model.log_weights(x, self.samples).logsumexp(0)
