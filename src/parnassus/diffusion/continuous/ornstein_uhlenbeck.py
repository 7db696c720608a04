"""The Ornstein-Uhlenbeck process, a mean-reverting Gaussian diffusion (Diehl sec. 5.1)."""

from dataclasses import dataclass
from math import exp

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Normal


@dataclass(frozen=True)
class OrnsteinUhlenbeck:
    """dX = −θ (X − m) dt + σ dW, which reverts to m at rate θ (Diehl sec. 5.1).

        X_t | X_0 = x ~ N(m + (x − m) e^{−θt}, σ² (1 − e^{−2θt}) / (2θ))
        t → ∞:          N(m, σ² / (2θ))

    With θ = ½β, m = 0 and σ = √β it is the variance-preserving noising process; with θ = 1/(2s²) and σ = 1 it is the
    Langevin equation of N(m, s²).

    >>> OrnsteinUhlenbeck(rate=2.0, mean=1.0).drift(torch.tensor([3.0]), torch.tensor(0.0)).tolist()
    [-4.0]
    """

    rate: float = 1.0  # θ
    mean: float = 0.0  # m
    sigma: float = 1.0  # σ

    def __post_init__(self) -> None:
        if not self.rate > 0 or not self.sigma > 0:
            raise ValueError(f"rate and sigma must be positive; got rate={self.rate}, sigma={self.sigma}")

    def drift(self, x: Float[Tensor, "*shape"], _t: Float[Tensor, ""]) -> Float[Tensor, "*shape"]:
        """The drift −θ (x − m)."""
        return -self.rate * (x - self.mean)

    def volatility(self, x: Float[Tensor, "*shape"], _t: Float[Tensor, ""]) -> Float[Tensor, "*shape"]:
        """The constant volatility σ."""
        return torch.full_like(x, self.sigma)

    def transition(self, x: Float[Tensor, "*shape"], time: float | Float[Tensor, "*#shape"]) -> Normal:
        """The exact distribution of X after `time`, from x."""
        decay = torch.exp(-self.rate * torch.as_tensor(time, dtype=x.dtype, device=x.device))
        variance = self.stationary().variance.to(x) * (1 - decay.square())
        return Normal(self.mean + (x - self.mean) * decay, variance.sqrt())

    def stationary(self) -> Normal:
        """The stationary distribution N(m, σ² / (2θ))."""
        return Normal(
            torch.tensor(self.mean, dtype=torch.float64),
            torch.tensor(self.sigma / (2 * self.rate) ** 0.5, dtype=torch.float64),
        )

    def covariance(self, lag: float) -> float:
        """Cov(X_t, X_{t+lag}) = σ² / (2θ) e^{−θ |lag|} of the stationary process."""
        return self.sigma**2 / (2 * self.rate) * exp(-self.rate * abs(lag))

    def path(self, start: Float[Tensor, "*shape"], times: Float[Tensor, " times"]) -> Float[Tensor, "times *shape"]:
        """X at each of the times, sampled from the exact transitions."""
        states = [start]
        for step in times.diff().tolist():
            states.append(self.transition(states[-1], step).sample())
        return torch.stack(states)
