"""Six ways to the gradient of the ELBO in the parameters of q, each from the same noise (Diehl sec. 6).

    L(μ, log σ²) = E_q[log p(x|z) + log p(z) − log q(z)],   q = N(μ, diag σ²),   p(z) = N(0, I)

Every estimator takes z ↦ log p(x|z), q, and rows of standard normal noise; it gives a gradient for each row. What
training uses is their mean; how far it strays is their variance.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import grad, jacrev, vmap

from parnassus.latent.vae import standard_normal_kl

LogLikelihood: TypeAlias = Callable[[Tensor], Tensor]
"""z ↦ log p(x|z) for one code z and the x at hand, or another number made of z."""


class NormalParameters(NamedTuple):
    """μ and log σ² of q = N(μ, diag σ²); or a gradient with respect to them."""

    mean: Float[Tensor, "*samples latent"]
    log_variance: Float[Tensor, "*samples latent"]


@runtime_checkable
class Estimator(Protocol):
    """Gradients of the ELBO, one for each row of noise, whose mean estimates the true one."""

    def __call__(
        self, log_likelihood: LogLikelihood, q: NormalParameters, noise: Float[Tensor, "samples latent"], /
    ) -> NormalParameters: ...


def draws(q: NormalParameters, noise: Float[Tensor, "*samples latent"]) -> Float[Tensor, "*samples latent"]:
    """Codes z = μ + σ ε ~ q for standard normal noise ε (Diehl sec. 6)."""
    return q.mean + (q.log_variance / 2).exp() * noise


def log_weight(log_likelihood: LogLikelihood, q: NormalParameters, z: Float[Tensor, " latent"]) -> Float[Tensor, ""]:
    """The term log p(x, z) − log q(z) of one code; its mean under q is the ELBO (Diehl sec. 6)."""
    log_prior_ratio = q.log_variance + (z - q.mean).square() / q.log_variance.exp() - z.square()  # 2π cancels
    return log_likelihood(z) + log_prior_ratio.sum() / 2


def held_fixed(
    log_likelihood: LogLikelihood, q: NormalParameters, noise: Float[Tensor, "samples latent"]
) -> NormalParameters:
    """What autodiff gives when it takes the draws for constants: −∇ log q(z), of mean zero (Diehl sec. 6, approach 0).

    The draws depend on the parameters and that is all that matters: with z held, log p(x, z) does not move.
    """

    def weight(parameters: NormalParameters, z: Tensor) -> Tensor:
        return log_weight(log_likelihood, parameters, z)

    return _each(weight, q, draws(q, noise))


def by_differences(
    log_likelihood: LogLikelihood,
    q: NormalParameters,
    noise: Float[Tensor, "samples latent"],
    *,
    width: float = 1e-4,
    fresh: Float[Tensor, "samples latent"] | None = None,
) -> NormalParameters:
    """[L(ϕ + h; ε) − L(ϕ − h; ε)] / 2h for every parameter: two runs each (Diehl sec. 6, approach 0).

    Both runs use the same noise, unless the second gets `fresh` noise; then the variance grows like 1/h².
    """
    if not width > 0:
        raise ValueError(f"the width of a difference must be positive; got width={width}")

    def weights(parameters: Tensor, epsilon: Tensor) -> Tensor:
        moved = NormalParameters(*parameters.chunk(2))
        values: Tensor = vmap(lambda z: log_weight(log_likelihood, moved, z))(draws(moved, epsilon))
        return values

    phi = torch.cat(q)
    steps = width * torch.eye(len(phi)).to(phi)
    second = noise if fresh is None else fresh
    slopes = [(weights(phi + step, noise) - weights(phi - step, second)) / (2 * width) for step in steps]
    return NormalParameters(*torch.stack(slopes, 1).chunk(2, dim=1))


def reparametrised(
    log_likelihood: LogLikelihood, q: NormalParameters, noise: Float[Tensor, "samples latent"]
) -> NormalParameters:
    """∇ [log p(x, z) − log q(z)] through z = μ + σ ε as well (Diehl sec. 6, approach 1; book fig. 6.1)."""

    def weight(parameters: NormalParameters, epsilon: Tensor) -> Tensor:
        return log_weight(log_likelihood, parameters, draws(parameters, epsilon))

    return _each(weight, q, noise)


def with_analytic_kl(
    log_likelihood: LogLikelihood, q: NormalParameters, noise: Float[Tensor, "samples latent"]
) -> NormalParameters:
    """∇ [log p(x|z) − KL(q ‖ p(z))]: only the likelihood is drawn (Diehl sec. 6, approach 2; book eq. 6.13)."""

    def term(parameters: NormalParameters, epsilon: Tensor) -> Tensor:
        return log_likelihood(draws(parameters, epsilon)) - standard_normal_kl(*parameters)

    return _each(term, q, noise)


def by_curvature(
    log_likelihood: LogLikelihood, q: NormalParameters, noise: Float[Tensor, "samples latent"]
) -> NormalParameters:
    """∇_μ by slopes and ∇_{σ²} by curvatures of log p(x, z), the entropy of q exactly (Diehl sec. 6, approach 3).

    ∂L/∂log σ_j² = σ_j² · ½ E[∂²_j log p(x, z)] + ½
    """

    def log_joint(z: Tensor) -> Tensor:
        return log_likelihood(z) - z.square().sum() / 2

    slope, half_curvature = bonnet_price(log_joint, draws(q, noise))
    return NormalParameters(slope, q.log_variance.exp() * half_curvature.diagonal(dim1=1, dim2=2) + 0.5)


def bonnet_price(
    function: LogLikelihood, z: Float[Tensor, "samples latent"]
) -> tuple[Float[Tensor, "samples latent"], Float[Tensor, "samples latent latent"]]:
    """∇f and ½ ∇²f at each draw; the means are the gradients of E f in μ and Σ (Rezende et al. 2014; Diehl sec. 6).

        ∇_μ E_{N(μ,Σ)} f = E ∇f            (Bonnet)
        ∇_Σ E_{N(μ,Σ)} f = ½ E ∇²f         (Price)

    Of f it takes two derivatives: where f has kinks, as with ReLU, the second misses them.
    """
    slope = grad(function)
    return vmap(slope)(z), vmap(jacrev(slope))(z) / 2


def score_function(
    log_likelihood: LogLikelihood, q: NormalParameters, noise: Float[Tensor, "samples latent"]
) -> NormalParameters:
    """[log p(x, z) − log q(z)] · ∇ log q(z): no derivative of the model at all (Williams 1992, REINFORCE)."""
    return _scored(_weights(log_likelihood, q, noise), q, noise)


def score_function_with_baseline(
    log_likelihood: LogLikelihood, q: NormalParameters, noise: Float[Tensor, "samples latent"]
) -> NormalParameters:
    """The same less, in each draw, the mean weight of the other draws: as E ∇ log q = 0, the mean does not change."""
    if len(noise) < 2:
        raise ValueError(f"a baseline from the other draws needs two draws or more; got {len(noise)}")
    weights = _weights(log_likelihood, q, noise)
    others = (weights.sum() - weights) / (len(noise) - 1)
    return _scored(weights - others, q, noise)


def _weights(log_likelihood: LogLikelihood, q: NormalParameters, noise: Tensor) -> Tensor:
    weights: Tensor = vmap(lambda z: log_weight(log_likelihood, q, z))(draws(q, noise))
    return weights


def _scored(values: Tensor, q: NormalParameters, noise: Tensor) -> NormalParameters:
    """The score ∇ log q(z) of each draw times its value: ε/σ in μ and ½(ε² − 1) in log σ²."""
    return NormalParameters(
        values[:, None] * noise / (q.log_variance / 2).exp(), values[:, None] * (noise.square() - 1) / 2
    )


def _each(term: Callable[[NormalParameters, Tensor], Tensor], q: NormalParameters, rows: Tensor) -> NormalParameters:
    """The gradient of `term` in the parameters, for each row."""
    gradient: NormalParameters = vmap(grad(term), in_dims=(None, 0))(q, rows)
    return gradient
