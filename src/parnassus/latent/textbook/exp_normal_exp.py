"""A latent-variable model with ELBO and evidence in closed form (Diehl ex. 6.7).

    z ~ Exp(θ),   x|z ~ N(z, 1),   q(z|x) = Exp(ϕ)

The ELBO is maximal at θ = ϕ = 2/x. This is not the maximum-likelihood θ: the posterior is not exponential, and the
ELBO is biased towards models whose posterior q can approximate.
"""

from math import log, pi

import torch
from jaxtyping import Float
from torch import Tensor

HALF_LOG_2PI = log(2 * pi) / 2


def elbo(
    theta: Float[Tensor, "*#shape"], phi: Float[Tensor, "*#shape"], x: float | Float[Tensor, "*#shape"]
) -> Float[Tensor, "*#shape"]:
    """L(θ, ϕ; x) = log θ − θ/ϕ − ½ log 2π − ½ (x² − 2x/ϕ + 2/ϕ²) − log ϕ + 1 (Diehl ex. 6.7, with E z² corrected)."""
    _check_positive(theta=theta, phi=phi)
    error = x**2 - 2 * x / phi + 2 / phi.square()  # E_q (x − z)²
    return theta.log() - theta / phi - HALF_LOG_2PI - error / 2 - phi.log() + 1


def elbo_gradient(
    theta: Float[Tensor, "*#shape"], phi: Float[Tensor, "*#shape"], x: float | Float[Tensor, "*#shape"]
) -> tuple[Float[Tensor, "*#shape"], Float[Tensor, "*#shape"]]:
    """∂L/∂θ = 1/θ − 1/ϕ and ∂L/∂ϕ = θ/ϕ² − x/ϕ² + 2/ϕ³ − 1/ϕ (Diehl ex. 6.7, corrected)."""
    _check_positive(theta=theta, phi=phi)
    return 1 / theta - 1 / phi, (theta - x) / phi.square() + 2 / phi**3 - 1 / phi


def optimal_phi(theta: Float[Tensor, "*#shape"], x: float | Float[Tensor, "*#shape"]) -> Float[Tensor, "*#shape"]:
    """The ϕ that maximises L(θ, ·; x): the positive root of ϕ² + (x − θ) ϕ − 2 = 0."""
    _check_positive(theta=theta)
    gap = x - theta
    root = (gap.square() + 8).sqrt()
    return torch.where(gap > 0, 4 / (gap + root), (root - gap) / 2)  # neither form cancels digits


def elbo_maximiser(x: float) -> float:
    """θ = ϕ = 2/x, where L = −½ log 2π − x²/4 (Diehl ex. 6.7, printed 1/x).

    For x ≤ 0 there is no maximum: L increases to −½ log 2π − x²/2 as θ = ϕ → ∞.
    """
    _check_positive_x(x)
    return 2 / x


def log_evidence(theta: Float[Tensor, "*#shape"], x: float | Float[Tensor, "*#shape"]) -> Float[Tensor, "*#shape"]:
    """The log evidence log p_θ(x) = log θ + θ²/2 − θx + log Φ(x − θ) (Diehl ex. 6.7)."""
    _check_positive(theta=theta)
    log_phi: Tensor = torch.special.log_ndtr(x - theta)
    return theta.log() + theta.square() / 2 - theta * x + log_phi


def maximum_likelihood_theta(x: float, *, num_bisections: int = 100) -> float:
    """The θ that maximises p_θ(x), by bisection on the sign of the derivative of log p.

        ∂ log p/∂θ = 1/θ + θ − x − N(x − θ) / Φ(x − θ)

    For x ≤ 0 there is no maximum: z = 0 has the largest p(x|z), and θ → ∞ concentrates z there.
    """
    _check_positive_x(x)
    low, high = torch.tensor(1e-9, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)
    while _log_likelihood_derivative(high, x) > 0:
        high = 2 * high
    for _ in range(num_bisections):
        middle = (low * high).sqrt()
        low, high = (middle, high) if _log_likelihood_derivative(middle, x) > 0 else (low, middle)
    return float((low * high).sqrt())


def _log_likelihood_derivative(theta: Tensor, x: float) -> Tensor:
    log_normal = -HALF_LOG_2PI - (x - theta).square() / 2
    log_phi: Tensor = torch.special.log_ndtr(x - theta)
    return 1 / theta + theta - x - (log_normal - log_phi).exp()


def _check_positive(**rates: Tensor) -> None:
    for name, rate in rates.items():
        if not bool((rate > 0).all()):
            raise ValueError(
                f"{name}, the rate of an exponential distribution, must be positive; got {name}={float(rate.min())}"
            )


def _check_positive_x(x: float) -> None:
    if not x > 0:
        raise ValueError(f"x must be positive: for x ≤ 0 there is no finite maximiser; got x={x}")
