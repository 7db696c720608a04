"""Remedies against posterior collapse: free bits and KL annealing (book sec. 6.4)."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from parnassus.errors import check_non_negative
from parnassus.latent.variational.aggregated_posterior import rate_per_unit
from parnassus.latent.variational.reparametrisation import reparametrise
from parnassus.latent.variational.vae import VAE


@dataclass(frozen=True)
class FreeBits:
    """D + Σ_j max(`floor`, E_batch KL_j): a rate of up to `floor` nats per coordinate is not penalised.

    Below the floor the gradient of a coordinate's rate is 0; above it this is the negative ELBO (Kingma et al. 2016).
    With coordinates below the floor the value is still an upper bound of −log p(x), but not the negative ELBO.

    >>> decoder = BernoulliDecoder(nn.Linear(2, 5))
    >>> vae = VAE(nn.Linear(5, 4), decoder, latent_dim=2, objective=FreeBits(0.5))
    >>> vae.loss(torch.ones(3, 5)).shape
    torch.Size([])
    """

    floor: float = 0.1

    def __post_init__(self) -> None:
        check_non_negative(floor=self.floor)

    def __call__(self, model: VAE, x: Float[Tensor, "batch *event"], /) -> Float[Tensor, " batch"]:
        mean, log_variance = model.posterior_parameters(x)
        distortion = -model.log_likelihood(x, reparametrise(mean, log_variance))
        return distortion + rate_per_unit(mean, log_variance).clamp(min=self.floor).sum()


def linear_kl_annealing(step: int, num_steps: int, *, end: float = 1.0) -> float:
    """β, the weight of the rate: linear from 0 to `end` in `num_steps` steps (Bowman et al. 2016)."""
    _check_steps(step, num_steps)
    return end * min(1.0, step / num_steps)


def cyclical_kl_annealing(step: int, num_steps: int, *, ramp_fraction: float = 0.5, end: float = 1.0) -> float:
    """Cycles of `num_steps` steps, in which β rises linearly to `end` and stays (Fu et al. 2019)."""
    _check_steps(step, num_steps)
    if not 0 < ramp_fraction <= 1:
        raise ValueError(f"ramp_fraction must lie in (0, 1]; got ramp_fraction={ramp_fraction}")
    return end * min(1.0, step % num_steps / (ramp_fraction * num_steps))


def _check_steps(step: int, num_steps: int) -> None:
    if step < 0 or num_steps < 1:
        raise ValueError(f"step must not be negative and num_steps positive; got step={step}, num_steps={num_steps}")
