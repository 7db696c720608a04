"""Against posterior collapse, where codes fall silent: weights that grow and a rate that is free (book sec. 6.4)."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from parnassus.latent.aggregate import rate_by_unit
from parnassus.latent.vae import VAE, reparametrise


@dataclass(frozen=True)
class FreeBits:
    """D + Σ_j max(`floor`, E_batch KL_j): no coordinate saves anything by saying less than `floor` nats.

    Below the floor the slope of a coordinate's rate is 0, so it may speak for nothing; above it this is the negative
    ELBO (Kingma et al. 2016). The value is no bound of its own for coordinates below: what counts is the rate.
    """

    floor: float = 0.1

    def __post_init__(self) -> None:
        if not self.floor >= 0:
            raise ValueError(f"the nats given for free must not be negative; got floor={self.floor}")

    def __call__(self, model: VAE, x: Float[Tensor, "batch *event"], /) -> Float[Tensor, " batch"]:
        mean, log_variance = model.moments(x)
        distortion = -model.log_likelihood(x, reparametrise(mean, log_variance))
        return distortion + rate_by_unit(mean, log_variance).clamp(min=self.floor).sum()


def warm_up(step: int, steps: int, *, end: float = 1.0) -> float:
    """β for KL annealing: straight from 0 to `end` within `steps` steps, then `end` (Bowman et al. 2016).

    The decoder learns to listen before codes cost anything.
    """
    _check(step, steps)
    return end * min(1.0, step / steps)


def cyclic_warm_up(step: int, steps: int, *, rise: float = 0.5, end: float = 1.0) -> float:
    """The same again and again: every `steps` steps β falls to 0 and takes a share `rise` of them to climb back.

    Each return starts from the codes that the round before had learnt (Fu et al. 2019).
    """
    _check(step, steps)
    if not 0 < rise <= 1:
        raise ValueError(f"the share of a round that rises must lie in (0, 1]; got rise={rise}")
    return end * min(1.0, step % steps / (rise * steps))


def _check(step: int, steps: int) -> None:
    if step < 0 or steps < 1:
        raise ValueError(f"step must not be negative and steps positive; got step={step}, steps={steps}")
