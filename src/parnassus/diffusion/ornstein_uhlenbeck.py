"""The Ornstein-Uhlenbeck process: noise on a spring, a diffusion that is normal at every time (Diehl sec. 5.1)."""

from dataclasses import dataclass
from math import exp

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Normal


@dataclass(frozen=True)
class OrnsteinUhlenbeck:
    """dX = −θ (X − m) dt + σ dW, drawn back to m at the rate θ (Diehl sec. 5.1).

        X_t | X_0 = x ~ N(m + (x − m) e^{−θt}, σ² (1 − e^{−2θt}) / (2θ))
        t → ∞:          N(m, σ² / (2θ))

    With θ = ½β, m = 0 and σ = √β it is the variance-preserving process that diffusion models drown their data in;
    with θ = 1/(2s²) and σ = 1 it is Langevin's equation for N(m, s²).
    """

    pull: float = 1.0  # θ
    mean: float = 0.0  # m
    sigma: float = 1.0  # σ

    def __post_init__(self) -> None:
        if not self.pull > 0 or not self.sigma > 0:
            raise ValueError(f"need pull > 0 and sigma > 0; got pull={self.pull}, sigma={self.sigma}")

    def drift(self, x: Float[Tensor, "*shape"], _t: Float[Tensor, ""]) -> Float[Tensor, "*shape"]:
        """−θ (x − m), whatever the time."""
        return -self.pull * (x - self.mean)

    def volatility(self, x: Float[Tensor, "*shape"], _t: Float[Tensor, ""]) -> Float[Tensor, "*shape"]:
        """σ everywhere."""
        return torch.full_like(x, self.sigma)

    def transition(self, x: Float[Tensor, "*shape"], time: float | Float[Tensor, "*#shape"]) -> Normal:
        """The law of X after `time`, from x: exact for any length of step."""
        kept = torch.exp(-self.pull * torch.as_tensor(time, dtype=x.dtype, device=x.device))
        variance = self.stationary().variance.to(x) * (1 - kept.square())
        return Normal(self.mean + (x - self.mean) * kept, variance.sqrt())

    def stationary(self) -> Normal:
        """N(m, σ² / (2θ)), which the process keeps once it has it."""
        return Normal(
            torch.tensor(self.mean, dtype=torch.float64),
            torch.tensor(self.sigma / (2 * self.pull) ** 0.5, dtype=torch.float64),
        )

    def covariance(self, lag: float) -> float:
        """Cov(X_t, X_{t+lag}) = σ² / (2θ) e^{−θ |lag|} once the process is stationary."""
        return self.sigma**2 / (2 * self.pull) * exp(-self.pull * abs(lag))

    def path(self, start: Float[Tensor, "*shape"], times: Float[Tensor, " times"]) -> Float[Tensor, "times *shape"]:
        """X at each of the times, drawn from the exact transitions: no step is too long."""
        places = [start]
        for step in times.diff().tolist():
            places.append(self.transition(places[-1], step).sample())
        return torch.stack(places)
